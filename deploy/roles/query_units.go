package roles

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/corrections"
	"github.com/marketlog/marketlog/query/earn"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/fiat"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/providers"
	yields "github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/records"
	"github.com/marketlog/marketlog/query/restatements"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/system"
	"github.com/marketlog/marketlog/query/usage"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/query/ws"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
)

// defiSpan is how far before its end the topic of DeFi is read at the start: a summary was written within it.
const defiSpan = 10 * time.Minute

// acceleratedDelay is what a price may take from its venue to an answer, by the machine's clock, before it counts as
// stale on an accelerated one.
const acceleratedDelay = 2 * time.Second

// venues are the sources of prices, as the query side needs to know them.
func venues() []views.Provider {
	var list []views.Provider
	for _, v := range exchanges.List() {
		list = append(list, views.Provider{Slug: v.Slug, Name: v.Name, Serves: v.Countries.Served, Refuses: v.Countries.Refused,
			Terms: v.Countries.Terms, Quoted: v.Countries.Quoted})
	}
	return list
}

func bySlug(list []views.Provider) map[string]views.Provider {
	bySlug := make(map[string]views.Provider, len(list))
	for _, p := range list {
		bySlug[p.Slug] = p
	}
	return bySlug
}

// reading is what answers are made from: views, the tails that fill them, and the tables.
type reading struct {
	in         *instance.Instance
	past       read.Reader
	log        *views.Log
	priceCache *views.PriceCache
	quotes     *views.FXRates
	catalog    *views.Catalog
	yields     *views.YieldStore
	rateCharts *views.RateCharts
	pastYields *views.PastYields
	candles    *views.Candles
	keys       *keys.Table
	defi       *views.DefiStore

	quotesTail, yieldTail, referenceTail, rowsTail, defiTail, keysTail *stream.Tail
}

func newReading(in *instance.Instance, store *history.Store, pepper []byte) (*reading, error) {
	known := schemas.Coins()
	r := &reading{
		in: in, past: read.From(store), log: views.NewLog(in.Stream, in.Archived),
		priceCache: views.NewPriceCache(known), quotes: views.NewFXRates(), catalog: views.NewCatalog(known), yields: views.NewYieldStore(), defi: views.NewDefiStore(),
		quotesTail: in.Tail(schemas.TopicQuotes, rateTail), yieldTail: in.Tail(schemas.TopicRates, views.RatesKept),
		referenceTail: in.Tail(schemas.TopicReferenceRaw, poll.RepeatedWithin), rowsTail: in.Tail(schemas.TopicMarkets, instance.MarketsTail),
		defiTail: in.Tail(schemas.TopicDefi, defiSpan), keysTail: in.Tail(schemas.TopicKeys, 0),
	}
	// What the machine needs to make and hand on a price is a longer time by an accelerated clock.
	r.priceCache.SetStaleAfter(max(views.StaleAfter, time.Duration(in.Config.Sim.Speed)*acceleratedDelay))
	r.priceCache.RememberBy(in.Clock.Now)
	r.priceCache.ReadPastFrom(r.log)
	steps := r.priceCache.Steps()
	r.catalog.RememberBy(in.Clock.Now, steps)
	r.yields.RememberBy(in.Clock.Now, steps)
	r.defi.RememberBy(in.Clock.Now, steps)
	r.candles = views.NewCandles(r.priceCache, r.past)
	r.candles.RememberBy(in.Clock.Now, steps, r.past)
	r.rateCharts, r.pastYields = views.NewRateCharts(r.yields, r.past), views.NewPastYields(r.yields, r.log, r.past)
	r.rateCharts.RememberBy(in.Clock.Now, steps, r.past, r.pastYields)
	var err error
	r.keys, err = keys.NewTable(pepper, r.keysTail.Waiting)
	return r, err
}

