package sources

import (
	"testing"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// open serves all sources in process, of the market of a seed, at noon.
func open(t testing.TB, seed int64) *Server {
	t.Helper()
	return openWith(seed, Config{Clock: simulatortest.Fixed(simulatortest.Noon), Coins: 1000})
}

func openWith(seed int64, cfg Config) *Server {
	cfg.World, cfg.Addr = market.NewWorld(market.NewSeed(seed)), "127.0.0.1:1"
	return New(cfg)
}

// reference is one of them.
func (s *Server) reference(t testing.TB, slug string) *Reference {
	t.Helper()
	for _, r := range s.references {
		if r.source.Slug == slug {
			return r
		}
	}
	t.Fatalf("%s is not simulated", slug)
	return nil
}
