package rates

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// Providers reports the states of providers.
type Providers interface {
	// All returns them by slug.
	All(ctx context.Context, now time.Time) ([]views.ProviderState, error)
}

// ProvidersBody answers GET /api/v1/rates/providers.
type ProvidersBody struct {
	Data ProviderList `json:"data"`
	Meta Meta         `json:"meta"`
}

// ProviderList holds those whose rates or prices are reported.
type ProviderList struct {
	Providers []views.ProviderState `json:"providers" doc:"Sorted by slug"`
	Count     int                   `json:"count"`
	Timestamp string                `json:"timestamp" format:"date-time" doc:"Log time up to which the view is complete"`
}

// ProviderBody answers GET /api/v1/rates/providers/{provider}.
type ProviderBody struct {
	Data ProviderRates `json:"data"`
	Meta Meta          `json:"meta"`
}

// ProviderRates is a provider with what it pays and asks.
type ProviderRates struct {
	Provider   views.ProviderState `json:"provider" doc:"The provider, with its health"`
	Categories []ProviderCategory  `json:"categories" doc:"Its entries summed up by category; categories without an entry are left out"`
	Rates      []Entry             `json:"rates" doc:"Sorted by category, coin rank, and rate in descending order"`
	Count      int                 `json:"count"`
	Timestamp  string              `json:"timestamp" format:"date-time" doc:"Log time up to which the view is complete"`
}

// ProviderCategory sums up a provider's rates of a category.
type ProviderCategory struct {
	Category    string   `json:"category" enum:"lending,staking,borrowing,price" doc:"Category of the entries"`
	Count       int      `json:"count" doc:"Number of entries of the category"`
	MinRate     *float64 `json:"minRate,omitempty" explain:"provider-rates/{provider.slug}/{category}/minRate" doc:"Percent per year; this and the other yield figures are absent for prices"`
	MaxRate     *float64 `json:"maxRate,omitempty" explain:"provider-rates/{provider.slug}/{category}/maxRate" doc:"Percent per year"`
	AverageRate *float64 `json:"averageRate,omitempty" explain:"provider-rates/{provider.slug}/{category}/averageRate" doc:"Mean of the entries, percent per year"`
	Symbols     []string `json:"symbols" doc:"Sorted by coin rank"`
}

func (u *Unit) providers() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/rates/providers", ID: "listRateProviders", Tag: tag,
		Summary:     "Providers of yields and prices, with their health",
		Description: "Exchanges with prices, and providers of lending, staking or borrowing rates, sorted by slug. Providers of other data alone are left out; /api/v1/providers has them all.",
		Body:        ProvidersBody{}, Handle: u.getProviders,
	}
}

func (u *Unit) getProviders(ctx context.Context, r *query.Request) (query.Answer, error) {
	ix, err := u.index(r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	all, err := u.states.All(ctx, r.Now)
	if err != nil {
		return query.Answer{}, fmt.Errorf("reading the state of providers: %w", err)
	}
	rated := slices.DeleteFunc(all, func(p views.ProviderState) bool { return !rates(p) })
	body := ProvidersBody{Data: ProviderList{rated, len(rated), u.newest(ix)}, Meta: ix.meta(r, ix.age(r.Now), len(rated))}
	body.Meta.LastUpdated = body.Data.Timestamp
	answer, err := query.Encode(body)
	answer.Simulated = slices.ContainsFunc(rated, func(p views.ProviderState) bool { return p.Simulated })
	return answer, err
}

// rates means that a provider has a category of rates or prices.
func rates(p views.ProviderState) bool {
	return slices.ContainsFunc(p.Categories, func(c string) bool { return slices.Contains(categories, c) })
}

// newest is the last clock that an answer with prices was folded from.
func (u *Unit) newest(ix *index) string {
	return query.FormatTime(max(ix.current.Time, u.priceCache.Now()))
}

func (u *Unit) provider() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/rates/providers/{provider}", ID: "getRateProvider", Tag: tag,
		Summary:     "One provider with its current yields and prices",
		Description: "Entries that the source has not reported for three polling intervals are left out; prices are those accepted into the coin's price. A provider without current entries has an empty list.",
		Params: []query.Param{{Name: "provider", In: query.Path, Kind: query.Text, Required: true, MaxLength: 64, Example: "aave-v3",
			Doc: "Slug, case-insensitive."}},
		Body: ProviderBody{}, NotFound: true, Handle: u.getProvider,
	}
}

func (u *Unit) getProvider(ctx context.Context, r *query.Request) (query.Answer, error) {
	ix, err := u.index(r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	all, err := u.states.All(ctx, r.Now)
	if err != nil {
		return query.Answer{}, fmt.Errorf("reading the state of providers: %w", err)
	}
	i := slices.IndexFunc(all, func(p views.ProviderState) bool { return strings.EqualFold(p.Slug, r.Text("provider")) && rates(p) })
	if i < 0 {
		return query.Answer{}, query.NotFound("no provider of rates has the slug %q", strings.ToValidUTF8(r.Text("provider"), "�"))
	}
	body := ProviderBody{Data: ProviderRates{Provider: all[i], Categories: []ProviderCategory{}, Rates: []Entry{}, Timestamp: u.newest(ix)}}
	simulated := all[i].Simulated
	for _, e := range ix.providers[all[i].Slug] {
		body.Data.Rates = append(body.Data.Rates, e.response(u, ix))
	}
	u.eachPrice(ix, &filter{provider: all[i].Slug}, u.pricesNow(true, r.Now), func(row Entry) { body.Data.Rates = append(body.Data.Rates, row) })
	for _, category := range categories {
		if c := breakDown(category, body.Data.Rates); c.Count > 0 {
			body.Data.Categories = append(body.Data.Categories, c)
		}
	}
	body.Data.Count = len(body.Data.Rates)
	body.Meta = ix.meta(r, ix.age(r.Now), body.Data.Count)
	body.Meta.LastUpdated = body.Data.Timestamp
	answer, err := query.Encode(body)
	answer.Simulated = simulated || slices.ContainsFunc(body.Data.Rates, func(e Entry) bool { return e.Metadata.Simulated })
	return answer, err
}

// breakDown sums up the rates of a category. Prices of several coins have nothing in common.
func breakDown(category string, all []Entry) ProviderCategory {
	c := ProviderCategory{Category: category, Symbols: []string{}}
	var values []float64
	for _, e := range all {
		if e.Category != category {
			continue
		}
		c.Count++
		values = append(values, e.Rate)
		if !slices.Contains(c.Symbols, e.Symbol) {
			c.Symbols = append(c.Symbols, e.Symbol)
		}
	}
	if c.Count > 0 && category != categoryPrice {
		s := views.SumRates(values)
		c.MinRate, c.MaxRate, c.AverageRate = &s.Min, &s.Max, &s.Mean
	}
	return c
}
