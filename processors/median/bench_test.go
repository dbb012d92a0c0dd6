package median_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/median"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// One second of log time in which each of 500 coins was traded on one of its 15 venues: every coin is
// evaluated over all of them, and most are published.
func BenchmarkMedian_500Coins15Venues(b *testing.B) {
	const coins, venues = 500, 15
	table := schemas.Coins().All()[:coins]
	fold := median.New(schemas.Coins(), 1)
	var out processors.Outputs
	offset := int64(0)
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC).UnixNano()
	apply := func(rec *eventsv1.ResolvedRecord) {
		rec.Mark = &eventsv1.Mark{Offset: offset}
		in := processors.Input{Topic: schemas.TopicTicks, Offset: offset, Record: rec}
		offset++
		out.Begin(in)
		if err := fold.Apply(in, &out); err != nil {
			b.Fatal(err)
		}
	}
	trade := func(coin, venue int) {
		apply(&eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
			Tick: &eventsv1.Tick{
				Kind: eventsv1.TickKind_TICK_KIND_TRADE, Venue: fmt.Sprint("venue", venue), Symbol: table[coin].Symbol + "-USD", Base: table[coin].Symbol,
				Price: strconv.FormatFloat(100+float64((coin+venue+int(offset))%17)/10, 'f', 1, 64), Size: "1", IngestTime: now, EventTime: now,
			},
			CoinId: table[coin].ID, QuoteId: schemas.USD, Rate: 1,
		}}})
	}
	pulse := func() {
		apply(&eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Pulse{Pulse: &eventsv1.Pulse{Now: now, Watermark: now}}})
	}
	pulse()
	for coin := range coins {
		for venue := range venues {
			trade(coin, venue)
		}
	}
	published := 0
	second := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		second++
		for coin := range coins {
			// Each venue is received every 15 s, well within the time that it stays fresh.
			trade(coin, second%venues)
		}
		now += int64(time.Second)
		b.StartTimer()
		pulse()
		published += len(out.List) - 1
	}
	evaluations := float64(b.N * coins)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/evaluations, "ns/evaluation")
	b.ReportMetric(float64(published)/evaluations, "published/evaluation")
}
