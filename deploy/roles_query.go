package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/earn"
	"github.com/marketlog/marketlog/query/fiat"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/mcp"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/providers"
	yields "github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/usage"
	"github.com/marketlog/marketlog/query/ws"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// queryRoles answer: REST and the stream.
func queryRoles(in *Instance, at ports, folds bool) ([]Role, error) {
	var roles []Role
	if at.api != nil {
		pepper, err := in.pepper()
		if err != nil {
			return nil, err
		}
		api := &apiRole{in: in, front: at.api, pepper: pepper, folds: folds, stands: in.Config.Feeds == "none"}
		roles = append(roles, Role{Name: "query/api", Run: api.run, Ready: api.ready})
	}
	return roles, nil
}

// apiRole serves REST. Each run builds everything anew from the log and the cache.
type apiRole struct {
	in     *Instance
	front  *front
	pepper []byte
	// folds says that the prices are made in this process, from feeds.
	folds bool
	// stands says that nobody makes prices for this process: they may grow old.
	stands bool
	// young says that a price was fresh before.
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
	known := schemas.Coins()
	board, rates, catalog := query.NewBoard(known), query.NewRates(), query.NewCatalog(known)
	// What the machine needs to make and hand on a price is a longer time by an accelerated clock.
	board.SetStaleAfter(max(query.StaleAfter, time.Duration(in.Config.Sim.Speed)*acceleratedDelay))
	board.RememberBy(in.Clock.Now)
	if err := query.MeasureBoard(in.Metrics, board, in.Clock.Now); err != nil {
		return fmt.Errorf("registering the ages of prices: %w", err)
	}
	book := query.NewRateBook()
	rateCharts := query.NewRateCharts(book, store)
	start, err := in.fillBoard(ctx, board)
	if err != nil {
		return err
	}
	pricesTail := in.tail(schemas.TopicPrices, boardRewind)
	if start != nil {
		pricesTail = stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: schemas.TopicPrices, Start: start, Rewind: boardRewind, Dialer: in.Stream.Dialer, Log: in.Log})
	}
	ratesTail := in.tail(schemas.TopicQuotes, rateTail)
	bookTail := in.tail(schemas.TopicRates, query.RatesKept)
	saidTail, rowsTail := in.tail(schemas.TopicReferenceRaw, producers.RepeatedWithin), in.tail(schemas.TopicMarkets, marketsTail)
	defiTail := in.tail(schemas.TopicDefi, defiSpan)
	keysTail := in.tail(schemas.TopicKeys, 0)
	table, err := keys.NewTable(a.pepper, keysTail.Waiting)
	if err != nil {
		return err
	}
	refusedKeys := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "marketlog_key_records_refused_total",
		Help: "Records of keys.v1 that grant nothing, since they are not signed with the pepper of this installation or revive a key.",
	}, func() float64 { return float64(table.Refused()) })
	if err := in.Metrics.Register(refusedKeys); err != nil {
		return fmt.Errorf("registering what was refused of the keys: %w", err)
	}
	defer in.Metrics.Unregister(refusedKeys)
	limiter, done, err := in.limiter()
	if err != nil {
		return err
	}
	defer done()
	if err := limiter.Load(ctx); err != nil {
		return err
	}
	producer, err := in.Stream.NewProducer()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer producer.Close()
	meter := query.NewMeter(limiter.Replica(), usageLog{producer}, time.Now)
	limiter.Measure(meter)
	streaming := ws.DefaultConfig()
	streaming.Origins = in.Config.Stream.Origins
	figures := query.NewFigures(board, store, catalog.Measure)
	hub, err := ws.NewHub(streaming, ws.Deps{Board: board, DayAgo: figures, Waiting: pricesTail.Waiting, Now: in.Clock.Now, Metrics: in.Metrics, Log: in.Log})
	if err != nil {
		return err
	}
	candles := query.NewCandles(board, store)
	describing := coins.New(board, catalog, book, candles, store)
	overrides, err := in.overrides(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return pricesTail.Run(ctx, func(rec stream.TailRecord) error {
			// The hub reads what changed from the board.
			return errors.Join(board.Apply(rec), hub.Apply(rec))
		})
	})
	// Whoever was here before has answered with what the log holds up to its end: an answer from before that end could
	// be older than one already given.
	select {
	case <-pricesTail.CaughtUp():
	case <-ctx.Done():
		return g.Wait()
	}
	listener := a.front.listen()
	defer listener.Close() // then the front answers again
	market, currencies := globalstats.New(catalog, store), fiat.New(known, catalog, store)
	defi := globalstats.NewDefi(store)
	providing := providers.New(board, catalog, book, store, venues())
	// Prices are there; what reads other topics answers when these have been read.
	cataloged := query.Settled(catalog.Settle, saidTail.Waiting, rowsTail.Waiting)
	rated := query.Settled(book.Settle, bookTail.Waiting)
	endpoints := slices.Concat(
		prices.New(board, query.NewConverter(board, catalog).After(cataloged), store, venues()).Endpoints(),
		query.After(charts.New(board, candles, book, rateCharts).Endpoints(), rated),
		query.After(yields.New(book, board, catalog, store, rateCharts, providing, venues()).Endpoints(), rated, cataloged),
		query.After(describing.Endpoints(), cataloged, rated),
		query.After(market.Endpoints(), cataloged),
		query.After(defi.Endpoints(), defiTail.Waiting),
		query.After(earn.New(known, catalog, store, venues()).Endpoints(), cataloged),
		query.After(stablecoins.New(board, catalog, store).Endpoints(), cataloged),
		query.After(currencies.Endpoints(), cataloged),
		query.After(providing.Endpoints(), rated, cataloged),
		query.After(symbols.New(catalog, board, rates, store, overrides).Endpoints(), cataloged, ratesTail.Waiting),
		usage.New(limiter, store, time.Now).Endpoints(),
	)
	lacking := in.lacking()
	server, err := a.newServer(listener, limiter, table, endpoints, hub, a.simulated(board), []query.Readiness{
		{Name: "disk", Waiting: lacking["disk"]},
		{Name: "log", Waiting: lacking["log"]},
		{Name: "tables", Waiting: lacking["tables"]},
		{Name: "prices", Waiting: func() string { return cmp.Or(pricesTail.Waiting(), a.firstFold(board), a.aged(board)) }},
		{Name: "rates", Waiting: func() string { return cmp.Or(ratesTail.Waiting(), bookTail.Waiting()) }},
		{Name: "coins", Waiting: func() string { return cmp.Or(saidTail.Waiting(), rowsTail.Waiting()) }},
		{Name: "defi", Waiting: defiTail.Waiting},
		{Name: "backfill", Waiting: in.own.waiting},
	})
	if err != nil {
		return err
	}
	a.server.Store(server)
	g.Go(func() error { return hub.Run(ctx) })
	g.Go(func() error { return figures.Run(ctx, in.Log) })
	g.Go(func() error { return ratesTail.Run(ctx, rates.Apply) })
	g.Go(func() error { return bookTail.Run(ctx, book.Apply) })
	g.Go(func() error { return saidTail.Run(ctx, catalog.ApplyReference) })
	g.Go(func() error { return rowsTail.Run(ctx, catalog.ApplyMarkets) })
	g.Go(func() error { return defiTail.Run(ctx, defi.Apply) })
	g.Go(func() error { return describing.Run(ctx, in.Log) })
	g.Go(func() error { return market.Run(ctx, in.Log) })
	g.Go(func() error { return currencies.Run(ctx, in.Log) })
	g.Go(func() error {
		return keysTail.Run(ctx, func(rec stream.TailRecord) error {
			table.Follow(rec.Key, rec.Value)
			return nil
		})
	})
	g.Go(func() error { return limiter.Run(ctx, in.Log) })
	g.Go(func() error { return meter.Run(ctx, in.Log) })
	g.Go(func() error { return server.Run(ctx) })
	return g.Wait()
}

