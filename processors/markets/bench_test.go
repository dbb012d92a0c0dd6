package markets_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/markets"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// crowd is a market of many coins, every 40th of which our venues have traded for over a year; each coin is observed
// every ten minutes.
type crowd struct {
	fold   processors.MinuteFold
	coins  []string // the largest first
	minute int64
	round  int
	out    processors.Outputs
}

func newCrowd(coins int) *crowd {
	c := &crowd{fold: markets.New(schemas.Coins()), minute: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).UnixNano()}
	for i := range coins {
		c.coins = append(c.coins, fmt.Sprintf("coin-%08x", uint32(i)*2654435761)) // ids do not depend on the size
	}
	for i := 0; i < coins; i += tradedEvery {
		c.trade(i)
	}
	for range 2 * observedEvery {
		c.close(c.records())
	}
	return c
}

// trade folds what is remembered of a coin's past: days, the last hours, the last five minutes.
func (c *crowd) trade(i int) {
	at := c.minute - int64(400*24*time.Hour)
	for _, past := range []struct{ until, step time.Duration }{{8 * 24 * time.Hour, 24 * time.Hour}, {25 * time.Hour, time.Hour}, {0, 5 * time.Minute}} {
		for ; at < c.minute-int64(past.until); at += int64(past.step) {
			c.fold.Take(c.minute, processors.Input{}, candle(c.coins[i], at, price(i, 0)))
		}
	}
}

// price of the coin at a place, in one of a hundred rounds: it wanders a little, so that ranks change as they do.
func price(i, round int) float64 { return 1 + 1e5/float64(i+1) + float64((round*31+i*17)%100)/1e6 }

func candle(id string, start int64, price float64) *eventsv1.CandleRecord {
	return &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Candle{Candle: &eventsv1.Candle{
		CoinId: id, Start: start, Open: price, High: price, Low: price, Close: price, Volume24H: price * 1e6, Accepted: 8,
	}}}
}

const (
	tradedEvery   = 40
	observedEvery = 10
)

// records of the next minute.
func (c *crowd) records() (records []eventsv1.Marked) {
	c.minute += int64(time.Minute)
	c.round++
	for i, id := range c.coins {
		price := price(i, c.round)
		if i%tradedEvery == 0 {
			records = append(records, candle(id, c.minute-int64(time.Minute), price))
		}
		if i%observedEvery == c.round%observedEvery {
			records = append(records, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: &eventsv1.CoinMarket{
				Source: "coingecko", SourceId: id, Symbol: "c", Name: id, Price: decimal(price), CirculatingSupply: "1234567.8", TotalSupply: "2000000", Volume24H: "7654321",
				High24H: decimal(price * 1.1), Low24H: decimal(price * 0.9), Change1H: "0.5", Change24H: decimal(float64((c.round*37+i*7919)%2000)/100 - 10),
				Change7D: "3.5", Ath: "200000", Atl: "0.01", IngestTime: c.minute - int64(time.Second),
			}}})
		}
	}
	return records
}

// close folds a minute, and returns how many bytes it writes.
func (c *crowd) close(records []eventsv1.Marked) (bytes int) {
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

// pass is the least that a fold of rows can do: for each event it finds the coin's row in a map, and makes the next one of it
// and its encoding.
type pass map[string]*kept

type kept struct {
	row     *eventsv1.Market
	encoded []byte
}

// newPass holds the rows that the fold writes while all coins are observed.
func newPass(b *testing.B, c *crowd) pass {
	p := pass{}
	for range observedEvery {
		c.close(c.records())
		for _, o := range c.out.List {
			if row := o.Record.(*eventsv1.MarketRecord).GetMarket(); row != nil {
				p.keep(b, row)
			}
		}
	}
	return p
}

func (p pass) keep(b *testing.B, row *eventsv1.Market) {
	encoded, err := row.MarshalVT()
	if err != nil {
		b.Fatal(err)
	}
	p[row.CoinId] = &kept{row, encoded}
}

func (p pass) close(b *testing.B, minute int64, records []eventsv1.Marked) {
	for _, rec := range records {
		id := ""
		switch r := rec.(type) {
		case *eventsv1.CandleRecord:
			id = r.GetCandle().CoinId
		case *eventsv1.ReferenceRecord:
			id = r.GetCoinMarket().SourceId
		}
		row := &eventsv1.Market{}
		if err := row.UnmarshalVT(p[id].encoded); err != nil {
			b.Fatal(err)
		}
		row.Time = minute
		p.keep(b, row)
	}
}

// What one candle or observation costs with all that its minute causes: events grow with the coins, so the cost of one should
// not. It is CPU time, of the collector too: the figure to trust while the machine does other work. Memory is what the fold
// holds then. The bare pass costs more with more coins too: they do not fit into the caches of the machine.
func BenchmarkMarkets(b *testing.B) {
	for _, coins := range []int{1000, 2000, 4000, 8000, 16000, 20000} {
		b.Run(fmt.Sprintf("coins=%d", coins), func(b *testing.B) {
			before := heap()
			c := newCrowd(coins)
			runtime.GC()
			events, written := 0, 0
			var spent, bare time.Duration
			for b.Loop() {
				records := c.records()
				began := cpu(b)
				written += c.close(records)
				spent += cpu(b) - began
				events += len(records)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(events), "cpu-ns/event")
			b.ReportMetric(float64(written)/float64(events), "B/event")
			b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "cpu-ms/minute")
			b.ReportMetric(float64(heap()-before)/(1<<20), "MB")
			p := newPass(b, c)
			c.fold, c.out = nil, processors.Outputs{}
			runtime.GC()
			for range b.N {
				records := c.records()
				began := cpu(b)
				p.close(b, c.minute, records)
				bare += cpu(b) - began
			}
			b.ReportMetric(float64(bare.Nanoseconds())/float64(events), "bare-cpu-ns/event")
		})
	}
}

// cpu is the time that this process has computed.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
