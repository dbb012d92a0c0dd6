package prices

import (
	"context"
	"net/http"
	"strings"

	"github.com/marketlog/marketlog/query"
)

// maxSymbols bounds one list.
const maxSymbols = 250

// ListBody answers GET /api/v1/prices.
type ListBody struct {
	Prices []ListEntry `json:"prices"`
	Meta   ListMeta    `json:"meta"`
}

// ListEntry is one price, in USD and in the quote currency asked for.
type ListEntry struct {
	Symbol       string        `json:"symbol"`
	CoinID       string        `json:"coinId"`
	PriceUSD     float64       `json:"priceUsd"`
	Price        *float64      `json:"price,omitempty" doc:"In vs; left out where its rate is unknown"`
	Vs           string        `json:"vs"`
	UpdatedAt    string        `json:"updatedAt" format:"date-time"`
	IsStale      bool          `json:"isStale"`
	IsCritical   bool          `json:"isCritical"`
	Reason       string        `json:"reason,omitempty"`
	Ambiguous    bool          `json:"ambiguous,omitempty"`
	Alternatives []Alternative `json:"alternatives,omitempty"`
	Explain      *Explanation  `json:"explain,omitempty"`
}

// ListMeta tells about the answer.
type ListMeta struct {
	query.Meta
	Staleness
	Missing  []Missing `json:"missing,omitempty" doc:"What was asked for and cannot be answered"`
	Shadowed []string  `json:"shadowed,omitempty" doc:"Ids of further coins with a symbol asked for; ask for them by id"`
	Rate     *VsRate   `json:"rate,omitempty" doc:"The rate used, where vs is not usd"`
	Reason   string    `json:"reason,omitempty" doc:"no_rate: vs cannot be converted to now"`
}

// Missing is one symbol without an answer.
type Missing struct {
	Symbol string `json:"symbol"`
	Reason string `json:"reason" enum:"unknown,no_price"`
}

// VsRate is what one unit of the quote currency costs.
type VsRate struct {
	Vs  string  `json:"vs"`
	USD float64 `json:"usd"`
	At  string  `json:"at,omitempty" format:"date-time" doc:"Time of its newest input"`
	// IsStale says that no source of the rate is fresh.
	IsStale bool `json:"isStale" doc:"No source of the rate is fresh: the newest is used"`
}

func vsRate(c query.Conversion) *VsRate {
	return &VsRate{c.Vs, c.USD, query.FormatTime(c.At), c.Stale}
}

func (u *Unit) list() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/prices", ID: "listPrices", Tool: "get_price", Tag: "prices",
		Summary: "Current prices of several coins",
		Params: []query.Param{
			{Name: "symbols", Kind: query.List, Required: true, MaxItems: maxSymbols, Example: "btc,eth", Doc: "Symbols or coin ids, in any letter case."},
			u.vsParam(), explainParam},
		Body: ListBody{}, Hot: true, Handle: u.getList,
	}
}

func (u *Unit) vsParam() query.Param {
	return query.Param{Name: "vs", Kind: query.Text, Essential: true, Default: usd, Example: "eur",
		Doc: "Quote currency: any fiat currency that is known, by the rate that the fiat endpoints answer; btc or eth.", Check: u.convert.Check}
}

func (u *Unit) getList(_ context.Context, r *query.Request) (query.Answer, error) {
	if err := u.started(); err != nil {
		return query.Answer{}, err
	}
	vs := strings.ToLower(r.Text("vs"))
	body := ListBody{Prices: []ListEntry{}}
	rate, known := u.convert.To(vs, r.Now)
	switch {
	case !known:
		body.Meta.Reason = reasonNoRate
	case vs != usd:
		body.Meta.Rate = vsRate(rate)
	}
	simulated, newest, explain := false, int64(0), r.Flag("explain")
	seen := map[string]bool{}
	for _, name := range r.List("symbols") {
		coin, ok := u.board.Find(name)
		if !ok {
			body.Meta.Missing = append(body.Meta.Missing, Missing{strings.ToValidUTF8(name, "�"), "unknown"})
			continue
		}
		if seen[coin.ID] {
			continue
		}
		seen[coin.ID] = true
		e := u.board.Entry(coin.Coin)
		if e == nil {
			body.Meta.Missing = append(body.Meta.Missing, Missing{name, "no_price"})
			continue
		}
		fresh := u.board.Freshness(e, r.Now)
		entry := ListEntry{
			Symbol: coin.Symbol, CoinID: coin.ID, PriceUSD: e.Price.Price, Vs: vs, UpdatedAt: query.FormatTime(e.Price.Time),
			IsStale: fresh.Stale, IsCritical: fresh.Critical, Reason: e.Latest.Reason,
			Ambiguous: len(coin.Alternatives) > 0, Alternatives: alternatives(coin.Alternatives),
		}
		if known {
			price := rate.From(e.Price.Price)
			entry.Price = &price
		}
		if explain {
			entry.Explain = u.explainEntry(e, "")
		}
		for _, other := range coin.Alternatives {
			if !strings.EqualFold(name, coin.ID) {
				body.Meta.Shadowed = append(body.Meta.Shadowed, other.ID)
			}
		}
		body.Prices = append(body.Prices, entry)
		body.Meta.count(fresh)
		simulated = simulated || e.Price.Simulated
		newest = max(newest, e.Latest.Time)
	}
	if newest == 0 { // nothing was found: the answer is as new as the board
		newest = u.board.Now()
	}
	body.Meta.Count, body.Meta.LastUpdated = len(body.Prices), query.FormatTime(newest)
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}
