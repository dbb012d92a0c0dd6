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
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	defaultLimit = "50"
	maxLimit     = 500
	// minMarketCap is the least market cap in USD that the index has.
	minMarketCap = 1_000_000
	// priceSource is the source of prices that are computed from venues.
	priceSource = "median"
)

// IndexBody answers GET /api/v1/stablecoins/index.
type IndexBody struct {
	Stablecoins []Entry `json:"stablecoins" doc:"Most stable first; those without a score follow, by market cap"`
	Meta        Meta    `json:"meta"`
}

// Meta describes an answer.
type Meta struct {
	query.Meta
	Total        int      `json:"total,omitempty" doc:"Number of rows without the limit"`
	Reason       string   `json:"reason,omitempty" enum:"no_history" doc:"no_history: none of our venues trades it, so there is no price history"`
	Attributions []string `json:"attributions,omitempty" doc:"Attribution to show with the sources' values"`
}

// Entry is one stablecoin.
type Entry struct {
	Symbol         string      `json:"symbol" example:"USDT"`
	Name           string      `json:"name" doc:"Name of the coin"`
	ID             string      `json:"id" example:"tether" doc:"Id of the coin"`
	CoinID         string      `json:"coinId" doc:"Equal to id"`
	MarketCap      *float64    `json:"marketCap,omitempty" explain:"peg/{coinId}/marketCap" doc:"USD"`
	PegDeviation   *float64    `json:"pegDeviation,omitempty" explain:"peg/{coinId}" doc:"Signed basis points; negative below the peg"`
	StabilityScore *float64    `json:"stabilityScore,omitempty" explain:"peg/{coinId}/stabilityScore" doc:"0 to 100, higher is more stable"`
	Components     *Components `json:"components,omitempty" doc:"What stabilityScore is computed from; absent without a score"`
	Price          *float64    `json:"price,omitempty" explain:"peg/{coinId}/price" doc:"USD"`
	PriceSource    string      `json:"priceSource,omitempty" doc:"median: computed from venues; else the reference source of the price"`
	PegTarget      *float64    `json:"pegTarget,omitempty" explain:"peg/{coinId}/target" doc:"USD per unit of the pegged currency"`
	PegCurrency    string      `json:"pegCurrency" example:"USD" doc:"Code of the currency that it is pegged to"`
	PegMechanism   string      `json:"pegMechanism,omitempty" example:"fiat-backed" doc:"How the peg is held, as the source states it"`
	Circulating    *float64    `json:"circulating,omitempty" explain:"peg/{coinId}/circulating" doc:"Units"`
	IsDepegged     bool        `json:"isDepegged" doc:"At least 50 basis points away from the peg"`
	IsStale        bool        `json:"isStale"`
	LastUpdated    string      `json:"lastUpdated,omitempty" format:"date-time" doc:"Time of the price"`
}

// Components are what a score is made from.
type Components struct {
	MeanBps float64 `json:"meanBps" explain:"peg/{coinId}/meanBps" doc:"Mean absolute deviation at minute closes over 30 days; half of it is subtracted from 100"`
	P95Bps  float64 `json:"p95Bps" explain:"peg/{coinId}/p95Bps" doc:"95th percentile (nearest rank) of the absolute deviations; 0.3 of it is subtracted"`
	NowBps  float64 `json:"nowBps" explain:"peg/{coinId}/nowBps" doc:"Current absolute deviation; 0.2 of it is subtracted"`
	Samples int     `json:"samples" explain:"peg/{coinId}/samples" doc:"Number of minute closes that meanBps and p95Bps are over"`
}

func (u *Unit) index() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/stablecoins/index", ID: "listStablecoins", Tool: "stablecoin_index", Tag: tag,
		Summary:     "Stablecoins by peg stability",
		Description: "Those with a market cap of at least 1,000,000 USD that no source reports as dead.",
		Params:      []query.Param{{Name: "limit", Kind: query.Integer, Default: defaultLimit, ToolDefault: "25", Min: 1, Max: maxLimit, Doc: "Maximum number of stablecoins."}, asOfParam},
		Body:        IndexBody{}, Handle: u.getIndex,
	}
}

func (u *Unit) getIndex(ctx context.Context, r *query.Request) (query.Answer, error) {
	if asOf, past := r.Time("asOf"); past {
		s, kept, err := u.servedAt(ctx, asOf)
		if err != nil {
			return query.Answer{}, query.FaultOfPast(err, asOf)
		}
		return s.index(kept, r)
	}
	snapshot := u.catalog.Snapshot()
	if snapshot.Time == 0 && snapshot.SourcesTime == 0 && u.priceCache.Now() == 0 {
		return query.Answer{}, query.Starting("no price was read yet")
	}
	kept, err := u.statistics.Current(ctx, r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	return u.current(snapshot, r.Now).index(kept, r)
}

// index answers with all stablecoins of a state.
func (s *state) index(kept views.PegsByCoin, r *query.Request) (query.Answer, error) {
	list := s.all()
	body, simulated := IndexBody{Stablecoins: []Entry{}}, false
	for _, k := range list {
		if k.reported.GetDead() {
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
	body.Meta.LastUpdated = query.FormatTime(s.newest(list))
	body.Meta.Attributions = attributions(s.snapshot)
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

func (k *known) response(kept *eventsv1.ServedPeg) Entry {
	e := Entry{
		Symbol: k.symbol, Name: k.name, ID: k.id, CoinID: k.id, MarketCap: k.marketCap(), PegDeviation: k.deviation(),
		PegCurrency: k.peg, PegMechanism: k.reported.GetPegMechanism(), IsStale: k.stale,
	}
	if k.price > 0 {
		e.Price, e.PriceSource, e.LastUpdated = &k.price, k.priceSource, query.FormatTime(k.priceTime)
	}
	if k.target > 0 {
		e.PegTarget = &k.target
	}
	if circulating := schemas.Float(k.reported.GetCirculating()); circulating > 0 {
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
	for _, reported := range snapshot.Stablecoins {
		if text := snapshot.Notices[reported.Source].GetAttribution(); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}
