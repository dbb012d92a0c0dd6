package quotes

import (
	"os"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// oneSecond runs the fold of seconds on one partition, whose own clock parts it into seconds.
type oneSecond struct {
	*fold
	clocks processors.Clocks
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

func apply(t *testing.T, x *Fixings, base, quote, rate, date string) {
	t.Helper()
	value, err := (&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{
		Source: "bank", Base: base, Quote: quote, Rate: rate, Date: date,
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
	for file, fixings := range map[string]*Fixings{"markets.txt": none, "fixings.txt": some} {
		t.Run(file, func(t *testing.T) {
			foldtest.Run(t, root, file, foldtest.Script{
				Topic: schemas.TopicTicksRaw,
				New:   func() processors.Fold { return &oneSecond{fold: newFold(schemas.Coins(), fixings)} },
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
	// A correction of the same day comes later in the log.
	apply(t, x, "EUR", "USD", "1.4", "2026-04-08")
	want("EUR", at("2026-04-09"), 1.4, true)
}
