package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/docs"
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
	"github.com/marketlog/marketlog/query/mcp"
	"github.com/marketlog/marketlog/query/pages"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/providers"
	yields "github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/records"
	"github.com/marketlog/marketlog/query/restatements"
	"github.com/marketlog/marketlog/query/sql"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/system"
	"github.com/marketlog/marketlog/query/usage"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/query/ws"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/read"
)

// queryRoles answer: REST and the stream.
// fresh, unless it is nil, is opened by the first fresh price.
func queryRoles(in *instance.Instance, at Ports, folds bool, backfilling func() string, fresh *firstFresh) ([]supervise.Role, error) {
	var roles []supervise.Role
	if at.api != nil {
		pepper, err := in.Pepper()
		if err != nil {
			return nil, err
		}
		in.Pages = &instance.Pages{Address: pagesAddress(at.api.addr, at.api.encrypted), Links: pages.NewLinks(time.Now)}
		api := &apiRole{in: in, front: at.api, pepper: pepper, folds: folds, backfilling: backfilling, fresh: fresh, noFolds: in.Config.Feeds == "none"}
		roles = append(roles, supervise.Role{Name: "query/api", Run: api.run, Ready: api.ready})
	}
	return roles, nil
}

// apiRole serves REST. Each run builds everything again from the log and the cache.
type apiRole struct {
	in     *instance.Instance
	front  *switchListener
	pepper []byte
	// folds means that the prices are made in this process, from feeds.
	folds bool
	// backfilling reports how far the back-fill of this process is; empty: it is over, or there is none.
	backfilling func() string
	// noFolds means that no process makes prices from feeds: prices may grow old.
	noFolds bool
	// fresh is notified of the first price that the folds have brought to the present; nil: nobody waits for it.
	fresh *firstFresh
	// young means that a price was fresh before.
	young  atomic.Bool
	server atomic.Pointer[query.Server]
}

func (a *apiRole) ready() bool {
	server := a.server.Load()
	return server != nil && len(server.Waiting()) == 0
}

