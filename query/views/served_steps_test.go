package views_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// servedSteps collects what was recorded.
type servedSteps []*eventsv1.ServedStep

func (s *servedSteps) WriteServed(_ context.Context, record *eventsv1.ServedRecord) error {
	*s = append(*s, record.Steps...)
	return nil
}

// A step never claims a record before readers got all of its cause, however records come in bursts, and however often steps are written; and in the
// end each is claimed, at most a burst late.
func TestStepsNeverClaimWhatWasNotServed(t *testing.T) {
	random := streamtest.Rand(t)
	priceCache := views.NewPriceCache(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,"))
	steps := priceCache.Steps()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var recorded servedSteps
	ended, end := context.WithCancel(t.Context())
	end()
	steps.Begin(func() time.Time { return now })
	write := func() {
		if err := steps.Run(ended, "one", &recorded, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	type reading struct{ partition, offset, at, whole int64 } // whole is when the last record of the same cause was
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
			read = append(read, reading{int64(partition), offsets[partition], now.UnixNano(), 0})
			if random.IntN(5) == 0 { // the rest comes when the fold runs again
				now = now.Add(time.Duration(random.IntN(9000)) * time.Millisecond)
				write()
				if claims := slices.ContainsFunc(recorded, func(s *eventsv1.ServedStep) bool {
					return s.GetPrices() != nil && s.GetPrices().Partition == int32(partition) && s.GetPrices().Offset == offsets[partition]
				}); claims {
					t.Fatalf("offset %d of %d is claimed before all records of it were read", offsets[partition], partition)
				}
			}
		}
		for i, r := range read {
			if r.partition == int64(partition) && r.offset == offsets[partition] {
				read[i].whole = read[len(read)-1].at
			}
		}
		pulse := &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: int32(partition), Offset: offsets[partition], Index: 9},
			Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: now.UnixNano()}}}
		if err := priceCache.Apply(views.TailRecord{Partition: int32(partition), Offset: offsets[partition], Marked: pulse}); err != nil {
			t.Fatal(err)
		}
		if random.IntN(5) == 0 {
			write()
		}
	}
	write()
	for _, r := range read {
		claimed := int64(0)
		for _, s := range recorded {
			p := s.GetPrices()
			if p == nil || int64(p.Partition) != r.partition || p.Offset < r.offset {
				continue
			}
			if s.Time < r.whole {
				t.Fatalf("offset %d of %d was served at %d, and is claimed at %d", r.offset, r.partition, r.whole, s.Time)
			}
			if claimed == 0 || s.Time < claimed {
				claimed = s.Time
			}
		}
		if late := time.Duration(claimed - r.whole); claimed == 0 || late > 60*time.Millisecond {
			t.Fatalf("offset %d of %d was served at %d, and is claimed %s later, at %d", r.offset, r.partition, r.at, late, claimed)
		}
	}
}

// An answer of several pasts can be given from when on the shortest of them is kept.
func TestTheFaultOfSeveralPastsIsThatOfTheShortest(t *testing.T) {
	other := errors.New("the store is away")
	aged := func(hour int) error {
		return fmt.Errorf("reading: %w", &views.AgedOutError{Kept: "it is kept", Since: time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC)})
	}
	two, three := aged(2), aged(3)
	for _, c := range []struct {
		parts []error
		want  error
	}{
		{nil, nil}, {[]error{nil, nil}, nil}, {[]error{nil, other}, other}, {[]error{two, three}, three}, {[]error{three, two}, three},
		{[]error{other, two, nil}, two}, {[]error{two, other}, two},
	} {
		if got := views.FaultOfParts(c.parts...); got != c.want {
			t.Errorf("the fault of %v is %v, want %v", c.parts, got, c.want)
		}
	}
}
