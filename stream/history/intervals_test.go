package history_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// minuteCandle is the candle of a minute after noon, with prices that no float sum of other order keeps.
func minuteCandle(coin string, minute int, r *rand.Rand) *eventsv1.Candle {
	open, end := 100+r.Float64(), 100+r.Float64()
	return &eventsv1.Candle{
		CoinId: coin, Start: noon + int64(minute)*int64(time.Minute), Open: open, Close: end,
		High: max(open, end) + r.Float64(), Low: min(open, end) - r.Float64(),
		Volume: fmt.Sprintf("%d.%018d", r.IntN(1000), r.Int64N(1e18)), VolumeUsd: r.Float64() * 1e9, Trades: uint64(r.IntN(100)),
	}
}

func candleAt(offset int64, c *eventsv1.Candle) logged {
	return logged{rows.Place{Topic: schemas.TopicCandles, Offset: offset},
		&eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: offset}, Body: &eventsv1.CandleRecord_Candle{Candle: c}}}
}

// However the minutes came, split into batches, twice or out of order, the hours and days are those that
// the minutes make.
func TestIntervalsFoldTheirMinutes(t *testing.T) {
	r := streamtest.Rand(t)
	var records []logged
	var minutes []schemas.Candle
	for minute := range 36 * 60 {
		if minute >= 60 && minute < 120 || minute == 150 {
			continue // an hour without a price, and one with a gap
		}
		c := minuteCandle("bitcoin", minute, r)
		records = append(records, candleAt(int64(minute), c))
		start := time.Unix(0, c.Start).UTC()
		minutes = append(minutes, schemas.Candle{Start: start, Open: c.Open, High: c.High, Low: c.Low, Close: c.Close,
			Volume: decimal.RequireFromString(c.Volume), VolumeUSD: c.VolumeUsd, Trades: c.Trades, Minutes: 1, Newest: start, Origin: schemas.OriginLive})
	}
	first, second := newStore(t), newStore(t)
	insert(t, first, records...)
	insert(t, first, candleAt(1, minuteCandle("ethereum", 0, r)))
	shuffled := slices.Clone(records)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for len(shuffled) > 0 {
		n := 1 + r.IntN(min(len(shuffled), 700))
		insert(t, second, shuffled[:n]...)
		insert(t, second, shuffled[:n]...)
		shuffled = shuffled[n:]
	}
	from, to := time.Unix(0, noon).Add(-day), time.Unix(0, noon).Add(3*day)
	near := cmp.Comparer(func(a, b float64) bool { return a == b || (a-b)/a < 1e-12 && (b-a)/a < 1e-12 })
	for _, interval := range []time.Duration{time.Minute, time.Hour, day} {
		one, err := read.From(first).Intervals(t.Context(), "bitcoin", interval, from, to)
		if err != nil {
			t.Fatal(err)
		}
		other, err := read.From(second).Intervals(t.Context(), "bitcoin", interval, from, to)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(one, other); diff != "" {
			t.Errorf("%s: in one batch (-), in many (+):\n%s", interval, diff)
		}
		if diff := cmp.Diff(schemas.JoinCandles(minutes, interval), one, near); diff != "" {
			t.Errorf("%s: want(-), got(+):\n%s", interval, diff)
		}
	}
}

const day = 24 * time.Hour

func TestOnlyWholeIntervalsAreComplete(t *testing.T) {
	store := newStore(t)
	r := rand.New(rand.NewPCG(1, 1))
	var records []logged
	for minute := range 150 {
		if minute != 75 {
			records = append(records, candleAt(int64(minute), minuteCandle("bitcoin", minute, r)))
		}
	}
	insert(t, store, records...)
	got := queryStrings(t, store, "SELECT concat(toString(start), ' ', toString(minutes), ' ', toString(complete)) FROM default.v_candles_1h ORDER BY start")
	want := []string{"2026-03-01 12:00:00 60 true", "2026-03-01 13:00:00 59 false", "2026-03-01 14:00:00 30 false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := queryStrings(t, store, "SELECT concat(toString(start), ' ', toString(minutes), ' ', toString(complete)) FROM default.v_candles_1d"); !slices.Equal(got, []string{"2026-03-01 00:00:00 149 false"}) {
		t.Errorf("got days %q", got)
	}
}

func TestCandleTailFoldsPublishedPrices(t *testing.T) {
	store := newStore(t)
	for i, p := range []*eventsv1.Price{
		{Time: noon, Price: 9}, // before the window
		{Time: noon + 60e9, Price: 100},
		{Time: noon + 70e9, Price: 130},
		{Time: noon + 80e9, Price: 1000, Reason: schemas.ReasonNoConsensus},
		{Time: noon + 299e9, Price: 90},
		{Time: noon + 300e9, Price: 95},
	} {
		p.CoinId = "bitcoin"
		insert(t, store, logged{rows.Place{Topic: schemas.TopicPrices, Offset: int64(i)},
			&eventsv1.PriceRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: int64(i)}, Body: &eventsv1.PriceRecord_Price{Price: p}}})
	}
	start := time.Unix(0, noon).UTC()
	got, err := read.From(store).CandleTail(t.Context(), "bitcoin", 5*time.Minute, start.Add(time.Minute), start.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := []schemas.Candle{
		{Start: start, Open: 100, High: 130, Low: 90, Close: 90, Newest: start.Add(299 * time.Second), Origin: schemas.OriginLive},
		{Start: start.Add(5 * time.Minute), Open: 95, High: 95, Low: 95, Close: 95, Newest: start.Add(5 * time.Minute), Origin: schemas.OriginLive},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
}

// A year of a coin's minutes among those of ten coins: what a chart of the longest span costs cold.
func BenchmarkIntervals_YearOfMinutes(b *testing.B) {
	store := newStore(b)
	for coin := range 10 {
		err := store.Conn().Exec(b.Context(), `INSERT INTO candles_1m (coin_id, start, open, high, low, close, volume, volume_usd, trades, version)
			SELECT ?, toDateTime('2025-03-01 00:00:00', 'UTC') + number * 60, 100, 101, 99, 100, 1.5, 150, 3, number FROM numbers(525600)
			SETTINGS max_partitions_per_insert_block = 0`, fmt.Sprintf("coin%d", coin))
		if err != nil {
			b.Fatal(err)
		}
	}
	start := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name           string
		interval, span time.Duration
	}{{"day", day, 365 * day}, {"hour", time.Hour, 7 * day}, {"minute", time.Minute, time.Hour}} {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				got, err := read.From(store).Intervals(b.Context(), "coin5", test.interval, start.Add(365*day-test.span), start.Add(365*day))
				if err != nil || len(got) != int(test.span/test.interval) {
					b.Fatalf("got %d, %v", len(got), err)
				}
			}
		})
	}
}