func (a *apiRole) run(ctx context.Context) error {
	in := a.in
	store, err := in.History(ctx)
	if err != nil {
		return err
	}
	past := read.From(store)
	known := schemas.Coins()
	priceCache, rates, catalog := views.NewPriceCache(known), views.NewFXRates(), views.NewCatalog(known)
	// What the machine needs to make and hand on a price is a longer time by an accelerated clock.
	priceCache.SetStaleAfter(max(views.StaleAfter, time.Duration(in.Config.Sim.Speed)*acceleratedDelay))
	priceCache.RememberBy(in.Clock.Now)
	catalog.RememberBy(in.Clock.Now, priceCache.Steps())
	if err := views.MeasurePriceCache(in.Metrics, priceCache, in.Clock.Now); err != nil {
		return fmt.Errorf("registering the ages of prices: %w", err)
	}
	yieldStore := views.NewYieldStore()
	yieldStore.RememberBy(in.Clock.Now, priceCache.Steps())
	rateCharts := views.NewRateCharts(yieldStore, past)
	ratesTail := in.Tail(schemas.TopicQuotes, rateTail)
	yieldTail := in.Tail(schemas.TopicRates, views.RatesKept)
	referenceTail, rowsTail := in.Tail(schemas.TopicReferenceRaw, poll.RepeatedWithin), in.Tail(schemas.TopicMarkets, instance.MarketsTail)
	defiTail := in.Tail(schemas.TopicDefi, defiSpan)
	keysTail := in.Tail(schemas.TopicKeys, 0)
	table, err := keys.NewTable(a.pepper, keysTail.Waiting)
	if err != nil {
		return err
	}
	in.Keys.Store(table)
	defi := globalstats.NewDefi(catalog, past)
	ctx, stop := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	defer func() { stop(); _ = g.Wait() }()
	// What every answer needs is read first of all: as soon as the folds work off what came before the start, each round trip to
	// the log takes a tenth of a second and more.
	g.Go(func() error {
		return keysTail.Run(ctx, func(rec stream.TailRecord) error {
			table.Follow(rec.Key, rec.Value)
			return nil
		})
	})
	g.Go(func() error { return referenceTail.Run(ctx, catalog.ApplyReference) })
	g.Go(func() error { return rowsTail.Run(ctx, catalog.ApplyMarkets) })
	g.Go(func() error { return ratesTail.Run(ctx, rates.Apply) })
	g.Go(func() error { return yieldTail.Run(ctx, yieldStore.Apply) })
	g.Go(func() error { return defiTail.Run(ctx, defi.Apply) })
	start, err := in.FillPriceCache(ctx, priceCache)
	if err != nil {
		return err
	}
	pricesTail := in.Tail(schemas.TopicPrices, instance.PriceCacheRewind)
	if start != nil {
		pricesTail = stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: schemas.TopicPrices, Start: start, Rewind: instance.PriceCacheRewind, Dialer: in.Stream.Dialer, Log: in.Log})
	}
	refusedKeys := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "marketlog_key_records_refused_total",
		Help: "Records of keys.v1 that grant nothing, since they are not signed with the pepper of this installation or revive a key.",
	}, func() float64 { return float64(table.Refused()) })
	if err := in.Metrics.Register(refusedKeys); err != nil {
		return fmt.Errorf("registering the metrics of rejected key records: %w", err)
	}
	defer in.Metrics.Unregister(refusedKeys)
	limiter, done, err := newLimiter(in)
	if err != nil {
		return err
	}
	defer done()
	if err := limits.MeasureLimiter(in.Metrics, limiter); err != nil {
		return fmt.Errorf("registering the limits of requests: %w", err)
	}
	if err := limiter.Load(ctx); err != nil {
		return err
	}
	producer, err := in.Stream.NewProducer()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer producer.Close()
	meter := limits.NewMeter(limiter.Replica(), queryLog{producer}, time.Now)
	limiter.Measure(meter)
	streaming := ws.DefaultConfig()
	streaming.Origins, streaming.RingBytes = in.Config.Stream.Origins, in.Config.Stream.RingBytes
	streamPast, err := newStreamPast(ctx, in, store)
	if err != nil {
		return err
	}
	identity, err := streamPast.Identity(ctx)
	if err != nil {
		return err
	}
	log := views.NewLog(in.Stream, in.Archived)
	pastCurrencies, pastRows := views.NewPastCurrencies(catalog, log, past), views.NewPastRows(catalog, log, past)
	providing := providers.New(priceCache, catalog, yieldStore, past, venues())
	pegging := stablecoins.New(priceCache, catalog, past, stablecoins.Served{Sources: pastCurrencies, Rows: pastRows, Prices: past})
	pegging.Statistics().RememberBy(in.Clock.Now, priceCache.Steps())
	priced := prices.New(priceCache, catalog, views.NewConverter(priceCache, catalog, pastCurrencies), past, venues())
	channels, err := streamChannels(ctx, in, store, streamPast, priced, pegging, providing)
	if err != nil {
		return err
	}
	figures := views.NewFigures(priceCache, past, catalog.Measure)
	hub, err := ws.NewHub(streaming, ws.Deps{Prices: priceCache, Catalog: catalog, DayAgo: figures, Past: streamPast, Identity: identity, Channels: channels, Waiting: pricesTail.Waiting, Version: operations.Version(), Now: in.Clock.Now, Metrics: in.Metrics, Log: in.Log})
	if err != nil {
		return err
	}
	candles := views.NewCandles(priceCache, past)
	candles.RememberBy(in.Clock.Now, priceCache.Steps(), past)
	describing := coins.New(priceCache, catalog, yieldStore, candles, past)
	overrides, err := in.Overrides(ctx)
	if err != nil {
		return err
	}
	applyToChannels := hub.ApplyTo(schemas.TopicPrices)
	g.Go(func() error {
		return pricesTail.Run(ctx, func(rec stream.TailRecord) error {
			// The hub reads what changed from the price cache.
			return errors.Join(priceCache.Apply(rec), hub.Apply(rec), applyToChannels(rec))
		})
	})
	g.Go(func() error { return a.awaitFresh(ctx, priceCache) })
	// Whoever was here before has answered with what the log holds up to its end: an answer from before that end could
	// be older than one already given.
	select {
	case <-pricesTail.CaughtUp():
	case <-ctx.Done():
		return g.Wait()
	}
	if start == nil {
		if err := in.FillAbsentPrices(ctx, priceCache); err != nil {
			return err
		}
	}
	priceCache.Steps().Begin(in.Clock.Now)
	listener := a.front.listen()
	defer listener.Close() // then the front answers again
	market, currencies := globalstats.New(catalog, past), fiat.New(known, catalog, pastCurrencies, past)
	// What reads topics besides those of prices answers when these have been read; names of coins are of the catalog.
	cataloged := query.Settled(catalog.Settle, referenceTail.Waiting, rowsTail.Waiting)
	rated := query.Settled(yieldStore.Settle, yieldTail.Waiting)
	explaining := explain.New(explain.Deps{Prices: priceCache, Catalog: catalog, Yields: yieldStore, History: past, Log: log, Pegs: pegging.Statistics(), Currencies: pastCurrencies, Candles: candles, RateCharts: rateCharts})
	endpoints := explaining.Inline(slices.Concat(
		query.After(priced.Endpoints(), cataloged),
		query.After(charts.New(priceCache, catalog, candles, yieldStore, rateCharts).Endpoints(), rated, cataloged),
		query.After(yields.New(yieldStore, priceCache, catalog, past, yields.Served{
			Yields: views.NewPastYields(yieldStore, log, past), Rows: pastRows, Prices: past}, rateCharts, providing, venues()).Endpoints(), rated, cataloged),
		query.After(describing.Endpoints(), cataloged, rated),
		query.After(market.Endpoints(), cataloged),
		query.After(defi.Endpoints(), defiTail.Waiting),
		query.After(earn.New(known, catalog, past, venues()).Endpoints(), cataloged),
		query.After(pegging.Endpoints(), cataloged),
		query.After(currencies.Endpoints(), cataloged),
		query.After(providing.Endpoints(), rated, cataloged),
		query.After(symbols.New(catalog, priceCache, rates, past, overrides).Endpoints(), cataloged, ratesTail.Waiting),
		usage.New(limiter, past, time.Now).Endpoints(),
		query.After(explaining.Endpoints(), cataloged, rated),
		records.New(log, func() bool { return a.simulated(priceCache) }).Endpoints(),
		query.After(restatements.New(catalog, past, func() bool { return a.simulated(priceCache) }).Endpoints(), cataloged),
		corrections.New(past, func() bool { return a.simulated(priceCache) }).Endpoints(),
		system.New(in.Metrics, in.Config.Feeds == "sim").Endpoints(),
	), cataloged, rated)
	lacking := in.Lacking()
	server, err := a.newServer(listener, limiter, table, endpoints, hub, a.simulated(priceCache), []query.Readiness{
		{Name: "disk", Waiting: lacking["disk"]},
		{Name: "log", Waiting: lacking["log"]},
		{Name: "archive", Waiting: lacking["archive"]},
		{Name: "tables", Waiting: lacking["tables"]},
		{Name: "prices", Waiting: func() string { return cmp.Or(pricesTail.Waiting(), a.firstFold(priceCache), a.aged(priceCache)) }},
		{Name: "rates", Waiting: func() string { return cmp.Or(ratesTail.Waiting(), yieldTail.Waiting()) }},
		{Name: "coins", Waiting: func() string { return cmp.Or(referenceTail.Waiting(), rowsTail.Waiting()) }},
		{Name: "defi", Waiting: defiTail.Waiting},
		{Name: "backfill", Waiting: a.backfilling},
	})
	if err != nil {
		return err
	}
	a.server.Store(server)
	g.Go(func() error { return hub.Run(ctx) })
	afterFresh := func(run func(context.Context, *slog.Logger) error) {
		g.Go(func() error {
			if err := a.fresh.await(ctx); err != nil {
				return err
			}
			return run(ctx, in.Log)
		})
	}
	afterFresh(func(ctx context.Context, _ *slog.Logger) error {
		return followChannels(ctx, in, channels, hub)
	})
	afterFresh(func(ctx context.Context, log *slog.Logger) error {
		before, err := past.MinutesServed(ctx, views.MinutesServedSince(in.Clock.Now()))
		if err != nil { // who asks for such a minute gets one that was certainly served
			log.Warn("minutes that were served before the start are not known", "error", err)
		}
		catalog.Recall(before)
		return nil
	})
	afterFresh(figures.Run) // both read a day and more of candles
	afterFresh(describing.Run)
	afterFresh(pegging.Statistics().Run)
	afterFresh(candles.Run)
	g.Go(func() error { return market.Run(ctx, in.Log) })
	g.Go(func() error { return currencies.Run(ctx, in.Log) })
	g.Go(func() error { return limiter.Run(ctx, in.Log) })
	g.Go(func() error { return meter.Run(ctx, in.Log) })
	g.Go(func() error { return priceCache.Steps().Run(ctx, meter.Replica(), queryLog{producer}, in.Log) })
	g.Go(func() error { return server.Run(ctx) })
	return g.Wait()
}

