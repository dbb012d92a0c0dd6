package adapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/producers"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// ExchangeConfig is what an operator may decide about one venue.
type ExchangeConfig struct {
	// URLs replace the venue's defaults; an empty one keeps the default.
	URLs URLs
	// Select chooses the markets to subscribe to.
	Select func(Instrument) bool
	// Listed takes each list of markets that the venue has sent, whole, those that trade before those that are halted; nil: nobody asks. It must not wait.
	Listed func([]Instrument)
	// Simulated marks every tick as invented: the URLs lead to the simulator.
	Simulated bool
}

// Intervals of the engine. Freshness is judged at 120 s, so a market is asked for well before.
const (
	discoverEvery = time.Hour
	// discoverPause keeps a venue whose feed names markets that its list never will from being
	// asked for the list with every message.
	discoverPause = time.Minute
	pollEvery     = 30 * time.Second
	quietAfter    = 60 * time.Second
	maxBackoff    = time.Minute
)

// Exchange reads one venue's public feeds into the outbox: it finds the markets, keeps as many
// connections as they need, and asks the HTTP interface about markets that the feed is silent on.
type Exchange struct {
	venue  Venue
	config ExchangeConfig
	fetch  Fetcher
	out    producers.Outbox
	clock  producers.Clock
	dialer *http.Client
	log    *slog.Logger

	connects *producers.Budget
	// unknown asks for a discovery; one request waiting is enough.
	unknown chan struct{}
	sockets []*socket
	markets markets
	stats   exchangeStats
}

// NewExchange prepares a venue. dialer opens the WebSocket connections; nil is the default client. Its redirects are followed
// on the venue's host only.
func NewExchange(v Venue, c ExchangeConfig, fetch Fetcher, out producers.Outbox, clock producers.Clock, dialer *http.Client, log *slog.Logger) *Exchange {
	if c.URLs.Stream == "" {
		c.URLs.Stream = v.URLs.Stream
	}
	if c.URLs.REST == "" {
		c.URLs.REST = v.URLs.REST
	}
	var staying http.Client
	if dialer != nil {
		staying = *dialer
	}
	staying.CheckRedirect = producers.StayOnHost
	return &Exchange{
		venue: v, config: c, fetch: fetch, out: out, clock: clock, dialer: &staying, log: log.With("venue", v.Slug),
		connects: producers.NewBudget(clock, v.Limits.Connects, v.Limits.ConnectsPer),
		unknown:  make(chan struct{}, 1),
		markets:  markets{byName: map[string]*market{}},
		stats:    newExchangeStats(),
	}
}

