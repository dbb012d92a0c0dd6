package prices

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Why there is no aggregated price.
const (
	reasonNoPrice  = "no_price"
	reasonNoRegion = "no_provider_in_region"
	reasonNoRate   = "no_rate"
	// reasonReference is where a reference source reports the price, so that there are no inputs to explain or to choose by
	// country.
	reasonReference = "reference_price"
	// reasonNewer is where a newer version made the price than this one knows.
	reasonNewer = "unknown_method"
)

// usd is the currency that prices are published in.
const usd = "usd"

// PriceBody answers GET /api/v1/prices/{symbol}.
type PriceBody struct {
	Data PriceData `json:"data"`
	Meta PriceMeta `json:"meta"`
}

// PriceData is one coin's price and what each provider reports.
type PriceData struct {
	Symbol       string                     `json:"symbol" doc:"Symbol of the coin, upper case"`
	CoinID       string                     `json:"coinId"`
	Vs           string                     `json:"vs" example:"usd" doc:"Currency of all prices in this response except those of explain, which are in USD"`
	Ambiguous    bool                       `json:"ambiguous,omitempty" doc:"The name is ambiguous: other coins match it too"`
	Alternatives []views.Alternative        `json:"alternatives,omitempty"`
	Aggregated   query.Nullable[Aggregated] `json:"aggregated" doc:"Null if there is no price; meta.reason has the cause"`
	Providers    []Row                      `json:"providers" doc:"Each provider's markets, also rejected ones; empty if no venue provides the price"`
	Explain      *Explanation               `json:"explain,omitempty" doc:"Inputs of the price and a recomputation, if requested; absent if no venue provides the price"`
}

// PriceMeta describes the answer.
type PriceMeta struct {
	query.Meta
	IsStale      bool              `json:"isStale" doc:"As of the price"`
	Reason       string            `json:"reason,omitempty" doc:"Why there is no price; no_rate: there is no exchange rate to vs now; reference_price: no venue provides a price, it is that of priceSource"`
	Rate         *VsRate           `json:"rate,omitempty" doc:"The exchange rate used, if vs is not usd"`
	Region       string            `json:"region,omitempty" doc:"Country whose providers are aggregated, by ISO 3166-1 code, if one was requested"`
	RegionSource map[string]string `json:"regionSource,omitempty" doc:"Per provider, the page that states its countries (with the source that quotes it, if it was not read directly), or unknown (treated as worldwide)"`
}

func (u *Unit) price() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/prices/{symbol}", ID: "getPrice", Tag: "prices",
		Summary:     "Price of a coin, current or as of a past time",
		Description: "The median over providers; prices more than 50% away from the first median are excluded. Each provider's own price is listed, with the reason if it was rejected. A coin that none of our venues trades has the price of a reference source, named in priceSource, and no providers.",
		Params: []query.Param{symbolParam,
			{Name: "region", Kind: query.Text, Example: "DE", Doc: "Two-letter country code; only providers available there are aggregated.", Check: query.CheckCountry},
			u.vsParam(), explainParam, asOfParam},
		Body: PriceBody{}, NotFound: true, Hot: true, Handle: u.getPrice,
	}
}

func (u *Unit) getPrice(ctx context.Context, r *query.Request) (query.Answer, error) {
	snapshot := u.catalog.Snapshot()
	coin, err := u.find(snapshot, r.Text("symbol"))
	if err != nil {
		return query.Answer{}, err
	}
	if err := u.started(); err != nil {
		return query.Answer{}, err
	}
	vs := strings.ToLower(r.Text("vs"))
	prices := u.of(r, snapshot)
	if prices.past {
		if err := prices.read(ctx, vs, []schemas.Coin{coin.Own}); err != nil {
			return query.Answer{}, err
		}
	}
	spot, ok := prices.spot(coin.CatalogCoin)
	switch {
	case !ok && prices.past:
		return query.Answer{}, query.PriceNotKept(coin.ID, prices.at)
	case !ok:
		body := bare(coin)
		body.Data.Vs, body.Meta.Reason = strings.Clone(vs), reasonNoPrice
		return query.Encode(body)
	}
	region, explain := query.Country(r.Text("region")), r.Flag("explain")
	answer := query.Answer{Simulated: spot.Simulated}
	if spot.Entry != nil && region == "" && !explain && vs == usd && !prices.past {
		answer.Body, err = u.bodies.Get(spot.Entry, spot.Freshness, coin.OthersKey(), func() (*query.Body, error) { return query.NewBody(u.whole(coin, spot)) })
		return answer, err
	}
	body := u.whole(coin, spot)
	if region != "" {
		u.inRegion(&body, spot, region)
	}
	if explain && spot.Entry != nil && body.Data.Aggregated.Value != nil {
		body.Data.Explain = u.explainEntry(spot.Entry, region)
	}
	if vs != usd {
		prices.convertTo(&body, vs)
	}
	answer.Body, err = query.NewBody(body)
	return answer, err
}

