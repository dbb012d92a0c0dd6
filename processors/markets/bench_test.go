package markets_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/markets"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// crowd is a market of many coins, every 40th of which our venues trade; each coin is observed every ten minutes.
type crowd struct {
	fold   processors.MinuteFold
	coins  []string
	minute int64
	round  int
	out    processors.Outputs
}

func newCrowd(coins int) *crowd {
	c := &crowd{fold: markets.New(schemas.Coins()), minute: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).UnixNano()}
	for i := range coins {
		c.coins = append(c.coins, fmt.Sprintf("some-coin-%05d", i))
	}
	return c
}

const (
	tradedEvery   = 40
	observedEvery = 10
)

// records of the next minute; prices wander a little, so that ranks change as they do.
func (c *crowd) records() (records []eventsv1.Marked) {
	c.minute += int64(time.Minute)
	c.round++
	for i, id := range c.coins {
		price := 1 + 1e5/float64(i+1) + float64((c.round*31+i*17)%100)/1e6
		if i%tradedEvery == 0 {
			records = append(records, &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Candle{Candle: &eventsv1.Candle{
				CoinId: id, Start: c.minute - int64(time.Minute), Open: price, High: price, Low: price, Close: price, Volume24H: price * 1e6, Accepted: 8,
			}}})
		}
		if i%observedEvery == c.round%observedEvery {
			records = append(records, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: &eventsv1.CoinMarket{
				Source: "coingecko", SourceId: id, Symbol: "c", Name: id, Price: decimal(price), CirculatingSupply: "1234567.8", TotalSupply: "2000000", Volume24H: "7654321",
				High24H: decimal(price * 1.1), Low24H: decimal(price * 0.9), Change1H: "0.5", Change24H: "-1.25", Change7D: "3.5", Ath: "200000", Atl: "0.01",
				IngestTime: c.minute - int64(time.Second),
			}}})
		}
	}
	return records
}

func (c *crowd) fold1(records []eventsv1.Marked) (bytes int) {
	for _, rec := range records {
		c.fold.Take(c.minute, processors.Input{}, rec)
	}
	c.out.Begin(processors.Input{Offset: c.minute})
	c.fold.Close(c.minute, &c.out)
	for _, o := range c.out.List {
		bytes += o.Record.SizeVT()
	}
	return bytes
}

// What one candle or observation costs with all that its minute causes: events grow with the coins, so the cost of one should
// not. Memory is what the fold holds then.
func BenchmarkMarkets(b *testing.B) {
	for _, coins := range []int{1000, 2000, 4000, 8000, 16000, 20000} {
		b.Run(fmt.Sprintf("coins=%d", coins), func(b *testing.B) {
			before := heap()
			c := newCrowd(coins)
			for range 2 * observedEvery {
				c.fold1(c.records())
			}
			events, written := 0, 0
			var spent time.Duration
			for b.Loop() {
				records := c.records()
				began := time.Now()
				written += c.fold1(records)
				spent += time.Since(began)
				events += len(records)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(events), "ns/event")
			b.ReportMetric(float64(written)/float64(events), "B/event")
			b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "ms/minute")
			b.ReportMetric(float64(heap()-before)/(1<<20), "MB")
			runtime.KeepAlive(c)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
