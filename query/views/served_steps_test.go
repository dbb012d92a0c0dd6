package views_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// servedSteps collects what was recorded.
type servedSteps []*eventsv1.ServedStep

func (s *servedSteps) WriteServed(_ context.Context, record *eventsv1.ServedRecord) error {
	*s = append(*s, record.Steps...)
	return nil
}

// A step never claims a record before readers got it, however records come in bursts, and however often steps are written; and in the end each
// is claimed, at most a burst late.
func TestStepsNeverClaimWhatWasNotServed(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	priceCache := views.NewPriceCache(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,"))
	steps := priceCache.Steps()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var recorded servedSteps
	ended, end := context.WithCancel(t.Context())
	end()
	steps.Begin(func() time.Time { return now })
	type reading struct{ partition, offset, at int64 }
	var read []reading
	offsets := [3]int64{}
	for range 500 {
		now = now.Add(time.Duration(random.IntN(700)) * time.Millisecond)
		partition := random.IntN(len(offsets))
		offsets[partition] += 1 + random.Int64N(3)
		for index, coin := range []string{"bitcoin", "ethereum"}[:1+random.IntN(2)] {
			now = now.Add(time.Duration(random.IntN(30)) * time.Millisecond)
			mark := &eventsv1.Mark{Partition: int32(partition), Offset: offsets[partition], Index: uint32(index)}
			price := &eventsv1.Price{CoinId: coin, Time: now.UnixNano(), Price: random.Float64()}
			if err := priceCache.Apply(views.TailRecord{Partition: int32(partition), Offset: offsets[partition], Marked: &eventsv1.PriceRecord{Mark: mark, Body: &eventsv1.PriceRecord_Price{Price: price}}}); err != nil {
				t.Fatal(err)
			}
			read = append(read, reading{int64(partition), offsets[partition], now.UnixNano()})
		}
		if random.IntN(5) == 0 { // a process that ends writes what is not whole, too: between records, not within a burst
			if err := steps.Run(ended, "one", &recorded, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := steps.Run(ended, "one", &recorded, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	for _, r := range read {
		claimed := int64(0)
		for _, s := range recorded {
			p := s.GetPrices()
			if int64(p.Partition) != r.partition || p.Offset < r.offset {
				continue
			}
			if s.Time < r.at {
				t.Fatalf("offset %d of %d was served at %d, and is claimed at %d", r.offset, r.partition, r.at, s.Time)
			}
			if claimed == 0 || s.Time < claimed {
				claimed = s.Time
			}
		}
		if late := time.Duration(claimed - r.at); claimed == 0 || late > 60*time.Millisecond {
			t.Fatalf("offset %d of %d was served at %d, and is claimed %s later, at %d", r.offset, r.partition, r.at, late, claimed)
		}
	}
}