// follow fills the views but that of prices. What every answer needs is read first of all: as soon as the folds work off what came before the
// start, each round trip to the log takes a tenth of a second and more.
func (r *reading) follow(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error {
		return r.keysTail.Run(ctx, func(rec stream.TailRecord) error {
			r.keys.Follow(rec.Key, rec.Value)
			return nil
		})
	})
	g.Go(func() error { return r.referenceTail.Run(ctx, r.catalog.ApplyReference) })
	g.Go(func() error { return r.rowsTail.Run(ctx, r.catalog.ApplyMarkets) })
	g.Go(func() error { return r.quotesTail.Run(ctx, r.quotes.Apply) })
	g.Go(func() error { return r.yieldTail.Run(ctx, r.yields.Apply) })
	g.Go(func() error { return r.defiTail.Run(ctx, r.defi.Apply) })
}

// measure has the views measured until it is undone.
func (r *reading) measure() (undo func(), err error) {
	if err := views.MeasurePriceCache(r.in.Metrics, r.priceCache, r.in.Clock.Now); err != nil {
		return nil, fmt.Errorf("registering the ages of prices: %w", err)
	}
	refusedKeys := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "marketlog_key_records_refused_total",
		Help: "Records of keys.v1 that grant nothing, since they are not signed with the pepper of this installation or revive a key.",
	}, func() float64 { return float64(r.keys.Refused()) })
	if err := r.in.Metrics.Register(refusedKeys); err != nil {
		return nil, fmt.Errorf("registering the metrics of rejected key records: %w", err)
	}
	return func() { r.in.Metrics.Unregister(refusedKeys) }, nil
}

// units answer, each of its endpoints, from a reading.
type units struct {
	*reading
	overrides *schemas.SymbolOverrides
	limiter   *limits.Limiter

	pastCurrencies *views.PastCurrencies
	pastRows       *views.PastRows
	pastCoins      *views.PastCoins
	figures        *views.Figures
	providing      *providers.Unit
	pegging        *stablecoins.Unit
	priced         *prices.Unit
	describing     *coins.Unit
	market         *globalstats.Unit
	currencies     *fiat.Unit
}

func newUnits(r *reading, overrides *schemas.SymbolOverrides, limiter *limits.Limiter) *units {
	u := &units{reading: r, overrides: overrides, limiter: limiter}
	u.pastCurrencies, u.pastRows = views.NewPastCurrencies(r.catalog, r.log, r.past), views.NewPastRows(r.catalog, r.log, r.past)
	u.figures = views.NewFigures(r.priceCache, r.past, r.catalog.Measure)
	u.providing = providers.New(r.priceCache, r.catalog, r.yields, r.past, providers.Served{Sources: u.pastCurrencies, Yields: r.pastYields, Prices: r.past}, venues())
	u.pegging = stablecoins.New(r.priceCache, r.catalog, r.past, stablecoins.Served{Sources: u.pastCurrencies, Rows: u.pastRows, Prices: r.past, Candles: r.candles})
	u.pegging.Statistics().RememberBy(r.in.Clock.Now, r.priceCache.Steps())
	u.priced = prices.New(r.priceCache, r.catalog, views.NewConverter(r.priceCache, r.catalog, u.pastCurrencies), r.past, venues())
	u.pastCoins = views.NewPastCoins(r.catalog, u.pastRows, r.log, r.past)
	u.describing = coins.New(r.priceCache, r.catalog, r.yields, r.candles, coins.Served{Coins: u.pastCoins, Yields: r.pastYields}, r.past)
	u.market = globalstats.New(r.catalog, globalstats.Served{Summaries: views.NewPastSummaries(r.catalog, r.log, r.past), Coins: u.pastCoins, Sources: u.pastCurrencies}, r.past)
	u.currencies = fiat.New(schemas.Coins(), r.catalog, u.pastCurrencies, r.past)
	return u
}

// newHub makes the hub of the stream, with its channels.
func (u *units) newHub(ctx context.Context, store *history.Store, pricesTail *stream.Tail) (*ws.Hub, []query.Channel, error) {
	streaming := ws.DefaultConfig()
	streaming.Origins, streaming.RingBytes = u.in.Config.Stream.Origins, u.in.Config.Stream.RingBytes
	streamPast, err := newStreamPast(ctx, u.in, store)
	if err != nil {
		return nil, nil, err
	}
	identity, err := streamPast.Identity(ctx)
	if err != nil {
		return nil, nil, err
	}
	channels, err := streamChannels(ctx, u.in, store, streamPast, u.priced, u.pegging, u.providing)
	if err != nil {
		return nil, nil, err
	}
	hub, err := ws.NewHub(streaming, ws.Deps{Prices: u.priceCache, Catalog: u.catalog, DayAgo: u.figures, Past: streamPast, Identity: identity, Channels: channels, Waiting: pricesTail.Waiting,
		Version: operations.Version(), Now: u.in.Clock.Now, Metrics: u.in.Metrics, Log: u.in.Log})
	return hub, channels, err
}

