package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/docs"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/mcp"
	"github.com/marketlog/marketlog/query/pages"
	"github.com/marketlog/marketlog/query/sql"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/query/ws"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
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
	r, err := newReading(in, store, a.pepper)
	if err != nil {
		return err
	}
	in.Keys.Store(r.keys)
	ctx, stop := context.WithCancel(ctx)
	g, ctx := errgroup.WithContext(ctx)
	defer func() { stop(); _ = g.Wait() }()
	r.follow(ctx, g)
	start, err := in.FillPriceCache(ctx, r.priceCache)
	if err != nil {
		return err
	}
	pricesTail := in.Tail(schemas.TopicPrices, instance.PriceCacheRewind)
	if start != nil {
		pricesTail = stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: schemas.TopicPrices, Start: start, Rewind: instance.PriceCacheRewind, Dialer: in.Stream.Dialer, Log: in.Log})
	}
	unmeasure, err := r.measure()
	if err != nil {
		return err
	}
	defer unmeasure()
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
	overrides, err := in.Overrides(ctx)
	if err != nil {
		return err
	}
	u := newUnits(r, overrides, limiter)
	hub, channels, err := u.newHub(ctx, store, pricesTail)
	if err != nil {
		return err
	}
	applyToChannels := hub.ApplyTo(schemas.TopicPrices)
	g.Go(func() error {
		return pricesTail.Run(ctx, func(rec stream.TailRecord) error {
			// The hub reads what changed from the price cache.
			return errors.Join(r.priceCache.Apply(rec), hub.Apply(rec), applyToChannels(rec))
		})
	})
	g.Go(func() error { return a.awaitFresh(ctx, r.priceCache) })
	// Whoever was here before has answered with what the log holds up to its end: an answer from before that end could
	// be older than one already given.
	select {
	case <-pricesTail.CaughtUp():
	case <-ctx.Done():
		return g.Wait()
	}
	if start == nil {
		if err := in.FillAbsentPrices(ctx, r.priceCache); err != nil {
			return err
		}
	}
	r.priceCache.Steps().Begin(in.Clock.Now)
	listener := a.front.listen()
	defer listener.Close() // then the front answers again
	server, err := a.newServer(listener, limiter, meter.Replica(), func() { r.catalog.Snapshot() }, r.keys, u.endpoints(func() bool { return a.simulated(r.priceCache) }), hub, a.simulated(r.priceCache), a.readiness(r, pricesTail))
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
	u.run(ctx, g, afterFresh)
	g.Go(func() error { return limiter.Run(ctx, in.Log) })
	g.Go(func() error { return meter.Run(ctx, in.Log) })
	g.Go(func() error { return r.priceCache.Steps().Run(ctx, meter.Replica(), queryLog{producer}, in.Log) })
	g.Go(func() error { return server.Run(ctx) })
	return g.Wait()
}

// readiness is what has to be there for answers to be of the present.
func (a *apiRole) readiness(r *reading, pricesTail *stream.Tail) []query.Readiness {
	lacking := a.in.Lacking()
	return []query.Readiness{
		{Name: "disk", Waiting: lacking["disk"]},
		{Name: "log", Waiting: lacking["log"]},
		{Name: "archive", Waiting: lacking["archive"]},
		{Name: "tables", Waiting: lacking["tables"]},
		{Name: "prices", Waiting: func() string { return cmp.Or(pricesTail.Waiting(), a.firstFold(r.priceCache), a.aged(r.priceCache)) }},
		{Name: "rates", Waiting: func() string { return cmp.Or(r.quotesTail.Waiting(), r.yieldTail.Waiting()) }},
		{Name: "coins", Waiting: func() string { return cmp.Or(r.referenceTail.Waiting(), r.rowsTail.Waiting()) }},
		{Name: "defi", Waiting: r.defiTail.Waiting},
		{Name: "backfill", Waiting: a.backfilling},
	}
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

func (a *apiRole) newServer(listener net.Listener, limiter *limits.Limiter, replica string, refresh func(), table *keys.Table, endpoints []query.Endpoint, hub *ws.Hub, simulated bool, ready []query.Readiness) (*query.Server, error) {
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
		Replica: replica,
		Refresh: refresh,
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
