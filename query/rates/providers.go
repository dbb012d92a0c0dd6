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
	// AllAsOf returns them as they were at an instant. It fails as views.PastYields does.
	AllAsOf(ctx context.Context, at time.Time) ([]views.ProviderState, error)
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
		Params:      []query.Param{asOfParam},
		Body:        ProvidersBody{}, Handle: u.getProviders,
	}
}

// reported is what is reported of providers at an instant.
type reported struct {
	at     time.Time
	index  *index
	prices *shownPrices
	// states are those of all that report rates or prices, by slug.
	states []views.ProviderState
}

// reported reads what is reported at the instant that a request asks for.
func (u *Unit) reported(ctx context.Context, r *query.Request) (*reported, error) {
	if asOf, past := r.Time("asOf"); past {
		return u.reportedAsOf(ctx, asOf)
	}
	ix, err := u.index(r.Now)
	if err != nil {
		return nil, err
	}
	all, err := u.states.All(ctx, r.Now)
	if err != nil {
		return nil, fmt.Errorf("reading the state of providers: %w", err)
	}
	return &reported{r.Now, ix, u.pricesNow(true, r.Now), slices.DeleteFunc(all, withoutRates)}, nil
}

func (u *Unit) reportedAsOf(ctx context.Context, asOf time.Time) (*reported, error) {
	current, unrated := u.served.Yields.At(ctx, asOf)
	ranked, unranked := u.served.Rows.Order(ctx, u.catalog.Snapshot(), asOf)
	prices, unpriced := u.pricesAsOf(ctx, nil, asOf)
	all, unstated := u.states.AllAsOf(ctx, asOf)
	if err := views.FaultOfParts(unrated, unranked, unpriced, unstated); err != nil {
		return nil, query.FaultOfPast(err, asOf)
	}
	return &reported{asOf, u.indexOf(current, ranked), prices, slices.DeleteFunc(all, withoutRates)}, nil
}

// newest is the last clock that it was folded from, as it is answered.
func (p *reported) newest() string {
	return query.FormatTime(max(p.index.current.Time, p.prices.newest))
}

// meta describes an answer of count elements.
func (p *reported) meta(r *query.Request, count int) Meta {
	m := p.index.meta(r, p.index.age(p.at), count)
	m.LastUpdated = p.newest()
	return m
}

func (u *Unit) getProviders(ctx context.Context, r *query.Request) (query.Answer, error) {
	p, err := u.reported(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	body := ProvidersBody{Data: ProviderList{p.states, len(p.states), p.newest()}, Meta: p.meta(r, len(p.states))}
	answer, err := query.Encode(body)
	answer.Simulated = slices.ContainsFunc(p.states, func(p views.ProviderState) bool { return p.Simulated })
	return answer, err
}

// withoutRates means that a provider has no category of rates or prices.
func withoutRates(p views.ProviderState) bool {
	return !slices.ContainsFunc(p.Categories, func(c string) bool { return slices.Contains(categories, c) })
}

func (u *Unit) provider() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/rates/providers/{provider}", ID: "getRateProvider", Tag: tag,
		Summary:     "One provider with its current yields and prices",
		Description: "Entries that the source has not reported for three polling intervals are left out; prices are those accepted into the coin's price. A provider without current entries has an empty list.",
		Params: []query.Param{{Name: "provider", In: query.Path, Kind: query.Text, Required: true, MaxLength: 64, Example: "aave-v3",
			Doc: "Slug, case-insensitive."}, asOfParam},
		Body: ProviderBody{}, NotFound: true, Handle: u.getProvider,
	}
}

func (u *Unit) getProvider(ctx context.Context, r *query.Request) (query.Answer, error) {
	p, err := u.reported(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	i := slices.IndexFunc(p.states, func(s views.ProviderState) bool { return strings.EqualFold(s.Slug, r.Text("provider")) })
	if i < 0 {
		return query.Answer{}, query.NotFound("no provider of rates has the slug %q", strings.ToValidUTF8(r.Text("provider"), "�"))
	}
	state := p.states[i]
	body := ProviderBody{Data: ProviderRates{Provider: state, Categories: []ProviderCategory{}, Rates: []Entry{}, Timestamp: p.newest()}}
	for _, e := range p.index.providers[state.Slug] {
		body.Data.Rates = append(body.Data.Rates, e.response(u, p.index))
	}
	u.eachPrice(p.index, &filter{provider: state.Slug}, p.prices, func(row Entry) { body.Data.Rates = append(body.Data.Rates, row) })
	for _, category := range categories {
		if c := breakDown(category, body.Data.Rates); c.Count > 0 {
			body.Data.Categories = append(body.Data.Categories, c)
		}
	}
	body.Data.Count = len(body.Data.Rates)
	body.Meta = p.meta(r, body.Data.Count)
	answer, err := query.Encode(body)
	answer.Simulated = state.Simulated || slices.ContainsFunc(body.Data.Rates, func(e Entry) bool { return e.Metadata.Simulated })
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
