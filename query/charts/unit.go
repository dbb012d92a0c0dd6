// Package charts answers with the history of coins' prices, and of what they earn and cost: candles of
// the resolution that a timeframe has, up to the one under way, and at most 1,000 points of them. An
// interval without a price is left out, and none is invented.
package charts

import (
	"context"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// timeframe is one row of the table of resolutions.
type timeframe struct {
	name       string
	resolution string
	step       time.Duration
	// intervals are the closed ones; the one under way is added.
	intervals int
}

const day = 24 * time.Hour

var timeframes = []timeframe{
	{"1h", "5m", 5 * time.Minute, 12},
	{"24h", "1h", time.Hour, 24},
	{"7d", "1h", time.Hour, 7 * 24},
	{"30d", "1d", day, 30},
	{"90d", "1d", day, 90},
	{"1y", "1d", day, 365},
	{"max", "1d", day, 5*365 + 1},
}

func timeframeNames() []string {
	var names []string
	for _, t := range timeframes {
		names = append(names, t.name)
	}
	return names
}

func named(name string) timeframe {
	i := slices.IndexFunc(timeframes, func(t timeframe) bool { return t.name == name })
	return timeframes[i]
}

const (
	// cacheBytes bounds the encoded charts in memory.
	cacheBytes = 64 << 20
	// reuse is how old a chart may be when it is answered again, by the query's own clock.
	reuse = 5 * time.Second
)

// Unit answers the endpoints of charts.
type Unit struct {
	priceCache *views.PriceCache
	catalog    *views.Catalog
	candles    *views.Candles
	// prices are those of the past.
	prices views.PublishedPrices
	// yieldStore and charted are of yields.
	yieldStore *views.YieldStore
	charted    *views.RateCharts
	cached     *otter.Cache[chartKey, *made]
	bodies     *views.EntryCache[*query.Body]
}

// chartKey names a chart of a stretch of reuse.
type chartKey struct {
	coinID, timeframe, format string
	slot                      int64
}

// made is an encoded chart.
type made struct {
	chart   Chart
	body    *query.Body
	updated int64
	// at is when it was made, zero for one as of an instant.
	at time.Time
}

// New makes the unit.
func New(priceCache *views.PriceCache, catalog *views.Catalog, candles *views.Candles, prices views.PublishedPrices, yieldStore *views.YieldStore, rates *views.RateCharts) *Unit {
	return &Unit{priceCache: priceCache, catalog: catalog, candles: candles, prices: prices, yieldStore: yieldStore, charted: rates, bodies: views.NewEntryCache[*query.Body](priceCache),
		cached: otter.Must(&otter.Options[chartKey, *made]{
			MaximumWeight: cacheBytes,
			// The points beside the encoded chart are about as large.
			Weigher:          func(_ chartKey, m *made) uint32 { return uint32(2 * len(m.body.JSON())) },
			ExpiryCalculator: otter.ExpiryWriting[chartKey, *made](6 * reuse),
		})}
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{u.one(), u.several(), u.current(), u.rates()}
}

var coinParam = query.CoinParam("coinId", query.Path, "bitcoin")

var timeframeParam = query.Param{Name: "timeframe", Kind: query.Text, Default: "24h", Allowed: timeframeNames(),
	Doc: "Period. Steps are 5 minutes for 1h, one hour for 24h and 7d, one day for longer ones; max is 5 years."}

var asOfParam = query.AsOfParam("Point in time. The chart that was given then, up to the interval that was under way. What had closed, or was back-filled, within two seconds before may be missing. Default: now.")

var formatParam = query.Param{Name: "format", Kind: query.Text, Default: formatOHLC, Allowed: []string{formatOHLC, formatSimple}, Doc: "Candles (ohlc), or pairs of time and value (simple)."}

// find turns a name into a coin as candles are kept of it: one that no venue is read for has none.
func (u *Unit) find(name string) (schemas.Coin, bool) {
	found, ok := u.catalog.Snapshot().Find(name)
	switch {
	case !ok:
		return schemas.Coin{}, false
	case found.Own.Rank == 0:
		return schemas.Coin{ID: found.ID, Symbol: found.Symbol, Name: found.Name}, true
	}
	return found.Own, true
}

func (u *Unit) unknown(name string) error { return query.NoCoin(u.catalog.Snapshot(), name) }

// notTraded is why there is no chart: no venue of ours traded the coin in that time.
const notTraded = "not_traded"

// asked returns the chart that a request asks for: of now, or as of a past instant.
func (u *Unit) asked(ctx context.Context, r *query.Request, coin schemas.Coin, frame timeframe, format string) (*made, error) {
	asOf, past := r.Time("asOf")
	if !past {
		if err := r.OnlyWithAsOf(query.KnowledgeParam.Name); err != nil {
			return nil, err
		}
		return u.chart(ctx, coin, frame, format, r.Now)
	}
	candles, err := r.CandlesAsOf(ctx, u.candles, coin, frame.step, frame.intervals, asOf)
	if err != nil {
		return nil, err
	}
	return encoded(coin, frame, format, candles, asOf)
}

// chart returns a chart that is no older than reuse.
func (u *Unit) chart(ctx context.Context, coin schemas.Coin, frame timeframe, format string, now time.Time) (*made, error) {
	key := chartKey{coin.ID, frame.name, format, now.UnixNano() / int64(reuse)}
	return u.cached.Get(context.WithoutCancel(ctx), key, otter.LoaderFunc[chartKey, *made](func(ctx context.Context, _ chartKey) (*made, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return u.make(ctx, coin, frame, format, now)
	}))
}

func (u *Unit) make(ctx context.Context, coin schemas.Coin, frame timeframe, format string, now time.Time) (*made, error) {
	candles, err := u.candles.Read(ctx, coin, frame.step, frame.intervals, now)
	if err != nil {
		return nil, err
	}
	m, err := encoded(coin, frame, format, candles, now)
	m.at = now
	return m, err
}

// encoded is the chart of candles, the last of which is the one that a time is in.
func encoded(coin schemas.Coin, frame timeframe, format string, candles []schemas.Candle, now time.Time) (m *made, err error) {
	m = &made{chart: draw(coin, frame, format, candles, now)}
	if n := len(candles); n > 0 {
		m.updated = candles[n-1].Newest.UnixNano()
	}
	body := ChartBody{Data: m.chart}
	body.Meta.Count, body.Meta.LastUpdated = m.chart.Stats.TotalPoints, query.FormatTime(m.updated)
	if body.Meta.Count == 0 {
		body.Meta.Reason = notTraded
	}
	m.body, err = query.NewBody(body)
	return m, err
}

// simulated reports whether a coin's prices are invented.
func (u *Unit) simulated(coin schemas.Coin) bool {
	e := u.priceCache.Entry(coin)
	return e != nil && e.Price.Simulated
}
