package history_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// What the store hands over of a span is what was written, each rate in the second that schemas.RateSecond gives it, once.
func TestRatesOfASpanComeBySecondAndOnce(t *testing.T) {
	store := newStore(t)
	batch := &rows.Batch{}
	var written []*eventsv1.RateEntry
	four, half := 4.0, 0.5
	for minute := range int64(4) {
		for pool := range 30 {
			e := &eventsv1.RateEntry{Provider: "aave-v3", ProviderName: "Aave V3", Source: "aave", Category: schemas.RateLending, CoinId: []string{"bitcoin", "ethereum"}[pool%2],
				Symbol: "WBTC", Pool: fmt.Sprintf("pool|%d", pool), ProviderSymbol: "WBTC", Chain: "Ethereum", Name: "a pool", Apr: 1, Apy: float64(pool) + float64(minute)/8, RewardApy: &half,
				TvlUsd: &four, Term: "flexible", Time: noon + minute*int64(time.Minute), Heard: noon + minute*int64(time.Minute) - 7, Ended: pool == 3, Simulated: true, Method: 2,
				Said: &eventsv1.Rate{Raw: "0.01", RawUnit: "apr_fraction_hourly", Compounding: "daily", MinAmount: "0.25", MaxAmount: "1000000", LockupDays: &four, Promo: true, Payout: "daily",
					Tiers: []*eventsv1.RateTier{{From: "0", To: "5", Raw: "0.02"}}, Served: []string{"DE"}, Refused: []string{"US"}, CollateralUsd: "7.5", MaxLtv: "0.5",
					Interval: int64(time.Minute), EventTime: noon - 9}}
			switch pool {
			case 28:
				e.Shadowed = "morpho"
			case 29:
				e.CoinId, e.Unattached = "", "coin_unknown"
			default:
				written = append(written, e)
			}
			mark := &eventsv1.Mark{LogicVersion: 2, Offset: minute, Index: uint32(pool)}
			batch.Add(rows.Place{Topic: schemas.TopicRates, Offset: minute*30 + int64(pool)}, &eventsv1.RateRecord{Mark: mark, Body: &eventsv1.RateRecord_Entry{Entry: e}})
		}
	}
	for range 2 { // a killed sink inserts twice
		if err := batch.Insert(t.Context(), store, ""); err != nil {
			t.Fatal(err)
		}
	}
	last := noon/int64(time.Second) + 180
	for _, test := range []struct {
		after, until int64
		coins        []string
		most         int
	}{{last - 300, last, nil, 1000}, {last - 130, last - 17, nil, 1000}, {last - 300, last, []string{"ethereum"}, 1000}, {last - 200, last, nil, 21}, {last, last + 60, nil, 10}} {
		var got []string
		before := int64(0)
		err := read.From(store).RatesBetween(t.Context(), test.after, test.until, test.coins, test.most, func(second int64, e *eventsv1.RateEntry) {
			if second < before || second != schemas.RateSecond(e) {
				t.Errorf("%+v: %s comes in %d after %d, want %d", test, e.Pool, second, before, schemas.RateSecond(e))
			}
			before = second
			got = append(got, e.String())
		})
		if err != nil {
			t.Fatal(err)
		}
		var of []*eventsv1.RateEntry
		for _, e := range written {
			if s := schemas.RateSecond(e); s > test.after && s <= test.until && (test.coins == nil || slices.Contains(test.coins, e.CoinId)) {
				of = append(of, e)
			}
		}
		var want []string
		for _, e := range of {
			want = append(want, e.String())
		}
		if len(want) > test.most { // which of the last second come is left open
			if len(got) != test.most {
				t.Errorf("%+v: got %d rates, want %d", test, len(got), test.most)
			}
			continue
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: got %d rates, want %d; the first: %.900v, want %.900v", test, len(got), len(want), got[:min(1, len(got))], want[:min(1, len(want))])
		}
	}
}