// firstFold reports what the prices lack where this process makes them: one at all, and that the folds have come to the
// time at which it started. Where others make them, old ones are better than none.
func (a *apiRole) firstFold(priceCache *views.PriceCache) string {
	if !a.folds {
		return ""
	}
	if priceCache.Now() < a.in.Began.UnixNano() {
		return "the folds have not come to the present yet"
	}
	priced := false
	priceCache.Entries(func(*views.Entry) { priced = true })
	if !priced {
		return "no coin has a price yet"
	}
	return ""
}

// awaitFresh waits for the first fresh price of the folds, and notifies who waits for it.
func (a *apiRole) awaitFresh(ctx context.Context, priceCache *views.PriceCache) error {
	if a.fresh == nil {
		return nil
	}
	look := time.NewTicker(freshLook)
	defer look.Stop()
	for a.firstFold(priceCache) != "" || priceCache.Ages(a.in.Clock.Now()).Fresh == 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
	}
	a.fresh.open()
	return nil
}

// aged means that the prices have grown old, once they were young.
func (a *apiRole) aged(priceCache *views.PriceCache) string {
	if a.noFolds {
		return ""
	}
	switch ages := priceCache.Ages(a.in.Clock.Now()); {
	case ages.Fresh > 0:
		a.young.Store(true)
	case ages.Stale > 0 && ages.Newest < 0:
		return fmt.Sprintf("all prices are stale: the machine's clock was set back, and the log is %s ahead of it; prices go on when the clock has come to it", (-ages.Newest).Round(time.Second))
	case ages.Stale > 0 && a.young.Load():
		return fmt.Sprintf("all prices are stale, the newest is %s old", ages.Newest.Round(time.Second))
	}
	return ""
}