// firstFold says what the prices lack where this process makes them: one at all, and that the folds have come to the
// time at which it started. Where others make them, old ones are better than none.
func (a *apiRole) firstFold(board *query.Board) string {
	if !a.folds {
		return ""
	}
	if board.Now() < a.in.Began.UnixNano() {
		return "the folds have not come to the present yet"
	}
	priced := false
	board.Entries(func(*query.Entry) { priced = true })
	if !priced {
		return "no coin has a price yet"
	}
	return ""
}

// aged says that the prices have grown old, once they were young.
func (a *apiRole) aged(board *query.Board) string {
	if a.stands {
		return ""
	}
	switch ages := board.Ages(a.in.Clock.Now()); {
	case ages.Fresh > 0:
		a.young.Store(true)
	case ages.Stale > 0 && ages.Newest < 0:
		return fmt.Sprintf("all prices are stale: the machine's clock was set back, and the log is %s ahead of it; prices go on when the clock has come to it", (-ages.Newest).Round(time.Second))
	case ages.Stale > 0 && a.young.Load():
		return fmt.Sprintf("all prices are stale, the newest is %s old", ages.Newest.Round(time.Second))
	}
	return ""
}

func (a *apiRole) newServer(listener net.Listener, limiter *query.Limiter, table *keys.Table, endpoints []query.Endpoint, hub *ws.Hub, simulated bool, ready []query.Readiness) (*query.Server, error) {
	cfg := query.DefaultConfig()
	cfg.Listen, cfg.Auth = a.front.addr, query.AuthMode(a.in.Config.Auth.Mode)
	cfg.TrustedProxies = a.in.Config.Auth.TrustedProxies
	plans, err := a.in.Config.plans()
	if err != nil {
		return nil, err
	}
	var mounting error
	server, err := query.NewServer(cfg, query.Deps{
		Keys:      table,
		Limiter:   limiter,
		Plans:     plans,
		Endpoints: endpoints,
		Mount: func(router fiber.Router, server *query.Server) {
			hub.Mount(router, server)
			if err := mountSchemas(router); err != nil {
				mounting = fmt.Errorf("serving the schemas of the log: %w", err)
				return
			}
			door, err := mcp.New(mcp.Config{Version: version(), Simulated: simulated}, server)
			if err != nil {
				mounting = fmt.Errorf("describing the tools: %w", err)
				return
			}
			door.Mount(router)
		},
		Ready:    ready,
		Listener: listener, TLS: a.front.tls,
		Now:     a.in.Clock.Now,
		Metrics: a.in.Metrics,
		Log:     a.in.Log,
		Version: version(),
	})
	return server, errors.Join(err, mounting)
}

