// Package simulator serves the own wire formats of exchanges, and of sources that are polled for coins and
// currencies, on loopback, for a market that it invents: real coins and symbols, simulated prices.
//
// The market is a function of a seed and the time alone. So it has a past of any length, which the
// venues' own history endpoints serve; a client that comes back meets the same trades under the same
// numbers; and two runs with one seed and one rate are the same. Prices of a coin agree between venues
// to a few hundredths of a percent, candles of an hour with those of its minutes, and trades with both.
package simulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/producers/simulator/sources"
	"github.com/marketlog/marketlog/producers/simulator/venues"
	"golang.org/x/sync/errgroup"
)

// Config says what to simulate.
type Config struct {
	// Listen is the address, HOST:PORT; port 0 takes a free one.
	Listen string
	// Accept, unless nil, is given the listener there, and returns the one to accept connections from.
	Accept func(net.Listener) net.Listener
	// Seed decides every number.
	Seed int64
	// Rate is how many messages all venues send in a second, if a client subscribes to the trades and
	// tickers of all markets. The quietest markets add a few.
	Rate float64
	// Clock is time itself.
	Clock provider.Clock
	// Venues are simulated; nil is all of venues.List.
	Venues []venues.Venue
	// Coins are how many coins the polled sources know, at least those of the coin table.
	Coins int
	// SourceRequests replaces, a minute, the budget of the sources that count calls by the month or that
	// nobody could read as often as a demonstration does; 0 is as documented.
	SourceRequests int
	// Outlier is the venue that has a few markets far off all others in some of their time; empty means none.
	Outlier string
	// Delivered, unless nil, is given each time up to which a venue has handed everything to the network;
	// a clock that waits for it cannot run away from the feed. It is called concurrently.
	Delivered func(slug string, t time.Time)
}

// DefaultConfig suits a demonstration on a laptop. Clock is for the caller to set.
func DefaultConfig() Config {
	return Config{Listen: "127.0.0.1:0", Seed: 1, Rate: 1500, Coins: 1000, Outlier: "poloniex"}
}

// Simulator serves venues and sources. It listens from New on and answers while Run runs.
type Simulator struct {
	listener net.Listener
	venues   *venues.Server
	sources  *sources.Server
	mux      *http.ServeMux
}

// New opens the address and prepares the venues and the sources.
func New(cfg Config) (*Simulator, error) {
	if cfg.Clock == nil || cfg.Rate <= 0 {
		return nil, errors.New("configuring the simulator: Clock and Rate are needed")
	}
	if cfg.Venues == nil {
		cfg.Venues = venues.List()
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("opening the simulator: %w", err)
	}
	if cfg.Accept != nil {
		listener = cfg.Accept(listener)
	}
	w, addr := market.NewWorld(market.NewSeed(cfg.Seed)), listener.Addr().String()
	s := &Simulator{listener: listener, mux: http.NewServeMux()}
	s.venues = venues.New(venues.Config{
		World: w, Clock: cfg.Clock, Addr: addr, Venues: cfg.Venues, Rate: cfg.Rate, Outlier: cfg.Outlier, Delivered: cfg.Delivered,
	})
	s.sources = sources.New(sources.Config{
		World: w, Clock: cfg.Clock, Addr: addr, Coins: cfg.Coins, Requests: cfg.SourceRequests, Accelerated: cfg.Delivered != nil,
	})
	for _, x := range s.venues.Exchanges() {
		s.mux.Handle("/"+x.Slug()+"/", s.venues)
	}
	for _, r := range s.sources.References() {
		s.mux.Handle("/"+r.Slug()+"/", s.sources)
	}
	return s, nil
}

// URLs are where a client finds a venue instead of at its public addresses, without a slash at the end.
type URLs struct{ Stream, REST string }

// URLs of every simulated venue, by slug.
func (s *Simulator) URLs() map[string]URLs {
	urls := map[string]URLs{}
	for _, x := range s.venues.Exchanges() {
		urls[x.Slug()] = URLs{x.StreamURL(), x.RESTURL()}
	}
	return urls
}

// SourceURLs are where a client finds each simulated source instead of at the base that its documentation
// names, by slug, without a slash at the end.
func (s *Simulator) SourceURLs() map[string]string {
	urls := map[string]string{}
	for _, r := range s.sources.References() {
		urls[r.Slug()] = r.URL()
	}
	return urls
}

// SourceSlugs are the simulated sources, in alphabetical order.
func (s *Simulator) SourceSlugs() []string {
	var slugs []string
	for _, r := range s.sources.References() {
		slugs = append(slugs, r.Slug())
	}
	return slugs
}

// Slugs are the simulated venues, in the order of List.
func (s *Simulator) Slugs() []string {
	var slugs []string
	for _, x := range s.venues.Exchanges() {
		slugs = append(slugs, x.Slug())
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
	g.Go(func() error { return s.venues.Run(ctx) })
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Faults returns what is in force, by venue or source; good ones are left out.
func (s *Simulator) Faults() map[string]provider.Faults {
	faults := map[string]provider.Faults{}
	for slug, p := range s.providers() {
		if f := p.Faults(); f != (provider.Faults{}) {
			faults[slug] = f
		}
	}
	return faults
}

// SetFaults makes a venue or a source misbehave from now on, in place of what it did wrong before.
func (s *Simulator) SetFaults(slug string, f provider.Faults) error {
	p, ok := s.providers()[slug]
	if !ok {
		return notSimulated(slug)
	}
	p.SetFaults(f)
	return nil
}

// Disconnect closes every connection of a venue; clients may come back at once. Those of a source last no
// longer than an answer.
func (s *Simulator) Disconnect(slug string) error {
	p, ok := s.providers()[slug]
	if !ok {
		return notSimulated(slug)
	}
	if x, ok := p.(*venues.Exchange); ok {
		x.Disconnect()
	}
	return nil
}

// Stats of a venue or a source; zero for one that is not simulated.
func (s *Simulator) Stats(slug string) provider.Stats {
	p, ok := s.providers()[slug]
	if !ok {
		return provider.Stats{}
	}
	return p.Stats()
}

func notSimulated(slug string) error { return fmt.Errorf("no venue %q is simulated", slug) }

// simulated is what venues and sources have in common.
type simulated interface {
	Faults() provider.Faults
	SetFaults(f provider.Faults)
	Stats() provider.Stats
}

// providers are the venues and sources by slug.
func (s *Simulator) providers() map[string]simulated {
	all := map[string]simulated{}
	for _, x := range s.venues.Exchanges() {
		all[x.Slug()] = x
	}
	for _, r := range s.sources.References() {
		all[r.Slug()] = r
	}
	return all
}
