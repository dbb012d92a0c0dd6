package ws

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// yieldLog is rates.v1 as a test writes it, and a store that has all of it.
type yieldLog struct {
	coins *schemas.CoinTable

	mu      sync.Mutex
	offset  int64
	entries []*eventsv1.RateEntry
}

func (l *yieldLog) channels() []query.Channel { return rates.Channels(l.coins, l, l, "rates") }

func (l *yieldLog) append(t *testing.T, h *Hub, rec *eventsv1.RateRecord) {
	l.mu.Lock()
	l.offset++
	if e := rec.GetEntry(); e != nil {
		l.entries = append(l.entries, e)
	}
	offset := l.offset
	l.mu.Unlock()
	if err := h.ApplyTo(schemas.TopicRates)(views.TailRecord{Offset: offset, Marked: rec}); err != nil {
		t.Fatal(err)
	}
}

// rate writes what a source reported in the minute that ends at a time.
func (l *yieldLog) rate(t *testing.T, h *Hub, end time.Time, coinID, symbol, pool string, apy float64, ended bool) {
	e := &eventsv1.RateEntry{Provider: "aave-v3", ProviderName: "Aave V3", Source: "aave", Category: schemas.RateLending, CoinId: coinID, Symbol: symbol, Pool: pool,
		ProviderSymbol: symbol, Chain: "Ethereum", Apy: apy, Time: end.UnixNano(), Heard: end.Add(-20 * time.Second).UnixNano(), Ended: ended, Simulated: true,
		Said: &eventsv1.Rate{Raw: "0.01", RawUnit: "apy_fraction", Interval: int64(time.Minute)}}
	l.append(t, h, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}})
}

// pulse ends a minute.
func (l *yieldLog) pulse(t *testing.T, h *Hub, end time.Time) {
	l.append(t, h, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano()}}})
}

func (l *yieldLog) Identity(context.Context) (string, error) { return "rates", nil }

func (l *yieldLog) Materialized(context.Context) (map[int32]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return map[int32]int64{0: l.offset + 1}, nil
}

func (l *yieldLog) Oldest(context.Context, time.Time) (int64, error) { return 0, nil }

func (l *yieldLog) RatesBetween(_ context.Context, after, until int64, coins []string, most int, visit func(int64, *eventsv1.RateEntry)) error {
	l.mu.Lock()
	var found []*eventsv1.RateEntry
	for _, e := range l.entries {
		if s := schemas.RateSecond(e); s > after && s <= until && (coins == nil || slices.Contains(coins, e.CoinId)) {
			found = append(found, e)
		}
	}
	l.mu.Unlock()
	slices.SortStableFunc(found, func(a, b *eventsv1.RateEntry) int { return cmp.Compare(schemas.RateSecond(a), schemas.RateSecond(b)) })
	for _, e := range found[:min(len(found), most)] {
		visit(schemas.RateSecond(e), e)
	}
	return nil
}

// A client that was away for any time is sent each report of a rate once, from memory or from the store: those of a coin that no
// venue trades too, if it chose none.
func TestRatesResumeAtAnyCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	coins := scriptCoins(t)
	log := &yieldLog{coins: coins}
	w := newFixture(t, func(s *setup) {
		s.coins, s.auth, s.channels = coins, query.AuthOpen, log.channels()
		s.stream.ChannelBytes = 2_000 * priceBytes // some minutes
	})
	end := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	minutes := func(n int) {
		for range n {
			end = end.Add(time.Minute)
			for pool := range rng.IntN(40) {
				coin := []string{"bitcoin", "ethereum", "other"}[pool%3]
				log.rate(t, w.hub, end, coin, coin[:3], fmt.Sprintf("pool-%d", pool), rng.Float64(), rng.IntN(20) == 0)
			}
			log.pulse(t, w.hub, end)
		}
	}
	minutes(3)
	selected := rng.IntN(2) == 0
	asks := "?channels=rates"
	if selected {
		asks += "&symbols=BTC"
	}
	from := end
	var got []string
	w.resume(rng, resuming{asks: asks, cuts: 40, beyond: 60, minutes: 6, messages: 90, pass: minutes, take: func(data []byte) {
		var elements []struct {
			ID, LastUpdated string
			Rate            float64
		}
		if err := json.Unmarshal(data, &elements); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		for _, e := range elements {
			got = append(got, fmt.Sprint(e.LastUpdated, e.ID, e.Rate))
		}
	}})
	var want []string
	for _, e := range log.entries {
		if e.Time > from.UnixNano() && (!selected || e.CoinId == "bitcoin") {
			want = append(want, fmt.Sprint(query.FormatTime(e.Heard), e.Source+"|"+e.Category+"|"+e.Pool, e.Apy))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %d rates, want %d", len(got), len(want))
	}
}