func (a *apiRole) newServer(listener net.Listener, limiter *limits.Limiter, table *keys.Table, endpoints []query.Endpoint, hub *ws.Hub, simulated bool, ready []query.Readiness) (*query.Server, error) {
	cfg := query.DefaultConfig()
	cfg.Listen, cfg.Auth = a.front.addr, query.AuthMode(a.in.Config.Auth.Mode)
	cfg.TrustedProxies, cfg.CORS = a.in.Config.Auth.TrustedProxies, a.in.Config.HTTP.CORS
	plans, err := a.in.Config.LoadPlans()
	if err != nil {
		return nil, err
	}
	if err := a.in.OpenSQLServer(); err != nil {
		return nil, err
	}
	statements := sql.New(a.in.KnownSQL)
	shown, err := pages.New(pages.Config{
		Listen: a.front.addr, Simulated: simulated, Hosts: a.in.Config.Page.Hosts, Version: operations.Version(),
		// Other processes may feed what this one shows, and not with what their simulator invents.
		Automatic: a.folds && a.in.Config.Feeds == "sim",
	}, pages.Deps{Pepper: a.pepper, Keys: table, Links: a.in.Pages.Links, SQL: statements.Served, Docs: docs.Files})
	if err != nil {
		return nil, err
	}
	var mounting error
	server, err := query.NewServer(cfg, query.Deps{
		Keys:      table,
		Sessions:  shown,
		Limiter:   limiter,
		Plans:     plans,
		Endpoints: endpoints,
		Mount: func(router fiber.Router, server *query.Server) {
			if mounting = hub.Mount(router, server); mounting != nil {
				return
			}
			statements.Mount(router, server)
			shown.Mount(router, server)
			if err := operations.MountSchemas(router); err != nil {
				mounting = fmt.Errorf("serving the schemas of the log: %w", err)
				return
			}
			mcpHandler, err := mcp.New(mcp.Config{Version: operations.Version(), Simulated: simulated}, server)
			if err != nil {
				mounting = fmt.Errorf("describing the tools: %w", err)
				return
			}
			mcpHandler.Mount(router)
		},
		Mounted:  []*huma.Operation{hub.Operation(), sql.Operation()},
		Ready:    ready,
		Listener: listener, TLS: a.front.tls,
		Now:     a.in.Clock.Now,
		Metrics: a.in.Metrics,
		Log:     a.in.Log,
		Version: operations.Version(),
	})
	return server, errors.Join(err, mounting)
}

// simulated reports whether invented prices are served: made in this process, or by others before it began.
func (a *apiRole) simulated(priceCache *views.PriceCache) bool {
	invented := a.in.Config.Feeds == "sim"
	priceCache.Entries(func(e *views.Entry) { invented = invented || e.Price.Simulated })
	return invented
}

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
