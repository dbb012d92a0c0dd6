// Package simulator serves the own wire formats of exchanges, and of sources that are polled for coins and
// currencies, on loopback, for a market that it invents: real coins and symbols, simulated prices.
//
// The market is a function of a seed and the time alone. So it has a past of any length, which the
// venues' own history endpoints serve; a client that comes back meets the same trades under the same
// numbers; and two runs with one seed and one rate tell the same. Prices of a coin agree between venues
// to a few hundredths of a percent, candles of an hour with those of its minutes, and trades with both.
package simulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Clock is the time that the venues live in.
type Clock interface {
	Now() time.Time
	// After delivers once, when d has passed.
	After(d time.Duration) <-chan time.Time
}

// Config says what to simulate.
type Config struct {
	// Listen is the address, HOST:PORT; port 0 takes a free one.
	Listen string
	// Seed decides every number.
	Seed int64
	// Rate is how many messages all venues send in a second, if a client subscribes to the trades and
	// tickers of all markets. The quietest markets add a few.
	Rate float64
	// Clock is time itself.
	Clock Clock
	// Venues are simulated; nil is all of List.
	Venues []Venue
	// Coins are how many coins the polled sources know, at least those of the coin table.
	Coins int
	// SourceRequests replaces, a minute, the budget of the sources that count calls by the month or that
	// nobody could read as often as a demonstration does; 0 is as documented.
	SourceRequests int
	// Outlier is the venue that has a few markets far off all others in some of their time; empty is none.
	Outlier string
	// Delivered, unless nil, is told each time up to which a venue has handed everything to the network;
	// a clock that waits for it cannot run away from the feed. It is called concurrently.
	Delivered func(slug string, t time.Time)
}

// DefaultConfig suits a demonstration on a laptop. Clock is for the caller to set.
func DefaultConfig() Config {
	return Config{Listen: "127.0.0.1:0", Seed: 1, Rate: 1500, Coins: 1000, Outlier: "poloniex"}
}

// Simulator serves venues. It listens from New on and answers while Run runs.
type Simulator struct {
	cfg       Config
	world     *world
	catalogue *catalogue
	listener  net.Listener
	exchanges []*Exchange
	// references are the polled sources.
	references []*Reference
	mux        *http.ServeMux
}

// New opens the address and prepares the venues.
func New(cfg Config) (*Simulator, error) {
	if cfg.Clock == nil || cfg.Rate <= 0 {
		return nil, errors.New("configuring the simulator: Clock and Rate are needed")
	}
	if cfg.Venues == nil {
		cfg.Venues = List()
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("opening the simulator: %w", err)
	}
	s := &Simulator{cfg: cfg, world: newWorld(seed(mix(uint64(cfg.Seed)))), listener: listener, mux: http.NewServeMux()}
	for i := range cfg.Venues {
		s.exchanges = append(s.exchanges, s.open(&cfg.Venues[i]))
	}
	pace(s.exchanges, cfg.Rate)
	s.catalogue = newCatalogue(s.world, cfg.Coins)
	for _, source := range Sources() {
		s.references = append(s.references, s.openSource(source))
	}
	return s, nil
}

func (s *Simulator) open(v *Venue) *Exchange {
	base, path := s.listener.Addr().String()+"/"+v.Slug, cmp.Or(v.Feed, "/ws")
	x := &Exchange{
		venue: v, clock: s.cfg.Clock, markets: s.world.list(v), byName: map[string]*Market{},
		stream: "ws://" + base + path, rest: "http://" + base,
		requests: newBucket(v.Limits.Requests, v.Limits.RequestsPer),
		connects: newBucket(v.Limits.Connects, v.Limits.ConnectsPer),
		sent:     s.cfg.Clock.Now(), conns: map[*Conn]bool{}, feeds: map[*Market]*feed{},
	}
	for _, m := range x.markets {
		x.byName[m.Symbol] = m
	}
	if v.Slug == s.cfg.Outlier {
		x.estrange(s.world.seed.of("outlier"))
	}
	routes := http.NewServeMux()
	for pattern, handle := range v.Routes(x) {
		routes.HandleFunc(pattern, handle)
	}
	x.routes = routes
	s.mux.Handle("/"+v.Slug+"/", http.StripPrefix("/"+v.Slug, http.HandlerFunc(x.serveREST)))
	if path != "/ws" {
		s.mux.HandleFunc("/"+v.Slug+path, x.serveStream)
	}
	s.mux.HandleFunc("/"+v.Slug+"/ws", x.serveStream)
	s.mux.HandleFunc("/"+v.Slug+"/ws/", x.serveStream)
	return x
}

