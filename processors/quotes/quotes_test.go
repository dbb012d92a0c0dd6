package quotes

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// oneSecond runs the fold of seconds on one partition, whose own clock parts it into seconds.
type oneSecond struct {
	*fold
	clocks schemas.Clocks
	second int64
}

func (s *oneSecond) Clocks() (now, watermark int64) { return s.clocks.Now(), s.clocks.Watermark() }

func (s *oneSecond) Apply(in processors.Input, out *processors.Outputs) error {
	rec := &eventsv1.RawRecord{}
	if err := rec.UnmarshalVT(in.Value); err != nil {
		return err
	}
	if clock := rec.GetClock(); clock != nil {
		s.clocks.Observe(rec.Producer, rec.Epoch, clock.Time)
		now := time.Unix(0, s.clocks.Now()).Truncate(time.Second).UnixNano()
		if s.second != 0 && now > s.second {
			s.Close(s.second, out)
		}
		s.second = now
	}
	if tick := rec.GetTick(); tick != nil {
		s.Take(s.second, in, tick)
	}
	return nil
}

// apply lets fixings count from the beginning of their day, or of another.
func apply(t *testing.T, x *Fixings, base, quote, rate, date string, read ...string) {
	t.Helper()
	from, _ := time.Parse(time.DateOnly, slices.Concat([]string{date}, read)[len(read)])
	value, err := (&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{
		Source: "bank", Base: base, Quote: quote, Rate: rate, Date: date, IngestTime: from.Add(-referenceWait).UnixNano(),
	}}}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	x.Apply(value)
}

func TestQuotes(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	none, some := NewFixings(), NewFixings()
	// The scripts play on 2026-01-05, a Monday.
	apply(t, some, "EUR", "USD", "1.25", "2026-01-02")
	apply(t, some, "EUR", "KRW", "2000", "2026-01-02")
	apply(t, some, "EUR", "RUB", "100", "2025-12-29") // until then
	ten, err := foldtest.Time("10:00:00")
	if err != nil {
		t.Fatal(err)
	}
	overrides := schemas.NewSymbolOverrides(&eventsv1.SymbolOverride{Source: "okx", Symbol: "GUSD", CoinId: schemas.NoCoin, Time: ten})
	// Excluded from one minute on; both are known half a minute before they count.
	five := ten + int64(5*time.Minute)
	corrections := schemas.NewCorrections(
		&eventsv1.CorrectionRecord{Id: "a", Kind: schemas.CorrectionExclude, Time: five, Venue: "okx", Symbol: "USDT-USD", From: five},
		&eventsv1.CorrectionRecord{Id: "b", Kind: schemas.CorrectionWithdraw, Time: five + int64(time.Minute), Withdraws: "a"})
	for file, fixings := range map[string]*Fixings{"markets.txt": none, "fixings.txt": some, "overrides.txt": none, "corrections.txt": none} {
		t.Run(file, func(t *testing.T) {
			foldtest.Run(t, root, file, foldtest.Script{
				Topic: schemas.TopicTicksRaw,
				New: func() processors.Fold {
					return &oneSecond{fold: newFold(schemas.Coins(), overrides, corrections, fixings)}
				},
			})
		})
	}
}

