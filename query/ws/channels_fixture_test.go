package ws

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// candleLog is candles.v1 as a test writes it, and a store that follows it.
type candleLog struct {
	coins *schemas.CoinTable
	name  string // of the log and of the view of it

	mu         sync.Mutex
	partitions [][]*eventsv1.CandleRecord
	// stored is up to where the store has each partition; oldest is the first second that it keeps.
	stored []int
	oldest int64
}

func newCandleLog(coins *schemas.CoinTable) *candleLog {
	return &candleLog{coins: coins, name: "first", partitions: make([][]*eventsv1.CandleRecord, 8), stored: make([]int, 8)}
}

func (l *candleLog) channels() []query.Channel { return charts.Channels(l.coins, l, l, l.name) }

func (l *candleLog) candle(coin schemas.Coin, c *eventsv1.Candle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := partitionOf(coin)
	l.partitions[p] = append(l.partitions[p], &eventsv1.CandleRecord{Mark: &eventsv1.Mark{Partition: int32(p)}, Body: &eventsv1.CandleRecord_Candle{Candle: c}})
}

func (l *candleLog) pulse(p int, watermark time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partitions[p] = append(l.partitions[p], &eventsv1.CandleRecord{Mark: &eventsv1.Mark{Partition: int32(p)},
		Body: &eventsv1.CandleRecord_Pulse{Pulse: &eventsv1.Pulse{Now: watermark.UnixNano() + 1, Watermark: watermark.UnixNano()}}})
}

// minute writes candles of the minute that ends at a time, in the partitions that come to it, and the pulses that close it.
func (l *candleLog) minute(rng *rand.Rand, end time.Time, late float64) {
	for p := range l.partitions {
		if rng.Float64() < late {
			continue // it has none of this minute's: the clock that drives it did not advance
		}
		for _, coin := range l.coins.All() {
			if partitionOf(coin) != p || rng.Float64() < 0.3 {
				continue
			}
			price := func() float64 { return float64(1 + rng.IntN(1000)) }
			l.candle(coin, &eventsv1.Candle{CoinId: coin.ID, Start: end.Add(-time.Minute).UnixNano(), Open: price(), High: 1000 + price(), Low: price() / 1000, Close: price(),
				Volume: fmt.Sprintf("%d.25", rng.IntN(1000)), VolumeUsd: price(), Trades: uint64(rng.IntN(9))})
		}
		for range 1 + rng.IntN(2) { // a second one closes nothing more
			l.pulse(p, end.Add(schemas.AllowedLateness+time.Duration(rng.Int64N(int64(50*time.Second)))))
		}
	}
}

// store lets the store follow, to somewhere before the end of each partition, or to the end.
func (l *candleLog) store(rng *rand.Rand, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, records := range l.partitions {
		if rest := len(records) - l.stored[p]; all {
			l.stored[p] = len(records)
		} else if rest > 0 {
			l.stored[p] += rng.IntN(rest + 1)
		}
	}
}

func (l *candleLog) Identity(context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.name, nil
}

func (l *candleLog) Materialized(context.Context) (map[int32]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[int32]int64{}
	for p, n := range l.stored {
		next[int32(p)] = int64(n)
	}
	return next, nil
}

func (l *candleLog) Oldest(context.Context, time.Time) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldest, nil
}

func (l *candleLog) ClosedCandles(_ context.Context, interval time.Duration, after, until int64, coins []string, most int, visit func(string, int32, schemas.Candle)) error {
	l.mu.Lock()
	var found []intervalCandle
	for p, records := range l.partitions {
		for _, c := range joined(records[:min(len(records), l.stored[p])], interval) {
			if end := c.Start.Add(interval).Unix(); end > after && end <= until && end >= l.oldest && (coins == nil || slices.Contains(coins, c.coin)) {
				found = append(found, c)
			}
		}
	}
	l.mu.Unlock()
	slices.SortFunc(found, func(a, b intervalCandle) int {
		if n := a.Start.Compare(b.Start); n != 0 {
			return n
		}
		return strings.Compare(a.coin, b.coin)
	})
	for _, c := range found[:min(len(found), most)] {
		coin, _ := l.coins.ByID(c.coin)
		visit(c.coin, int32(partitionOf(coin)), c.Candle)
	}
	return nil
}

type intervalCandle struct {
	coin string
	schemas.Candle
}

// joined are the candles of an interval that some records of one partition make.
func joined(records []*eventsv1.CandleRecord, interval time.Duration) (all []intervalCandle) {
	minutes := map[string][]schemas.Candle{}
	for _, rec := range records {
		c := rec.GetCandle()
		if c == nil {
			continue
		}
		minutes[c.CoinId] = append(minutes[c.CoinId], schemas.Candle{Start: time.Unix(0, c.Start).UTC(), Open: c.Open, High: c.High, Low: c.Low, Close: c.Close,
			Volume: decimal.RequireFromString(c.Volume), VolumeUSD: c.VolumeUsd, Trades: c.Trades, Minutes: 1, Origin: schemas.OriginLive})
	}
	for coin, list := range minutes {
		for _, c := range schemas.JoinCandles(list, interval) {
			all = append(all, intervalCandle{coin, c})
		}
	}
	return all
}

// follow hands a hub the records of each partition from one place up to another.
func (l *candleLog) follow(t *testing.T, apply func(views.TailRecord) error, from, to []int) {
	for p := range l.partitions {
		l.mu.Lock()
		records := l.partitions[p]
		l.mu.Unlock()
		for n := from[p]; n < to[p]; n++ {
			if err := apply(views.TailRecord{Partition: int32(p), Offset: int64(n), Marked: records[n]}); err != nil {
				t.Fatal(err)
			}
		}
		from[p] = max(from[p], to[p])
	}
}

// ends are where the partitions end.
func (l *candleLog) ends() (ends []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, records := range l.partitions {
		ends = append(ends, len(records))
	}
	return ends
}