// simulated says whether invented prices are served: made in this process, or by others before it began.
func (a *apiRole) simulated(board *query.Board) bool {
	invented := a.in.Config.Feeds == "sim"
	board.Entries(func(e *query.Entry) { invented = invented || e.Price.Simulated })
	return invented
}

// marketsTail is how far before its end the topic of market rows is read at the start: each row was repeated within it.
const marketsTail = processors.StateEvery + 5*time.Minute

// defiSpan is how far before its end the topic of DeFi is read at the start: a summary was written within it.
const defiSpan = 10 * time.Minute

// boardRewind is how far before its end the topic of prices is read where neither the cache nor the ledger knows an
// offset: every price that stands was written within it.
const boardRewind = time.Minute

// acceleratedDelay is what a price may take from its venue to an answer, by the machine's clock, before it counts as
// stale on an accelerated one.
const acceleratedDelay = 2 * time.Second

func (in *Instance) tail(topic string, rewind time.Duration) *stream.Tail {
	return stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: topic, Rewind: rewind, Dialer: in.Stream.Dialer, Log: in.Log})
}

// fillBoard loads the latest prices from the cache, from ClickHouse if that is empty, and returns
// where the tail of prices.v1 begins.
func (in *Instance) fillBoard(ctx context.Context, board *query.Board) (map[int32]stream.TailStart, error) {
	cache, err := in.Latest()
	if err != nil {
		return nil, err
	}
	topic, err := schemas.TopicNamed(schemas.TopicPrices)
	if err != nil {
		return nil, err
	}
	snapshot, err := cache.Load(ctx, topic.Partitions)
	if err != nil {
		return nil, err
	}
	if len(snapshot.Records) == 0 {
		return in.fillBoardFromHistory(ctx, board)
	}
	for _, withReason := range []bool{false, true} {
		for _, r := range snapshot.Records {
			if (r.Price.Reason != "") != withReason {
				continue
			}
			record := &eventsv1.PriceRecord{Mark: r.Mark, Body: &eventsv1.PriceRecord_Price{Price: r.Price}}
			if err := board.Apply(stream.TailRecord{Partition: r.Partition, Offset: r.Offset, Marked: record}); err != nil {
				return nil, err
			}
		}
	}
	start := map[int32]stream.TailStart{}
	for p, next := range snapshot.Next {
		start[p] = stream.TailStart{Offset: next}
	}
	return start, nil
}

// beforeAll is the offset given to what history tells: of records of one second, any of the topic is newer.
const beforeAll = -1

// fillBoardFromHistory begins the tail where the ledger stands: all before that is in history.
func (in *Instance) fillBoardFromHistory(ctx context.Context, board *query.Board) (map[int32]stream.TailStart, error) {
	store, err := in.History(ctx)
	if err != nil {
		return nil, err
	}
	// Read first: rows that are written meanwhile are told twice, none is missed.
	progress, err := store.Progress(ctx, schemas.TopicPrices, 0)
	if err != nil {
		return nil, err
	}
	records, err := store.LatestPrices(ctx)
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		if err := board.Apply(stream.TailRecord{Partition: rec.Mark.GetPartition(), Offset: beforeAll, Marked: rec}); err != nil {
			return nil, err
		}
	}
	start := map[int32]stream.TailStart{}
	for p, at := range progress {
		start[p] = stream.TailStart{Offset: at.Next, Marks: slices.Collect(maps.Values(at.Marks))}
	}
	return start, nil
}

// venues are the sources of prices, as the query side needs to know them.
func venues() []query.Provider {
	var list []query.Provider
	for _, v := range exchanges.List() {
		list = append(list, query.Provider{Slug: v.Slug, Name: v.Name, Serves: v.Countries.Served, Refuses: v.Countries.Refused,
			Terms: v.Countries.Terms, Quoted: v.Countries.Quoted})
	}
	return list
}

// pepper is the secret of this installation's key hashes, made on the first start. Every process of
// an installation needs the same one.
func (in *Instance) pepper() ([]byte, error) {
	if path := in.Config.Auth.PepperFile; path != "" {
		secret, err := readSecret("auth.pepper_file", path)
		return []byte(secret), err
	}
	path := in.Dir.Path("pepper")
	secret, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		// Renamed into place: half a pepper would end every key that was made with it.
		secret = keys.NewPepper()
		if err = os.WriteFile(path+".new", secret, 0o600); err == nil {
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pepper of the keys: %w", err)
	}
	if len(secret) < keys.PepperLength {
		return nil, fmt.Errorf("reading the pepper of the keys: %s has %d bytes instead of %d: restore it from a backup, or remove it and issue all keys anew: those that there are have ended with it", path, len(secret), keys.PepperLength)
	}
	return secret, nil
}
