package prices

import (
	"context"
	"net/http"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// maxSymbols bounds one list.
const maxSymbols = 250

// ListBody answers GET /api/v1/prices.
type ListBody struct {
	Prices []ListEntry `json:"prices" doc:"In request order, each coin once"`
	Meta   ListMeta    `json:"meta"`
}

// ListEntry is one price, in USD and in the quote currency asked for.
type ListEntry struct {
	Symbol       string              `json:"symbol" doc:"Symbol of the coin, upper case"`
	CoinID       string              `json:"coinId"`
	PriceUSD     float64             `json:"priceUsd" explain:"price/{coinId}" doc:"USD"`
	Price        *float64            `json:"price,omitempty" explain:"price-in/{vs}/all/{coinId}" doc:"In the currency vs; absent if its exchange rate is unknown"`
	Vs           string              `json:"vs" doc:"Currency of price, lower case"`
	PriceSource  string              `json:"priceSource" example:"median" doc:"median: computed from venues; else the reference source of the price, if no venue provides one"`
	UpdatedAt    string              `json:"updatedAt" format:"date-time" doc:"The evaluated second, or the time of the price of priceSource"`
	IsStale      bool                `json:"isStale"`
	IsCritical   bool                `json:"isCritical"`
	Reason       string              `json:"reason,omitempty" doc:"Why the last price was retained: no_fresh_inputs or no_consensus"`
	Providers    *int                `json:"providers,omitempty" explain:"price/{coinId}/providers" doc:"Number of accepted providers; absent if priceSource is not median"`
	Rejected     *int                `json:"rejected,omitempty" explain:"price/{coinId}/rejected" doc:"Number of rejected providers; absent if priceSource is not median"`
	Confidence   *float64            `json:"confidence,omitempty" explain:"price/{coinId}/confidence" doc:"Half width of the confidence interval, USD; absent if priceSource is not median"`
	Ambiguous    bool                `json:"ambiguous,omitempty" doc:"The name is ambiguous: other coins match it too"`
	Alternatives []views.Alternative `json:"alternatives,omitempty"`
	Explain      *Explanation        `json:"explain,omitempty" doc:"For prices computed from venues"`
}

// ListMeta describes the answer.
type ListMeta struct {
	query.Meta
	Staleness
	Missing  []Missing `json:"missing,omitempty" doc:"Requested names without a result"`
	Shadowed []string  `json:"shadowed,omitempty" doc:"Ids of further coins that a requested name matches; request them by id"`
	Rate     *VsRate   `json:"rate,omitempty" doc:"The exchange rate used, if vs is not usd"`
	Reason   string    `json:"reason,omitempty" doc:"no_rate: there is no exchange rate to vs now"`
}

// Missing is one symbol without an answer.
type Missing struct {
	Symbol string `json:"symbol" doc:"As in the request"`
	Reason string `json:"reason" enum:"unknown,no_price,not_kept" doc:"not_kept: our venues had no price by asOf, or one older than ten minutes, and prices of reference sources are not kept as they were served"`
}

// VsRate is what one unit of the quote currency costs.
type VsRate struct {
	Vs  string  `json:"vs" doc:"Quote currency, lower case"`
	USD float64 `json:"usd" explain:"vs/{vs}" doc:"USD per unit of vs"`
	At  string  `json:"at,omitempty" format:"date-time" doc:"Time of its newest input"`
	// IsStale means that no source of the rate is fresh.
	IsStale bool `json:"isStale" doc:"No source has a fresh exchange rate; the newest known one is used"`
}

func vsRate(c views.Conversion) *VsRate {
	return &VsRate{c.Vs, c.USD, query.FormatTime(c.At), c.Stale}
}

func (u *Unit) list() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/prices", ID: "listPrices", Tool: "get_price", Tag: "prices",
		Summary:     "Prices of several coins, current or as of a past time",
		Description: "A coin without a recent median has the price of a reference source, named in priceSource.",
		Params: []query.Param{
			{Name: "symbols", Kind: query.List, Required: true, MaxItems: maxSymbols, Example: "btc,eth", Doc: "Symbols or ids of coins, case-insensitive, resolved as in /prices/{symbol}."},
			u.vsParam(), explainParam, asOfParam},
		Body: ListBody{}, Hot: true, Handle: u.getList,
	}
}