func bare(coin views.Named) PriceBody {
	return PriceBody{Data: PriceData{Symbol: coin.Symbol, CoinID: coin.ID, Vs: usd, Ambiguous: len(coin.Others) > 0,
		Alternatives: coin.Alternatives(), Providers: []Row{}}}
}

func (u *Unit) whole(coin views.Named, spot views.Spot) PriceBody {
	body := bare(coin)
	body.Data.Aggregated.Value = aggregated(coin.CatalogCoin, spot)
	body.Meta.LastUpdated, body.Meta.IsStale = query.FormatTime(spot.Time), spot.Stale
	if spot.Entry == nil {
		body.Meta.Reason = reasonReference
		return body
	}
	latest := spot.Entry.Latest
	body.Data.Providers = u.rows(coin.Symbol, latest.Inputs, latest.Simulated)
	body.Meta.Count, body.Meta.LastUpdated = len(body.Data.Providers), query.FormatTime(latest.Time)
	return body
}

// convertTo converts the prices of an answer into another currency. Without a rate there is none.
func (s *served) convertTo(body *PriceBody, vs string) {
	body.Data.Vs = vs
	rate, known := s.conversion(vs)
	if !known {
		body.Data.Aggregated.Value, body.Meta.Reason = nil, reasonNoRate
		for i := range body.Data.Providers {
			body.Data.Providers[i].Price = nil
		}
		return
	}
	body.Meta.Rate = vsRate(rate)
	if a := body.Data.Aggregated.Value; a != nil {
		converted := *a
		for _, amount := range []*float64{&converted.Price, &converted.Median, &converted.Min, &converted.Max, &converted.Confidence} {
			*amount = rate.From(*amount)
		}
		if a.Volume24h != nil {
			volume := rate.From(*a.Volume24h)
			converted.Volume24h = &volume
		}
		body.Data.Aggregated.Value = &converted
	}
	for i := range body.Data.Providers {
		if price := body.Data.Providers[i].Price; price != nil {
			converted := rate.From(*price)
			body.Data.Providers[i].Price = &converted
		}
	}
}

// inRegion aggregates again the prices of the providers of a country.
func (u *Unit) inRegion(body *PriceBody, spot views.Spot, region string) {
	body.Meta.Region, body.Meta.RegionSource = region, map[string]string{}
	if spot.Entry == nil { // no provider makes the price
		body.Data.Aggregated.Value, body.Meta.Reason = nil, reasonNoRegion
		return
	}
	latest := spot.Entry.Latest
	for _, in := range latest.Inputs {
		body.Meta.RegionSource[in.Provider] = u.providers[in.Provider].RegionSource()
	}
	inputs := u.available(latest.Inputs, region)
	result, inputs, known := schemas.AggregateBy(latest.Method, inputs, latest.Time)
	if !known {
		result.Reason = reasonNewer
	}
	body.Data.Providers = u.rows(body.Data.Symbol, inputs, latest.Simulated)
	body.Meta.Count = len(inputs)
	if result.Reason != "" {
		body.Data.Aggregated.Value = nil
		body.Meta.Reason = result.Reason
		if len(inputs) == 0 && len(latest.Inputs) > 0 {
			body.Meta.Reason = reasonNoRegion
		}
		return
	}
	body.Data.Aggregated.Value = &Aggregated{
		Symbol: body.Data.Symbol, CoinID: body.Data.CoinID, Price: result.Price, Providers: result.Accepted, Min: result.Min, Max: result.Max,
		Median: result.Price, Timestamp: query.FormatTime(latest.Time), Rejected: result.Rejected, Confidence: result.Confidence,
		Score: &result.Score, Source: result.Source, PriceSource: schemas.PriceSourceMedian, Volume24h: &result.Volume24h,
		IsStale: spot.Stale, IsCritical: spot.Critical,
	}
}

// available copies the inputs of the providers that serve a country; all where it is empty. They are
// copies because aggregating writes into them.
func (u *Unit) available(inputs []*eventsv1.PriceInput, region string) []*eventsv1.PriceInput {
	var own []*eventsv1.PriceInput
	for _, in := range inputs {
		if region == "" || u.providers[in.Provider].Available(region) {
			own = append(own, proto.CloneOf(in))
		}
	}
	return own
}