func TestNewestFixingCounts(t *testing.T) {
	at := func(date string) int64 {
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			t.Fatal(err)
		}
		return day.UnixNano()
	}
	x := NewFixings()
	want := func(currency string, now int64, want float64, wantOK bool) {
		t.Helper()
		if got, ok := x.USD(currency, now); got != want || ok != wantOK {
			t.Errorf("USD(%s) = %v, %t, want %v, %t", currency, got, ok, want, wantOK)
		}
	}
	want("EUR", at("2026-04-02"), 0, false)
	apply(t, x, "EUR", "USD", "1.25", "2026-04-02")
	apply(t, x, "EUR", "USD", "1.5", "2026-04-01") // the history, read after it
	apply(t, x, "EUR", "KRW", "2000", "2026-04-02")
	apply(t, x, "USD", "JPY", "150", "2026-04-02") // of another base
	for _, bad := range []string{"", "0", "-1", "NaN", "Inf", "1e999", "x"} {
		apply(t, x, "EUR", "USD", bad, "2026-04-03")
		apply(t, x, "EUR", "USD", "7", bad)
	}
	x.Apply([]byte{0xff})
	want("EUR", at("2026-04-02"), 1.25, true)
	want("KRW", at("2026-04-02"), 1.25/2000, true)
	want("JPY", at("2026-04-02"), 0, false)
	// Good Friday to Easter Monday have none; a fixing counts for six days, the last nanosecond included.
	want("KRW", at("2026-04-08"), 1.25/2000, true)
	want("KRW", at("2026-04-08")+1, 0, false)
	want("EUR", at("2026-04-08")+1, 0, false)
	// Of two days, no rate is made: the won has that of the last day on which the dollar was fixed as well.
	apply(t, x, "EUR", "USD", "1.3", "2026-04-07")
	want("EUR", at("2026-04-07"), 1.3, true)
	want("KRW", at("2026-04-07"), 1.25/2000, true)
	apply(t, x, "EUR", "KRW", "1900", "2026-04-06") // the history, read after it
	want("KRW", at("2026-04-07"), 1.25/2000, true)
	apply(t, x, "EUR", "USD", "1.28", "2026-04-06")
	want("KRW", at("2026-04-07"), 1.28/1900, true)
	// A currency that is no longer fixed goes, whatever the dollar does.
	apply(t, x, "EUR", "USD", "1.3", "2026-04-08")
	want("EUR", at("2026-04-09"), 1.3, true)
	want("KRW", at("2026-04-12"), 1.28/1900, true)
	want("KRW", at("2026-04-12")+1, 0, false)
	// Years of history push out what is older than it, and nothing else.
	for day := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() == 2025; day = day.AddDate(0, 0, 1) {
		apply(t, x, "EUR", "USD", "2", day.Format(time.DateOnly))
	}
	want("KRW", at("2026-04-12"), 1.28/1900, true)
	if len(x.days) > fixingDays {
		t.Errorf("%d days are kept, want at most %d", len(x.days), fixingDays)
	}
	// A correction of the same day counts from when it was read.
	apply(t, x, "EUR", "USD", "1.4", "2026-04-08", "2026-04-09")
	want("EUR", at("2026-04-09")-1, 1.3, true)
	want("EUR", at("2026-04-09"), 1.4, true)
	// A day that has not begun anywhere does not count, nor push out days that do.
	for day := range 20 {
		apply(t, x, "EUR", "USD", "9", time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, day).Format(time.DateOnly), "2026-04-09")
	}
	want("EUR", at("2026-04-09"), 1.4, true)
	if got := len(x.days); got > fixingDays {
		t.Errorf("%d days are kept, want at most %d", got, fixingDays)
	}
}

// When a fixing was read by whom makes no difference to what a log second sees of it.
func TestFixingsCountByLogTimeInWhateverOrderTheyAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const second = int64(time.Second)
		day := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
		drawn := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *eventsv1.Fixing {
			return &eventsv1.Fixing{
				Base: "EUR", Quote: rapid.SampledFrom([]string{"USD", "KRW"}).Draw(t, "quote"),
				Rate: fmt.Sprint(rapid.IntRange(1, 4).Draw(t, "rate")), Date: day.AddDate(0, 0, rapid.IntRange(-2, 0).Draw(t, "day")).Format(time.DateOnly),
				IngestTime: day.UnixNano() + second*rapid.Int64Range(0, 60).Draw(t, "read"),
			}
		}), 0, 30).Draw(t, "fixings")
		fixingsOf := func(list []*eventsv1.Fixing) *Fixings {
			x := NewFixings()
			for _, f := range list {
				value, err := (&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: f}}).MarshalVT()
				if err != nil {
					t.Fatal(err)
				}
				x.Apply(value)
			}
			return x
		}
		all, shuffled := fixingsOf(drawn), fixingsOf(rapid.Permutation(drawn).Draw(t, "order"))
		for at := day.UnixNano(); at <= day.UnixNano()+100*second; at += second {
			// Who has read no further than what counts sees the same.
			read := fixingsOf(slices.DeleteFunc(slices.Clone(drawn), func(f *eventsv1.Fixing) bool { return f.IngestTime > at-int64(referenceWait) }))
			want, wantOK := all.USD("KRW", at)
			for _, x := range []*Fixings{shuffled, read} {
				if got, ok := x.USD("KRW", at); got != want || ok != wantOK {
					t.Fatalf("at %d: got %v, %t, want %v, %t", (at-day.UnixNano())/second, got, ok, want, wantOK)
				}
			}
		}
	})
}