func (u *Unit) vsParam() query.Param {
	return query.Param{Name: "vs", Kind: query.Text, Essential: true, Default: usd, Example: "eur",
		Doc: "Quote currency: any known fiat currency, at the exchange rate of the fiat endpoints; or btc or eth.", Check: u.convert.Check}
}

// reasonNotKept is where the price of the past may have been that of a reference source.
const reasonNotKept = "not_kept"

func (u *Unit) getList(ctx context.Context, r *query.Request) (query.Answer, error) {
	if err := u.started(); err != nil {
		return query.Answer{}, err
	}
	vs := strings.ToLower(r.Text("vs"))
	body := ListBody{Prices: []ListEntry{}}
	snapshot := u.catalog.Snapshot()
	prices := u.of(r, snapshot)
	if prices.past {
		var coins []schemas.Coin
		for _, name := range r.List("symbols") {
			if coin, ok := snapshot.Find(name); ok {
				coins = append(coins, coin.Own)
			}
		}
		if err := prices.read(ctx, vs, coins); err != nil {
			return query.Answer{}, err
		}
	}
	rate, known := prices.conversion(vs)
	switch {
	case !known:
		body.Meta.Reason = reasonNoRate
	case vs != usd:
		body.Meta.Rate = vsRate(rate)
	}
	simulated, newest, explain := false, int64(0), r.Flag("explain")
	seen := map[string]bool{}
	for _, name := range r.List("symbols") {
		coin, ok := snapshot.Find(name)
		if !ok {
			body.Meta.Missing = append(body.Meta.Missing, Missing{strings.ToValidUTF8(name, "\uFFFD"), "unknown"})
			continue
		}
		if seen[coin.ID] {
			continue
		}
		seen[coin.ID] = true
		spot, ok := prices.spot(coin.CatalogCoin)
		switch {
		case !ok && prices.past:
			body.Meta.Missing = append(body.Meta.Missing, Missing{name, reasonNotKept})
			continue
		case !ok:
			body.Meta.Missing = append(body.Meta.Missing, Missing{name, reasonNoPrice})
			continue
		}
		entry := ListEntry{
			Symbol: coin.Symbol, CoinID: coin.ID, PriceUSD: spot.Price, Vs: vs, PriceSource: spot.Source, UpdatedAt: query.FormatTime(spot.Time),
			IsStale: spot.Stale, IsCritical: spot.Critical, Ambiguous: len(coin.Others) > 0, Alternatives: coin.Alternatives(),
		}
		if known {
			price := rate.From(spot.Price)
			entry.Price = &price
		}
		at := spot.Time
		if e := spot.Entry; e != nil {
			entry.Reason, at = e.Latest.Reason, e.Latest.Time
			accepted, rejected := int(e.Price.Accepted), int(e.Price.Rejected)
			entry.Providers, entry.Rejected, entry.Confidence = &accepted, &rejected, &e.Price.Confidence
			if explain {
				entry.Explain = u.explainEntry(e, "")
			}
		}
		for _, other := range entry.Alternatives {
			body.Meta.Shadowed = append(body.Meta.Shadowed, other.CoinID)
		}
		body.Prices = append(body.Prices, entry)
		body.Meta.count(spot.Freshness)
		simulated = simulated || spot.Simulated
		newest = max(newest, at)
	}
	if newest == 0 && !prices.past { // nothing was found: the answer is as new as the price cache
		newest = u.priceCache.Now()
	}
	body.Meta.Count, body.Meta.LastUpdated = len(body.Prices), query.FormatTime(newest)
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}
