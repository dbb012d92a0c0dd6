package candles_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/candles"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// A trade of one of 500 coins on one of 15 venues goes into its two open candles; a minute of log time
// and its candles pass every 30,000. The limit is to read the trade's exact price and size and to find
// its minute in a map.
func BenchmarkCandles_500Coins15Venues(b *testing.B) {
	const venues = 15
	table := schemas.Coins().All()[:500]
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC).UnixNano()
	var trades []*eventsv1.ResolvedRecord
	for _, c := range table {
		for venue := range venues {
			trades = append(trades, &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
				Tick: &eventsv1.Tick{
					Kind: eventsv1.TickKind_TICK_KIND_TRADE, Venue: fmt.Sprint("venue", venue), Symbol: c.Symbol + "-USD", Base: c.Symbol,
					Price: "64321.5", Size: "0.01234567",
				},
				CoinId: c.ID, QuoteId: schemas.USD, Rate: 1,
			}}})
		}
	}
	fold := candles.New(1)
	var out processors.Outputs
	apply := func(offset int, rec *eventsv1.ResolvedRecord) {
		rec.Mark = &eventsv1.Mark{Offset: int64(offset)}
		in := processors.Input{Topic: schemas.TopicTicks, Offset: int64(offset), Record: rec}
		out.Begin(in)
		if err := fold.Apply(in, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		rec := trades[n%len(trades)]
		rec.GetTick().Tick.EventTime = now
		apply(n, rec)
		n++
		if n%500 == 0 {
			now += int64(time.Second)
			apply(n, &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Pulse{Pulse: &eventsv1.Pulse{Now: now, Watermark: now}}})
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/trade")
	type bare struct{ high, volume decimal.Decimal }
	minutes := map[string]*bare{}
	began := time.Now()
	for n := range b.N {
		t := trades[n%len(trades)].GetTick()
		price, errPrice := decimal.NewFromString(t.Tick.Price)
		size, errSize := decimal.NewFromString(t.Tick.Size)
		if errPrice != nil || errSize != nil {
			b.Fatal(errPrice, errSize)
		}
		m := minutes[t.CoinId]
		if m == nil {
			m = &bare{}
			minutes[t.CoinId] = m
		}
		m.high, m.volume = decimal.Max(m.high, price), m.volume.Add(size)
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(b.N), "bare-ns/trade")
}
