package views

import (
	"strings"
	"testing"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

func rateRecord(pool string, minute int, change func(*eventsv1.RateEntry)) stream.TailRecord {
	at := int64(minute) * int64(time.Minute)
	e := &eventsv1.RateEntry{Provider: "aave-v3", Source: "aave", Category: "lending", CoinId: "bitcoin", Pool: pool, Time: at, Heard: at,
		Said: &eventsv1.Rate{Interval: int64(5 * time.Minute)}}
	if change != nil {
		change(e)
	}
	return stream.TailRecord{Marked: &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}}}
}

func ratePulse(minute int) stream.TailRecord {
	return stream.TailRecord{Marked: &eventsv1.RateRecord{Mark: &eventsv1.Mark{Offset: int64(minute)},
		Body: &eventsv1.RateRecord_Pulse{Pulse: &eventsv1.Pulse{Now: int64(minute) * int64(time.Minute)}}}}
}

func TestRatesAppearWithTheirMinuteAndCountWhileTheyAreReported(t *testing.T) {
	b := NewYieldStore()
	const start = 1000
	apply := func(records ...stream.TailRecord) {
		for _, rec := range records {
			if err := b.Apply(rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	counted := func(minute int, second time.Duration, want string) {
		t.Helper()
		var pools []string
		for _, e := range b.Current(time.Unix(0, int64(minute)*int64(time.Minute)).Add(second)).Counted {
			pools = append(pools, e.Pool)
		}
		if got := strings.Join(pools, " "); got != want {
			t.Errorf("in minute %d: %q count, want %q", minute, got, want)
		}
	}
	apply(rateRecord("b", start, nil), rateRecord("a", start, nil),
		rateRecord("no coin", start, func(e *eventsv1.RateEntry) { e.Unattached = "coin_unknown" }),
		rateRecord("shadow", start, func(e *eventsv1.RateEntry) { e.Shadowed = "morpho" }),
		rateRecord("vault", start, func(e *eventsv1.RateEntry) { e.Category = "vault" }))
	counted(start, 0, "") // its minute has not ended
	apply(ratePulse(start))
	counted(start, 0, "a b")
	if first, again := b.Current(time.Unix(60*start+1, 0)), b.Current(time.Unix(60*start+2, 0)); first != again {
		t.Error("nothing changed, and the rates are others")
	}
	apply(rateRecord("a", start+1, func(e *eventsv1.RateEntry) { e.Ended = true }), rateRecord("b", start-1, func(e *eventsv1.RateEntry) { e.Ended = true }), ratePulse(start+1))
	counted(start+1, 0, "b") // an older record changes nothing
	counted(start+15, 0, "b")
	counted(start+15, 1, "") // by the clock alone
	apply(rateRecord("b", start+20, nil), ratePulse(start+20))
	counted(start+20, 0, "b")
	apply(ratePulse(start + 20 + 66))
	if n := len(b.Snapshot().Entries); n != 0 {
		t.Errorf("%d rates are known that were not repeated for over an hour", n)
	}
	if s := b.Snapshot(); s.Time != (start+86)*int64(time.Minute) || s.Mark.GetOffset() != start+86 {
		t.Errorf("the store is at %d", s.Time)
	}
}

// What is summed up of equal rates, of which 0.1 has no exact half, third or tenth.
func TestTheMeanOfRatesLiesAmongThem(t *testing.T) {
	for _, rates := range [][]float64{{0.1, 0.1, 0.1}, {0.7, 0.7, 0.7, 0.7, 0.7, 0.7}, {-0.1, -0.1, -0.1}} {
		if sum := SumRates(rates); sum.Mean < sum.Min || sum.Mean > sum.Max {
			t.Errorf("%v: got the mean %v outside %v and %v", rates, sum.Mean, sum.Min, sum.Max)
		}
	}
}