// The outlier venue's strange markets: how many, and down to which rank, so that others have the same coins.
const (
	outliers    = 8
	outlierRank = 60
)

// estrange picks the markets that are far off all others in some of their time: of well-known coins, in the first quote.
func (x *Exchange) estrange(s seed) {
	var known []*Market
	for _, m := range x.markets {
		if m.Quote == x.venue.Quotes[0].Asset && m.base.parent == nil && m.base.rank <= outlierRank {
			known = append(known, m)
		}
	}
	slices.SortFunc(known, func(a, b *Market) int { return cmp.Compare(s.of(a.Symbol), s.of(b.Symbol)) })
	for _, m := range known[:min(outliers, len(known))] {
		m.strange = s.of(m.Symbol)
	}
}

func (x *Exchange) serveREST(w http.ResponseWriter, r *http.Request) {
	x.counter.requests.Add(1)
	x.mu.Lock()
	refuse := x.faults.Refuse
	x.mu.Unlock()
	if refuse {
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	}
	weight := 1
	if x.venue.Weight != nil {
		weight = x.venue.Weight(r)
	}
	if !x.requests.take(x.clock.Now(), weight) {
		x.throttle(w, r)
		return
	}
	x.routes.ServeHTTP(w, r)
}

// throttle refuses a request beyond a limit.
func (x *Exchange) throttle(w http.ResponseWriter, r *http.Request) {
	x.counter.throttled.Add(1)
	if x.venue.Throttled != nil {
		x.venue.Throttled(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests", http.StatusTooManyRequests)
}

// Limited gives an endpoint a limit of its own: n requests within a time.
func (x *Exchange) Limited(n int, per time.Duration, handle http.HandlerFunc) http.HandlerFunc {
	requests := newBucket(n, per)
	return func(w http.ResponseWriter, r *http.Request) {
		if !requests.allow(x.clock.Now()) {
			x.throttle(w, r)
			return
		}
		handle(w, r)
	}
}

// URLs are where a client finds a venue instead of at its public addresses, without a slash at the end.
type URLs struct{ Stream, REST string }

// URLs of every simulated venue, by slug.
func (s *Simulator) URLs() map[string]URLs {
	urls := map[string]URLs{}
	for _, x := range s.exchanges {
		urls[x.venue.Slug] = URLs{x.stream, x.rest}
	}
	return urls
}

// Slugs are the simulated venues, in the order of List.
func (s *Simulator) Slugs() []string {
	var slugs []string
	for _, x := range s.exchanges {
		slugs = append(slugs, x.venue.Slug)
	}
	return slugs
}

// Addr is where the simulator listens.
func (s *Simulator) Addr() string { return s.listener.Addr().String() }

// Run serves until the context ends, and returns nil then. It may be called once.
func (s *Simulator) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	server := &http.Server{
		Handler: s.mux, ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	g.Go(func() error {
		if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving the simulator: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	for _, x := range s.exchanges {
		var delivered func(time.Time)
		if s.cfg.Delivered != nil {
			delivered = func(t time.Time) { s.cfg.Delivered(x.venue.Slug, t) }
		}
		g.Go(func() error { return x.run(ctx, delivered) })
	}
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