// endpoints are those of all units. What reads topics besides those of prices answers when these have been read; names of coins are of the catalog.
func (u *units) endpoints(simulated func() bool) []query.Endpoint {
	cataloged := query.Settled(u.catalog.Settle, u.referenceTail.Waiting, u.rowsTail.Waiting)
	rated := query.Settled(u.yields.Settle, u.yieldTail.Waiting)
	naming := symbols.New(u.catalog, u.priceCache, u.quotes, u.pastCoins, u.past, u.overrides)
	pastDefi := views.NewPastDefi(u.defi, u.log, u.past)
	explaining := explain.New(explain.Deps{Prices: u.priceCache, Catalog: u.catalog, Yields: u.yields, History: u.past, Log: u.log, Pegs: u.pegging.Statistics(), Currencies: u.pastCurrencies, Coins: u.pastCoins, Defi: pastDefi,
		Candles: u.candles, RateCharts: u.rateCharts, Symbols: naming, Providers: bySlug(venues())})
	return explaining.Inline(slices.Concat(
		query.After(u.priced.Endpoints(), cataloged),
		query.After(charts.New(u.priceCache, u.catalog, u.candles, u.past, u.yields, u.rateCharts).Endpoints(), rated, cataloged),
		query.After(yields.New(u.yields, u.priceCache, u.catalog, u.past, yields.Served{
			Yields: u.pastYields, Rows: u.pastRows, Prices: u.past}, u.rateCharts, u.providing, venues()).Endpoints(), rated, cataloged),
		query.After(u.describing.Endpoints(), cataloged, rated),
		query.After(u.market.Endpoints(), cataloged),
		query.After(globalstats.NewDefi(u.catalog, u.defi, pastDefi, u.pastCoins, u.past).Endpoints(), u.defiTail.Waiting),
		query.After(earn.New(schemas.Coins(), u.catalog, u.past, venues()).Endpoints(), cataloged),
		query.After(u.pegging.Endpoints(), cataloged),
		query.After(u.currencies.Endpoints(), cataloged),
		query.After(u.providing.Endpoints(), rated, cataloged),
		query.After(naming.Endpoints(), cataloged, u.quotesTail.Waiting),
		usage.New(u.limiter, u.past, time.Now).Endpoints(),
		query.After(explaining.Endpoints(), cataloged, rated, u.quotesTail.Waiting),
		records.New(u.log, simulated).Endpoints(),
		query.After(restatements.New(u.catalog, u.past, simulated).Endpoints(), cataloged),
		corrections.New(u.past, simulated).Endpoints(),
		system.New(u.in.Metrics, u.in.Config.Feeds == "sim").Endpoints(),
	), cataloged, rated, u.quotesTail.Waiting)
}

// run keeps what units hold up to date; what reads a day and more of candles waits for the first fresh price.
func (u *units) run(ctx context.Context, g *errgroup.Group, afterFresh func(func(context.Context, *slog.Logger) error)) {
	afterFresh(func(ctx context.Context, log *slog.Logger) error {
		before, err := u.past.MinutesServed(ctx, views.MinutesServedSince(u.in.Clock.Now()))
		if err != nil { // who asks for such a minute gets one that was certainly served
			log.Warn("minutes that were served before the start are not known", "error", err)
		}
		u.catalog.Recall(before)
		return nil
	})
	afterFresh(u.figures.Run)
	afterFresh(u.describing.Run)
	afterFresh(u.pegging.Statistics().Run)
	afterFresh(u.candles.Run)
	afterFresh(u.rateCharts.Run)
	g.Go(func() error { return u.market.Run(ctx, u.in.Log) })
	g.Go(func() error { return u.currencies.Run(ctx, u.in.Log) })
}
