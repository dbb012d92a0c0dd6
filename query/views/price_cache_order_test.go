package views

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// The price cache is filled from history or from the cache as of some time, and then from a tail that begins before
// or after that. Whatever the order, no price that it gives is older than one before, at the end it holds the newest,
// and its age is that of its own second.
func TestPriceCacheNeverGoesBackHoweverItIsFilled(t *testing.T) {
	bitcoin, _ := schemas.Coins().ByID("bitcoin")
	rapid.Check(t, func(t *rapid.T) {
		// The log of one partition: prices and reasons of the coin, some seconds apart.
		var log []TailRecord
		second := int64(1_000)
		for range rapid.IntRange(1, 40).Draw(t, "records") {
			second += int64(rapid.IntRange(0, 90).Draw(t, "gap"))
			reason := ""
			if rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
				reason = schemas.ReasonNoFreshInputs
			}
			log = append(log, priceRecord("bitcoin", int64(len(log)), second, float64(second), reason))
		}
		b := NewPriceCache(schemas.Coins())
		newest := int64(0)
		apply := func(rec TailRecord) {
			if err := b.Apply(rec); err != nil {
				t.Fatal(err)
			}
			e := b.Entry(bitcoin)
			if e == nil {
				return
			}
			if e.Price.Time < newest {
				t.Fatalf("a price of %d after one of %d", e.Price.Time/int64(time.Second), newest/int64(time.Second))
			}
			newest = e.Price.Time
			for _, age := range []time.Duration{0, StaleAfter, StaleAfter + time.Nanosecond, CriticalAfter, CriticalAfter + time.Nanosecond} {
				got := b.Freshness(e, time.Unix(0, e.Price.Time).Add(age))
				want := Freshness{Stale: age > StaleAfter || e.Latest.Reason != "", Critical: age > CriticalAfter}
				if got != want {
					t.Fatalf("%s old with reason %q: %+v, want %+v", age, e.Latest.Reason, got, want)
				}
			}
		}
		latest := func(until int, offsets bool) {
			for _, priced := range []bool{true, false} {
				for _, rec := range slices.Backward(log[:until]) {
					if price := rec.Marked.(*eventsv1.PriceRecord).GetPrice(); (price.Reason == "") == priced {
						if !offsets {
							rec.Offset = -1
						}
						apply(rec)
						break
					}
				}
			}
		}
		switch kept := rapid.IntRange(0, len(log)).Draw(t, "kept"); rapid.SampledFrom([]string{"history", "cache", "both", "nothing"}).Draw(t, "filled from") {
		case "history":
			latest(kept, false)
		case "cache":
			latest(kept, true)
		case "both":
			latest(kept, false)
			latest(rapid.IntRange(0, len(log)).Draw(t, "cached"), true)
		}
		// A tail that lost its place goes on from before it.
		tailed := 0
		for from := rapid.IntRange(0, len(log)).Draw(t, "tail from"); ; from = rapid.IntRange(0, len(log)-1).Draw(t, "again from") {
			for _, rec := range log[from:] {
				apply(rec)
				tailed++
			}
			if rapid.Bool().Draw(t, "enough") {
				break
			}
		}
		if reached := log[len(log)-1].Marked.(*eventsv1.PriceRecord).GetPrice(); b.Entry(bitcoin) != nil && tailed > 0 && b.Entry(bitcoin).Latest.Time != reached.Time {
			t.Fatalf("after the end of the log the price cache is at %d, want %d", b.Entry(bitcoin).Latest.Time/int64(time.Second), second)
		}
	})
}

// What history holds has no offset of prices.v1, and the tail after it begins before its end: the older prices there must
// not take its place.
func TestATailFromBeforeTheEndReplacesNothingNewer(t *testing.T) {
	b := NewPriceCache(schemas.Coins())
	bitcoin, _ := b.Coins().ByID("bitcoin")
	history := priceRecord("bitcoin", -1, 1_000, 7, "")
	for _, rec := range []TailRecord{history, priceRecord("bitcoin", 50, 700, 3, ""), priceRecord("bitcoin", 51, 900, 4, schemas.ReasonNoFreshInputs), priceRecord("bitcoin", 52, 1_000, 7, "")} {
		if err := b.Apply(rec); err != nil {
			t.Fatal(err)
		}
		if e := b.Entry(bitcoin); e.Price.Price != 7 || e.Latest.Reason != "" {
			t.Fatalf("after the record at %d the price is %g of %d, reason %q", rec.Offset, e.Price.Price, e.Price.Time/int64(time.Second), e.Latest.Reason)
		}
	}
}

