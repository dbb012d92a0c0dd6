package history_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// closedRow is a candle as ClosedCandles hands it over, in a form that can be compared.
type closedRow struct {
	coin                   string
	partition              int32
	start                  int64
	open, high, low, close float64
	volume                 string
	usd                    int64 // to the hundredth
	trades                 uint64
	minutes                int
}

func closedRowOf(coin string, partition int32, c schemas.Candle) closedRow {
	return closedRow{coin, partition, c.Start.Unix(), c.Open, c.High, c.Low, c.Close, c.Volume.String(), int64(c.VolumeUSD*100 + 0.5), c.Trades, c.Minutes}
}

// What the stream reads of the past are the minutes joined, as it joins them while they come.
func TestClosedCandlesAreJoinedMinutes(t *testing.T) {
	store := newStore(t)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	first := time.Unix(0, noon).UTC().Truncate(time.Hour)
	minutes := map[string][]schemas.Candle{}
	batch := &rows.Batch{}
	for i := range 400 {
		for partition, coin := range []string{"bitcoin", "ethereum"} {
			if rng.IntN(4) == 0 {
				continue
			}
			at := first.Add(time.Duration(i) * time.Minute)
			c := &eventsv1.Candle{CoinId: coin, Start: at.UnixNano(), Open: float64(rng.IntN(100)), High: 100 + float64(rng.IntN(100)), Low: rng.Float64(),
				Close: float64(rng.IntN(100)), Volume: fmt.Sprintf("%d.%02d", rng.IntN(1000), 1+rng.IntN(99)), VolumeUsd: float64(rng.IntN(1_000_000)) / 4, Trades: uint64(rng.IntN(50))}
			record := &eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Partition: int32(partition), Offset: int64(i)}, Body: &eventsv1.CandleRecord_Candle{Candle: c}}
			batch.Add(rows.Place{Topic: schemas.TopicCandles, Partition: int32(partition), Offset: int64(i)}, record)
			minutes[coin] = append(minutes[coin], schemas.Candle{Start: at, Open: c.Open, High: c.High, Low: c.Low, Close: c.Close, Volume: decimal.RequireFromString(c.Volume),
				VolumeUSD: c.VolumeUsd, Trades: c.Trades, Minutes: 1})
		}
	}
	for range 2 { // a killed sink inserts twice
		if err := batch.Insert(t.Context(), store, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []time.Duration{time.Minute, 5 * time.Minute, time.Hour, 4 * time.Hour} {
		for range 4 {
			after := first.Unix() + int64(60*rng.IntN(200))
			until := after + int64(60*rng.IntN(300))
			coins := [][]string{nil, {"ethereum"}}[rng.IntN(2)]
			var got, want []closedRow
			err := read.From(store).ClosedCandles(t.Context(), step, after, until, coins, 10_000, func(coin string, partition int32, c schemas.Candle) {
				got = append(got, closedRowOf(coin, partition, c))
			})
			if err != nil {
				t.Fatal(err)
			}
			for partition, coin := range []string{"bitcoin", "ethereum"} {
				if coins != nil && !slices.Contains(coins, coin) {
					continue
				}
				for _, c := range schemas.JoinCandles(minutes[coin], step) {
					if end := c.Start.Add(step).Unix(); end > after && end <= until {
						want = append(want, closedRowOf(coin, int32(partition), c))
					}
				}
			}
			slices.SortStableFunc(want, func(a, b closedRow) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.coin, b.coin)) })
			if !slices.Equal(got, want) {
				t.Errorf("seed %d: %s of %v after %d until %d:\ngot  %v\nwant %v", seed, step, coins, after, until, got, want)
			}
		}
	}
}