// Run reads until the context ends. Whatever the venue does is logged, recorded and retried:
// it never returns because of it.
func (x *Exchange) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return x.discoverLoop(ctx, g) })
	if x.venue.Tickers != nil {
		g.Go(func() error { return x.pollLoop(ctx) })
	}
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// discoverLoop reads the list of instruments and starts the connections that its markets need.
func (x *Exchange) discoverLoop(ctx context.Context, g *errgroup.Group) error {
	for failures := 0; ; {
		list, halted, err := x.discover(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			x.log.Warn("reading the instruments failed", "error", err)
			if err := producers.Sleep(ctx, x.clock, backoff(failures)); err != nil {
				return err
			}
			failures++
			continue
		}
		failures = 0
		if x.config.Listed != nil {
			x.config.Listed(slices.Concat(list, halted))
		}
		for _, s := range x.assign(x.markets.update(list, x.config.Select)) {
			g.Go(func() error { return s.run(ctx) })
		}
		next := x.clock.After(discoverEvery)
		if err := producers.Sleep(ctx, x.clock, discoverPause); err != nil {
			return err
		}
		select {
		case <-next:
		case <-x.unknown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// discover reads the markets that trade, and those that are listed and do not.
func (x *Exchange) discover(ctx context.Context) (trading, halted []Instrument, err error) {
	for _, path := range x.venue.Listing {
		body, err := x.fetch.Fetch(ctx, http.MethodGet, x.config.URLs.REST+path)
		if err != nil {
			return nil, nil, fmt.Errorf("fetching instruments: %w", err)
		}
		list, err := x.venue.Instruments(path, body)
		if err != nil {
			return nil, nil, fmt.Errorf("reading instruments of %s: %w", path, err)
		}
		trading = append(trading, list...)
		if x.venue.Halted == nil {
			continue
		}
		if list, err = x.venue.Halted(path, body); err != nil {
			return nil, nil, fmt.Errorf("reading halted instruments of %s: %w", path, err)
		}
		halted = append(halted, list...)
	}
	if len(trading) == 0 {
		return nil, nil, errors.New("the list of instruments is empty")
	}
	return trading, halted, nil
}

// assign spreads the markets over the connections and returns the ones that are new. A market
// stays where it is: moving it would lose messages.
func (x *Exchange) assign(selected []Instrument) (started []*socket) {
	left := make(map[string]Instrument, len(selected))
	for _, in := range selected {
		left[in.Symbol] = in
	}
	keep := make([][]Instrument, len(x.sockets))
	for i, s := range x.sockets {
		for _, in := range s.wanted() {
			if now, ok := left[in.Symbol]; ok {
				keep[i] = append(keep[i], now)
				delete(left, in.Symbol)
			}
		}
	}
	i := 0
	for _, in := range selected {
		if _, homeless := left[in.Symbol]; !homeless {
			continue
		}
		for i < len(keep) && len(keep[i]) >= x.venue.Limits.MarketsPerSocket {
			i++
		}
		if i == len(keep) {
			s := newSocket(x)
			x.sockets, keep, started = append(x.sockets, s), append(keep, nil), append(started, s)
		}
		keep[i] = append(keep[i], in)
	}
	for i, s := range x.sockets {
		s.want(keep[i])
	}
	x.stats.markets.Store(int64(len(selected)))
	return started
}

// pollLoop polls the HTTP interface for quiet markets: venues send changes only, and a price
// that does not change is still a price. While the feed is down polling replaces it.
func (x *Exchange) pollLoop(ctx context.Context) error {
	var out Out
	// failing are the markets whose own ticker could not be had when it was last asked for, as of one that was delisted since the list was
	// read: one warning for each, not one a round.
	failing := map[string]bool{}
	every, after := pollEvery, quietAfter
	if x.venue.Polled > 0 {
		every, after = x.venue.Polled, 0
	}
	for {
		if err := producers.Sleep(ctx, x.clock, every); err != nil {
			return err
		}
		quiet := x.markets.quiet(x.clock.Now().Add(-after).UnixNano())
		if len(quiet) == 0 {
			continue
		}
		for _, q := range x.venue.Tickers(quiet) {
			body, err := x.fetch.Fetch(ctx, http.MethodGet, x.config.URLs.REST+q.Path)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				level := slog.LevelWarn
				if failing[q.Symbol] {
					level = slog.LevelDebug
				}
				x.log.Log(ctx, level, "requesting a ticker failed", "path", q.Path, "error", err)
				if q.Symbol != "" {
					failing[q.Symbol] = true
				}
				continue
			}
			delete(failing, q.Symbol)
			out.Reset()
			err = recoverDecode(func() error { return x.venue.DecodeREST(q.Path, body, &out) })
			for i := range out.Events {
				if out.Events[i].Symbol == "" {
					out.Events[i].Symbol = q.Symbol
				}
			}
			x.publish(&out, err, body, answerContext(q), x.clock.Now().UnixNano())
		}
	}
}

// publish passes the contents of a message to the outbox. err is the codec's error for the whole message, context what it
// cannot be read without.
func (x *Exchange) publish(out *Out, err error, payload, context []byte, received int64) {
	admitted, unknown := x.markets.admit(out.Events, received)
	for _, a := range admitted {
		t := tick(x.venue.Slug, a.in, a.event, received)
		t.Simulated = x.config.Simulated
		x.out.Tick(t)
	}
	if len(admitted) > 0 {
		x.stats.events.Add(int64(len(admitted)))
		x.stats.lastEvent.Store(received)
	}
	if unknown {
		select {
		case x.unknown <- struct{}{}:
		default:
		}
	}
	for _, n := range out.Notices {
		x.log.Warn("venue sent an error notice", "text", n)
	}
	refused := out.Refused
	if err != nil {
		refused = append(refused, err)
	}
	for i, r := range refused {
		x.stats.refuse(producers.ReasonOf(r))
		// The message is kept whole, so once a reason is enough.
		same := func(earlier error) bool { return producers.ReasonOf(earlier) == producers.ReasonOf(r) }
		if !slices.ContainsFunc(refused[:i], same) {
			letter := deadLetter(&x.venue, r, payload, received)
			letter.Context = context
			x.out.Dead(letter)
		}
	}
}

func (x *Exchange) gap(reason, symbol string, from, to int64, missed uint64) {
	x.stats.gap(reason, missed)
	x.out.Gap(&eventsv1.Gap{Venue: x.venue.Slug, Symbol: symbol, Reason: reason, FromTime: from, ToTime: to, Missed: missed})
}

// guard turns a panic over a venue's bytes into an error, so that it harms no other venue.
func recoverDecode(decode func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = producers.Unreadable("the decoder panicked: %v", r)
		}
	}()
	return decode()
}

