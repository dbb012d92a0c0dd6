package venues

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"golang.org/x/sync/errgroup"
)

// Config says which venues are served, and of which market.
type Config struct {
	World *market.World
	Clock provider.Clock
	// Addr is where clients find them, HOST:PORT.
	Addr   string
	Venues []Venue
	// Rate is how many messages all venues send in a second, if a client subscribes to everything.
	Rate float64
	// Outlier is the venue that has a few markets far off all others in some of their time; empty means none.
	Outlier string
	// Delivered, unless nil, is given each time up to which a venue has handed everything to the network. It is called
	// concurrently.
	Delivered func(slug string, t time.Time)
}

// Server serves venues, each below the path of its slug. It answers requests at once, and feeds while Run runs.
type Server struct {
	exchanges []*Exchange
	mux       *http.ServeMux
	delivered func(slug string, t time.Time)
}

// New lists the venues' markets.
func New(cfg Config) *Server {
	s := &Server{mux: http.NewServeMux(), delivered: cfg.Delivered}
	var markets []*market.Market
	for i := range cfg.Venues {
		x := s.open(&cfg.Venues[i], cfg)
		s.exchanges = append(s.exchanges, x)
		markets = append(markets, x.markets...)
	}
	market.Pace(markets, cfg.Rate)
	return s
}

func (s *Server) open(v *Venue, cfg Config) *Exchange {
	base, path := cfg.Addr+"/"+v.Slug, cmp.Or(v.Feed, "/ws")
	x := &Exchange{
		venue: v, clock: cfg.Clock, markets: list(cfg.World, v), byName: map[string]*market.Market{},
		stream: "ws://" + base + path, rest: "http://" + base,
		requests: provider.NewBucket(v.Limits.Requests, v.Limits.RequestsPer),
		connects: provider.NewBucket(v.Limits.Connects, v.Limits.ConnectsPer),
		sent:     cfg.Clock.Now(), conns: map[*Conn]bool{}, feeds: map[*market.Market]*feed{},
	}
	for _, m := range x.markets {
		x.byName[m.Symbol] = m
	}
	x.chooseLeaving()
	if v.Slug == cfg.Outlier {
		market.Estrange(x.markets, v.Quotes[0].Asset, cfg.World.Seed.Of("outlier"))
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

// ServeHTTP answers requests to the venues' HTTP interfaces, and accepts WebSocket connections.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Exchanges are the served venues, in the order in which they were configured.
func (s *Server) Exchanges() []*Exchange { return s.exchanges }

// Run sends the feeds until the context ends, and returns its error.
func (s *Server) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, x := range s.exchanges {
		var delivered func(time.Time)
		if s.delivered != nil {
			delivered = func(t time.Time) { s.delivered(x.venue.Slug, t) }
		}
		g.Go(func() error { return x.run(ctx, delivered) })
	}
	return g.Wait()
}
