package history_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestAPriceOfThePastIsTheLastCloseBeforeIt(t *testing.T) {
	store := newStore(t)
	candle := func(offset int64, coin string, minute int, end float64) logged {
		return candleAt(offset, &eventsv1.Candle{CoinId: coin, Start: noon + int64(minute)*int64(time.Minute),
			Open: end, High: end, Low: end, Close: end, Volume: "1"})
	}
	insert(t, store,
		candle(1, "bitcoin", 0, 100), candle(2, "bitcoin", 1, 101), candle(3, "bitcoin", 2, 102),
		candle(4, "ethereum", 0, 10), // silent since
		candle(5, "solana", 2, 3),    // not yet there
	)
	at := func(minute, second int) time.Time {
		return time.Unix(0, noon).Add(time.Duration(minute)*time.Minute + time.Duration(second)*time.Second)
	}
	for _, c := range []struct {
		at   time.Time
		want map[string]float64
	}{
		{at(0, 59), map[string]float64{}},
		{at(2, 0), map[string]float64{"bitcoin": 101, "ethereum": 10}},
		{at(2, 59), map[string]float64{"bitcoin": 101, "ethereum": 10}},
		{at(3, 0), map[string]float64{"bitcoin": 102, "ethereum": 10, "solana": 3}},
		// An hour later only what ended within it is told; the hour under way then is that of the minutes.
		{at(62, 0), map[string]float64{"bitcoin": 102, "ethereum": 10, "solana": 3}},
		{at(121, 0), map[string]float64{}},
	} {
		got, err := store.ClosesAt(t.Context(), c.at)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("closes at %s: want(-), got(+):\n%s", c.at.UTC().Format(time.TimeOnly), diff)
		}
	}
}
