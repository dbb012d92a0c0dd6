package resolve_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

type constant struct{}

func (constant) Rate(string) (resolve.Rate, bool) { return resolve.Rate{USD: 0.999}, true }

// A trade in USDT of one of 500 coins, from its bytes to the resolved record, without encoding it. Every
// 5,000 a clock forwards to all partitions and forgets old ids.
func BenchmarkResolve_500Coins(b *testing.B) {
	table := schemas.Coins().All()[:500]
	var values [][]byte
	var ids []int
	for _, c := range table {
		tick := &eventsv1.Tick{
			Kind: eventsv1.TickKind_TICK_KIND_TRADE, Venue: "okx", Symbol: c.Symbol + "-USDT", Base: c.Symbol, Quote: "USDT",
			EventId: []byte("an id of an event")[:16], Price: "64321.5", Size: "0.01234567", TradeId: "123456789", EventTime: 1, IngestTime: 1,
		}
		value, err := (&eventsv1.RawRecord{Producer: "okx", Epoch: 1, Body: &eventsv1.RawRecord_Tick{Tick: tick}}).MarshalVT()
		if err != nil {
			b.Fatal(err)
		}
		values = append(values, value)
		ids = append(ids, bytes.Index(value, tick.EventId))
	}
	fold := resolve.Unit(schemas.Coins(), schemas.NewSymbolOverrides(), nil, constant{}, nil).New(0)
	var out processors.Outputs
	now := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC).UnixNano()
	apply := func(offset int64, value []byte) {
		in := processors.Input{Topic: schemas.TopicTicksRaw, Offset: offset, Value: value}
		out.Begin(in)
		if err := fold.Apply(in, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	events := uint64(0)
	for b.Loop() {
		i := events % uint64(len(values))
		events++
		binary.BigEndian.PutUint64(values[i][ids[i]:], events) // every trade is another one
		apply(int64(events), values[i])
		if events%5_000 == 0 {
			now += int64(time.Second)
			clock, err := (&eventsv1.RawRecord{Producer: "okx", Epoch: 1, Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: now}}}).MarshalVT()
			if err != nil {
				b.Fatal(err)
			}
			apply(int64(events), clock)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/tick")
}