// The last price of a coin may be older than the part of the log that was read, which shows only that it has none any more.
func TestAReasonWaitsForItsPrice(t *testing.T) {
	for name, test := range map[string]struct {
		records []TailRecord
		price   float64
		reason  string
	}{
		"of then":                {[]TailRecord{priceRecord("bitcoin", 50, 1_000, 0, schemas.ReasonNoFreshInputs), priceRecord("bitcoin", -1, 900, 7, "")}, 7, schemas.ReasonNoFreshInputs},
		"an older reason beside": {[]TailRecord{priceRecord("bitcoin", 50, 1_000, 0, schemas.ReasonNoFreshInputs), priceRecord("bitcoin", -1, 900, 0, "another"), priceRecord("bitcoin", -1, 800, 7, "")}, 7, schemas.ReasonNoFreshInputs},
		"of later":               {[]TailRecord{priceRecord("bitcoin", 50, 1_000, 0, schemas.ReasonNoFreshInputs), priceRecord("bitcoin", -1, 1_001, 7, "")}, 7, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewPriceCache(schemas.Coins())
			bitcoin, _ := b.Coins().ByID("bitcoin")
			for _, rec := range test.records {
				if err := b.Apply(rec); err != nil {
					t.Fatal(err)
				}
			}
			if e := b.Entry(bitcoin); e == nil || e.Price.Price != test.price || e.Latest.Reason != test.reason {
				t.Errorf("got %+v, want %g and the reason %q", e, test.price, test.reason)
			}
		})
	}
}

// While one coin of a partition is reported, the age of another grows: the partition's now hides nothing.
func TestThePartitionsNowHidesNoAge(t *testing.T) {
	b := NewPriceCache(schemas.Coins())
	bitcoin, _ := b.Coins().ByID("bitcoin")
	for _, rec := range []TailRecord{priceRecord("bitcoin", 1, 1_000, 7, ""), priceRecord("ethereum", 2, 1_040, 3, "")} {
		if err := b.Apply(rec); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Unix(1_040, 0)
	if !b.Freshness(b.Entry(bitcoin), now).Stale {
		t.Error("a price of 40 s ago is not stale, since another one of its partition is new")
	}
	if n := b.CountStale(now); n != 1 {
		t.Errorf("%d prices are stale, want 1", n)
	}
	if !b.Freshness(b.Entry(bitcoin), time.Unix(1_000, 0).Add(-StaleAfter-1)).Stale {
		t.Error("a price from ahead of the clock is not stale, though one of them is wrong")
	}
}

func TestTheAgesOfPricesAreMeasured(t *testing.T) {
	registry := prometheus.NewRegistry()
	now := time.Unix(10_000, 0)
	// A role that begins again in its process brings another price cache.
	for range 2 {
		b := NewPriceCache(schemas.Coins())
		if err := MeasurePriceCache(registry, b, func() time.Time { return now }); err != nil {
			t.Fatal(err)
		}
		for i, coin := range []string{"bitcoin", "ethereum", "solana"} {
			if err := b.Apply(priceRecord(coin, int64(i), 9_999-[]int64{0, 40, 8_000}[i], 1, "")); err != nil {
				t.Fatal(err)
			}
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			got[family.GetName()+" "+m.Label[0].GetValue()] = m.Gauge.GetValue()
		}
	}
	want := map[string]float64{
		"marketlog_price_age_seconds newest": 1, "marketlog_price_age_seconds median": 41, "marketlog_price_age_seconds p95": 8_001,
		"marketlog_price_age_seconds oldest": 8_001,
		"marketlog_prices fresh":             1, "marketlog_prices stale": 2, "marketlog_prices critical": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
