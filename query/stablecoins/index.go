package stablecoins

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const (
	defaultLimit = "50"
	maxLimit     = 500
	// minMarketCap is the least market cap in USD that the index has.
	minMarketCap = 1_000_000
)

// IndexBody answers GET /api/v1/stablecoins/index.
type IndexBody struct {
	Stablecoins []Entry `json:"stablecoins" doc:"The most stable first; those without a score follow, the largest first"`
	Meta        Meta    `json:"meta"`
}

// Meta tells about an answer.
type Meta struct {
	query.Meta
	Total        int      `json:"total,omitempty" doc:"Rows without the limit"`
	Reason       string   `json:"reason,omitempty" enum:"no_history" doc:"no_history: no venue of ours trades it, so it has no past here"`
	Attributions []string `json:"attributions,omitempty" doc:"To be shown with what their sources tell"`
}

// Entry is one stablecoin.
type Entry struct {
	Symbol         string      `json:"symbol" example:"USDT"`
	Name           string      `json:"name"`
	ID             string      `json:"id" example:"tether"`
	CoinID         string      `json:"coinId" doc:"Equal to id"`
	MarketCap      *float64    `json:"marketCap,omitempty" doc:"USD"`
	PegDeviation   *float64    `json:"pegDeviation,omitempty" doc:"Signed basis points, below the peg negative"`
	StabilityScore *float64    `json:"stabilityScore,omitempty" doc:"0 to 100, higher is more stable"`
	Components     *Components `json:"components,omitempty"`
	Price          *float64    `json:"price,omitempty" doc:"USD"`
	PriceSource    string      `json:"priceSource,omitempty" doc:"median: our own; else the source that tells it"`
	PegTarget      *float64    `json:"pegTarget,omitempty" doc:"What one unit of the peg costs in USD"`
	PegCurrency    string      `json:"pegCurrency" example:"USD"`
	PegMechanism   string      `json:"pegMechanism,omitempty" example:"fiat-backed"`
	Circulating    *float64    `json:"circulating,omitempty" doc:"Units"`
	IsDepegged     bool        `json:"isDepegged" doc:"50 basis points or more from its peg"`
	IsStale        bool        `json:"isStale"`
	LastUpdated    string      `json:"lastUpdated,omitempty" format:"date-time" doc:"Time of the price"`
}

// Components are what a score is made from.
type Components struct {
	MeanBps float64 `json:"meanBps" doc:"Mean of the absolute deviations at the closes of minutes over 30 days; half of it is taken off 100"`
	P95Bps  float64 `json:"p95Bps" doc:"Their 95th percentile by nearest rank; 0.3 of it is taken off"`
	NowBps  float64 `json:"nowBps" doc:"The absolute deviation now; 0.2 of it is taken off"`
	Samples int     `json:"samples"`
}

func (u *Unit) index() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/stablecoins/index", ID: "listStablecoins", Tool: "stablecoin_index", Tag: tag,
		Summary:     "Stablecoins by how well they keep their pegs",
		Description: "Those of a market cap of at least 1,000,000 USD that no source calls dead.",
		Params:      []query.Param{{Name: "limit", Kind: query.Integer, Default: defaultLimit, ToolDefault: "25", Min: 1, Max: maxLimit, Doc: "Most stablecoins to answer."}},
		Body:        IndexBody{}, Handle: u.getIndex,
	}
}

func (u *Unit) getIndex(ctx context.Context, r *query.Request) (query.Answer, error) {
	snapshot := u.catalog.Snapshot()
	if snapshot.Time == 0 && snapshot.SourcesTime == 0 && u.board.Now() == 0 {
		return query.Answer{}, query.Starting("no price was read yet")
	}
	kept, err := u.kept(ctx, r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	body, simulated := IndexBody{Stablecoins: []Entry{}}, false
	for _, k := range u.all(snapshot, r.Now) {
		if k.said.GetDead() {
			continue
		}
		entry := k.response(kept[k.id])
		if entry.MarketCap == nil || *entry.MarketCap < minMarketCap {
			continue
		}
		simulated = simulated || k.simulated
		body.Stablecoins = append(body.Stablecoins, entry)
	}
	slices.SortStableFunc(body.Stablecoins, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(score(b), score(a)), cmp.Compare(*b.MarketCap, *a.MarketCap), strings.Compare(a.ID, b.ID))
	})
	body.Meta.Total = len(body.Stablecoins)
	body.Stablecoins = body.Stablecoins[:min(len(body.Stablecoins), int(r.Integer("limit")))]
	body.Meta.Count, body.Meta.Clamped = len(body.Stablecoins), r.Clamped()
	body.Meta.LastUpdated = query.FormatTime(max(snapshot.Time, snapshot.SourcesTime, u.board.Now()))
	body.Meta.Attributions = attributions(snapshot)
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}

// score is below all others where there is none.
func score(e Entry) float64 {
	if e.StabilityScore == nil {
		return -1
	}
	return *e.StabilityScore
}

func (k *known) response(kept views.PegStatistic) Entry {
	e := Entry{
		Symbol: k.symbol, Name: k.name, ID: k.id, CoinID: k.id, MarketCap: k.marketCap(), PegDeviation: k.deviation(),
		PegCurrency: k.peg, PegMechanism: k.said.GetPegMechanism(), IsStale: k.stale,
	}
	if k.price > 0 {
		e.Price, e.PriceSource, e.LastUpdated = &k.price, k.priceSource, query.FormatTime(k.priceTime)
	}
	if k.target > 0 {
		e.PegTarget = &k.target
	}
	if circulating := number(k.said.GetCirculating()); circulating > 0 {
		e.Circulating = &circulating
	}
	if e.PegDeviation != nil {
		e.IsDepegged = *e.PegDeviation >= schemas.PegLostBps || *e.PegDeviation <= -schemas.PegLostBps
	}
	if s := k.score(kept); s != nil {
		e.StabilityScore, e.Components = &s.Score, &Components{s.MeanBps, s.P95Bps, s.NowBps, s.Samples}
	}
	return e
}

// attributions are those of the sources of stablecoins.
func attributions(snapshot *views.Snapshot) []string {
	var texts []string
	for _, said := range snapshot.Stablecoins {
		if text := snapshot.Notices[said.Source].GetAttribution(); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}
