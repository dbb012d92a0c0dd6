package history_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// dayRateKey is a currency on a day when some records had been written.
type dayRateKey struct {
	currency string
	day      time.Time
	before   int64
}

// newestDayRate is what of daily rates counts on a day: the newest of at most schemas.FixingDays before; 0 where there is none.
func newestDayRate(rates []schemas.Fixing, currency string, of time.Time) (usd float64) {
	var newest time.Time
	for _, f := range rates {
		if f.Currency == currency && !f.Day.After(of) && of.Sub(f.Day) <= schemas.FixingDays*day && f.Day.After(newest) {
			newest, usd = f.Day, f.USD
		}
	}
	return usd
}

// However central banks state rates, correct and withdraw them: the records that a day's rate is explained by, as of any offset, give the rate that candles
// of the past and pegs were converted by when the log ended there.
func TestDayRatesAreThoseOfTheirRecords(t *testing.T) {
	store, random := newStore(t), streamtest.Rand(t)
	first := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	const days = 16
	counted, found := map[dayRateKey]float64{}, 0
	offset := int64(0)
	for range 12 {
		var told []logged
		for range 1 + random.IntN(6) {
			told = append(told, drawnFixing(random, offset, first.AddDate(0, 0, random.IntN(days))))
			offset++
		}
		insert(t, store, told...)
		currencies := []string{"EUR", "JPY", "GBP"}
		for _, view := range []string{"fixings_usd", fmt.Sprintf("peg_rates(before = %d)", offset)} {
			rates, err := past.DayRates(t.Context(), store, view, currencies, first, first.AddDate(0, 0, 2*days))
			if err != nil {
				t.Fatal(err)
			}
			for _, currency := range currencies {
				for d := range days + schemas.FixingDays + 2 {
					key := dayRateKey{currency, first.AddDate(0, 0, d), offset}
					usd := newestDayRate(rates, currency, key.day)
					if before, known := counted[key]; known && before != usd && !(currency == "GBP" && view != "fixings_usd") { // no stablecoin aims at pounds
						t.Errorf("%v: %g by fixings_usd, %g by %s", key, before, usd, view)
					} else if !known {
						counted[key] = usd
					}
				}
			}
		}
	}
	for key, want := range counted {
		fixings, err := read.From(store).Fixings(t.Context(), key.currency, key.day, key.before)
		if err != nil {
			t.Fatal(err)
		}
		got := 0.0
		if len(fixings) > 0 {
			dollar, units := fixings[0].Rate, 1.0
			if key.currency != schemas.EUR {
				units = fixings[1].Rate
			}
			got = dollar / units
			found++
		}
		if got != want {
			t.Errorf("%v: records give %g, by which %g counted: %v", key, got, want, fixings)
		}
	}
	if found < 100 {
		t.Errorf("only %d of %d had a rate", found, len(counted))
	}
}

// drawnFixing is a rate of a day, now and then zero, which withdraws it.
func drawnFixing(random *rand.Rand, offset int64, day time.Time) logged {
	rate := fmt.Sprint(1 + random.IntN(200))
	if random.IntN(8) == 0 {
		rate = "0"
	}
	return fixing(offset, []string{"USD", "USD", "JPY", "GBP"}[random.IntN(4)], rate, day)
}
