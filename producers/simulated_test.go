package producers_test

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/simulator"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// keptOutbox keeps what an adapter read.
type keptOutbox struct {
	mu    sync.Mutex
	ticks []*eventsv1.Tick
	dead  []*eventsv1.DeadLetter
	gaps  []*eventsv1.Gap
}

func (o *keptOutbox) Tick(t *eventsv1.Tick) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ticks = append(o.ticks, t)
}

func (o *keptOutbox) Dead(d *eventsv1.DeadLetter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = append(o.dead, d)
}

func (o *keptOutbox) Gap(g *eventsv1.Gap) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gaps = append(o.gaps, g)
}

// enough means that trades and bids or last prices of many markets arrived.
func (o *keptOutbox) enough(markets int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	trades, states := map[string]bool{}, map[string]bool{}
	for _, t := range o.ticks {
		if t.Kind == eventsv1.TickKind_TICK_KIND_TRADE {
			trades[t.Symbol] = true
		} else {
			states[t.Symbol] = true
		}
	}
	return len(o.dead) > 0 || len(o.gaps) > 0 || len(trades) >= markets && len(states) >= markets
}

// simulated runs the simulator until the test ends.
func simulated(t *testing.T) *simulator.Simulator {
	t.Helper()
	cfg := simulator.DefaultConfig()
	cfg.Clock, cfg.Rate = producers.WallClock{}, 8000
	sim, err := simulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	running.Go(func() {
		if err := sim.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return sim
}

// TestAdaptersReadTheSimulator runs every adapter that has a simulated side against it, over loopback and
// within the venue's limits.
func TestAdaptersReadTheSimulator(t *testing.T) {
	sim := simulated(t)
	for _, slug := range sim.Slugs() {
		t.Run(slug, func(t *testing.T) {
			venue, ok := exchanges.Find(slug)
			if !ok {
				t.Fatal("no such adapter")
			}
			readSimulated(t, venue, sim)
		})
	}
}

func readSimulated(t *testing.T, venue adapter.Venue, sim *simulator.Simulator) {
	urls := sim.URLs()[venue.Slug]
	budget := fetch.DefaultConfig(max(1, int(venue.Limits.Requests)), max(time.Second, time.Duration(float64(time.Second)/venue.Limits.Requests)))
	client, err := fetch.New(budget, producers.WallClock{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	coins := schemas.Coins()
	var mu sync.Mutex
	selected := map[string]adapter.Instrument{}
	choose := func(in adapter.Instrument) bool {
		mu.Lock()
		defer mu.Unlock()
		if coin, _, ok := coins.Resolve(venue.Slug, in.Base); !ok || coin.Rank > 60 {
			return false
		}
		selected[in.Symbol] = in
		return true
	}
	out := &keptOutbox{}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	x := adapter.NewExchange(venue, adapter.ExchangeConfig{
		URLs: adapter.URLs(urls), Select: choose, Simulated: true,
	}, client, out, producers.WallClock{}, nil, quiet)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = x.Run(ctx)
	}()
	var stats adapter.ExchangeStats
	var served provider.Stats
	// A connection that is being made counts at one end first.
	settled := func() bool {
		stats, served = x.Stats(), sim.Stats(venue.Slug)
		return out.enough(20) && served.Connects == stats.Connected
	}
	for !settled() && ctx.Err() == nil {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		t.Errorf("too little, or more connections than the adapter has, in a minute: %+v", stats)
	}
	stop()
	<-ended

	for _, d := range out.dead[:min(3, len(out.dead))] {
		t.Errorf("%s: %s in %.300s", d.Reason, d.Detail, d.Payload)
	}
	for _, g := range out.gaps[:min(3, len(out.gaps))] {
		t.Errorf("gap: %v", g)
	}
	if served.Throttled > 0 || served.Connects != stats.Connected {
		t.Errorf("the adapter went over the limits: %+v, has %d connections", served, stats.Connected)
	}
	quotes := 0
	mu.Lock()
	defer mu.Unlock()
	for _, tick := range out.ticks {
		in, ok := selected[tick.Symbol]
		switch {
		case !ok || tick.Base != in.Base || tick.Quote != in.Quote:
			t.Fatalf("tick of %s in %s/%s, subscribed as %v", tick.Symbol, tick.Base, tick.Quote, in)
		case !tick.Simulated:
			t.Fatalf("tick is not marked as simulated: %v", tick)
		case tick.EventTime > tick.IngestTime || tick.EventTime != 0 && tick.EventTime < tick.IngestTime-int64(4*time.Minute):
			t.Fatalf("tick of %s was read at %s: %v", time.Unix(0, tick.EventTime), time.Unix(0, tick.IngestTime), tick)
		case tick.Kind == eventsv1.TickKind_TICK_KIND_TRADE && (tick.Price == "" || tick.Size == "" || tick.Side == 0):
			t.Fatalf("trade without price, size or side: %v", tick)
		}
		if tick.Bid != "" && tick.Ask != "" {
			quotes++
		}
	}
	t.Logf("%d markets, %d ticks, %d of them with bid and ask", stats.Markets, len(out.ticks), quotes)
}