// backoff is the pause before another attempt: anything up to a bound that doubles, so that
// clients which failed together do not come back together.
func backoff(failures int) time.Duration {
	return rand.N(min(time.Second<<min(failures, 10), maxBackoff))
}

// markets is what an Exchange knows of each market. Safe for concurrent use.
type markets struct {
	mu     sync.Mutex
	byName map[string]*market // by symbol and alias
}

type market struct {
	in       Instrument
	selected bool
	// receivedAt is when a message of the market was last received, in ingest time.
	receivedAt int64
	// newest is the trade with the greatest event time seen, over all connections.
	newestTime int64
	newestID   string
}

// update takes over a new list and returns the selected markets in the order of their symbols.
// What was known of a market stays known.
func (m *markets) update(list []Instrument, want func(Instrument) bool) []Instrument {
	m.mu.Lock()
	defer m.mu.Unlock()
	byName := make(map[string]*market, len(list))
	bySymbol := make(map[string]*market, len(list))
	var selected []Instrument
	for name, in := range Index(list) {
		known := bySymbol[in.Symbol]
		if known == nil {
			known = &market{}
			if old := m.byName[in.Symbol]; old != nil {
				*known = *old
			}
			known.in, known.selected = in, want(in)
			bySymbol[in.Symbol] = known
			if known.selected {
				selected = append(selected, in)
			}
		}
		byName[name] = known
	}
	m.byName = byName
	slices.SortFunc(selected, func(a, b Instrument) int { return strings.Compare(a.Symbol, b.Symbol) })
	return selected
}

// quiet returns the selected markets without a message since, in the order of their symbols.
func (m *markets) quiet(since int64) []Instrument {
	m.mu.Lock()
	defer m.mu.Unlock()
	var quiet []Instrument
	for name, k := range m.byName {
		if name == k.in.Symbol && k.selected && k.receivedAt < since {
			quiet = append(quiet, k.in)
		}
	}
	slices.SortFunc(quiet, func(a, b Instrument) int { return strings.Compare(a.Symbol, b.Symbol) })
	return quiet
}

// admitted is an event that becomes a tick of a market.
type admitted struct {
	in    Instrument
	event *Event
}

// admit sorts out which events become ticks: of selected markets, and of markets that the list
// does not know, whose base and quote stay empty until it does. unknown is true if there were such.
func (m *markets) admit(events []Event, received int64) (ticks []admitted, unknown bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range events {
		e := &events[i]
		k := m.byName[e.Symbol]
		if k == nil {
			unknown = true
			k = &market{in: Instrument{Symbol: e.Symbol}, selected: true}
		}
		switch {
		case !k.selected || e.Kind == Candle || e.NotSpot:
			continue
		case e.Kind == Ticker && e.Bid == "" && e.Ask == "" && e.Last == "":
			continue
		case e.Kind == Trade && e.Snapshot && !k.newer(e, received):
			continue
		}
		k.receivedAt = received
		ticks = append(ticks, admitted{k.in, e})
	}
	// Only now: the trades of a snapshot may come newest first.
	for i := range events {
		if k := m.byName[events[i].Symbol]; k != nil && events[i].Kind == Trade {
			k.remember(&events[i])
		}
	}
	return ticks, unknown
}

// snapshotReach is how old a trade of a snapshot may be when none of its market was seen before.
// It bridges a restart, and stays within the 180 s in which a duplicate is recognised by its id.
const snapshotReach = int64(2 * time.Minute)

// newer reports whether a trade out of a venue's history is news.
func (k *market) newer(e *Event, received int64) bool {
	if k.newestTime == 0 {
		return e.Time > received-snapshotReach
	}
	return k.compare(e) > 0
}

func (k *market) remember(e *Event) {
	if k.compare(e) > 0 {
		k.newestTime, k.newestID = e.Time, string(e.ID)
	}
}

// compare orders a trade after (1) or not after the newest one by time, then by numeric id.
func (k *market) compare(e *Event) int {
	if e.Time != k.newestTime {
		if e.Time > k.newestTime {
			return 1
		}
		return -1
	}
	if d := len(e.ID) - len(k.newestID); d != 0 {
		return d
	}
	return strings.Compare(string(e.ID), k.newestID)
}
