package ws

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// marketLog is markets.v1 as a test writes it, and a store that has all of it.
type marketLog struct {
	name string

	mu        sync.Mutex
	offset    int64
	summaries []*eventsv1.Summary
}

func (l *marketLog) channels() []query.Channel { return globalstats.Channels(l, l, l.name) }

// minute writes the summary of a minute and the pulse that ends it.
func (l *marketLog) minute(t *testing.T, h *Hub, end time.Time, marketCap, volume float64) {
	s := &eventsv1.Summary{Time: end.UnixNano(), TotalMarketCap: marketCap, TotalVolume24H: volume, BtcDominance: 60,
		Dominance: []*eventsv1.Share{{CoinId: "bitcoin", Symbol: "BTC", Percent: 60}}, ActiveCoins: 2, Simulated: true}
	apply := h.ApplyTo(schemas.TopicMarkets)
	for _, rec := range []*eventsv1.MarketRecord{{Body: &eventsv1.MarketRecord_Summary{Summary: s}},
		{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano()}}}} {
		l.mu.Lock()
		l.offset++
		if rec.GetSummary() != nil {
			l.summaries = append(l.summaries, s)
		}
		offset := l.offset
		l.mu.Unlock()
		if err := apply(views.TailRecord{Offset: offset, Marked: rec}); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *marketLog) Identity(context.Context) (string, error) { return l.name, nil }

func (l *marketLog) Materialized(context.Context) (map[int32]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return map[int32]int64{0: l.offset + 1}, nil
}

func (l *marketLog) Oldest(context.Context, time.Time) (int64, error) { return 0, nil }

func (l *marketLog) Summaries(_ context.Context, from, to time.Time, _ time.Duration) (found []*eventsv1.Summary, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.summaries {
		if at := time.Unix(0, s.Time); at.After(from) && !at.After(to) && s.TotalMarketCap > 0 {
			found = append(found, s)
		}
	}
	return found, nil
}

// A client that was away for any time is sent each minute of the whole market once, from memory or from the store.
func TestTheWholeMarketResumesAtAnyCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	log := &marketLog{name: "market"}
	w := newFixture(t, func(s *setup) {
		s.coins, s.auth, s.channels = scriptCoins(t), query.AuthOpen, log.channels()
		s.stream.ChannelBytes = 200 * priceBytes // some ten minutes
	})
	end := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	minutes := func(n int) {
		for range n {
			end = end.Add(time.Minute)
			log.minute(t, w.hub, end, float64(rng.IntN(4)), 1) // one of none is not sent
		}
	}
	minutes(3)
	from := end.Unix()
	var got []int64
	w.resume(rng, resuming{asks: "?channels=global&snapshot=0", cuts: 60, beyond: 100, minutes: 9, messages: 12, pass: minutes, take: func(data []byte) {
		var elements []struct{ Timestamp int64 }
		if err := json.Unmarshal(data, &elements); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, e := range elements {
			got = append(got, e.Timestamp)
		}
	}})
	var want []int64
	for _, s := range log.summaries {
		if at := s.Time / int64(time.Second); at > from && s.TotalMarketCap > 0 {
			want = append(want, at)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
