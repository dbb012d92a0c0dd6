package processors_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// discard takes outputs and keeps none.
type discard struct{ records, bytes int }

func (d *discard) Produce(_ context.Context, rec *kgo.Record, written func(*kgo.Record, error)) {
	d.records++
	d.bytes += len(rec.Value)
	written(rec, nil)
}

func (d *discard) Flush(context.Context) error { return nil }

// benchSeconds of three venues with three coins each, and their clocks.
const benchSeconds = 600

// What one core resolves: decoding, checks, names, the join, the duplicates' memory and the encoding of
// the outputs, with the pulses to all partitions among them.
// BenchmarkClocks_20Producers is one clock record of twenty producers whose clocks go on.
func BenchmarkClocks_20Producers(b *testing.B) {
	var clocks schemas.Clocks
	names := make([]string, 20)
	for i := range names {
		names[i] = "venue-" + strconv.Itoa(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		clocks.Observe(names[i%len(names)], 1, int64(i)*int64(50*time.Millisecond))
	}
}

func BenchmarkResolve_3Venues3Coins(b *testing.B) {
	benchmarkUnit(b, resolveUnit(), calmScenario(benchSeconds).raw[0])
}

// What one core makes prices and candles of: the chain over one partition of ticks, as a worker runs it.
func BenchmarkPricesChain_3Venues3Coins(b *testing.B) {
	benchmarkUnit(b, pricesUnit(scenarioPartitions), scriptedTicks(b))
}

func scriptedTicks(b *testing.B) []*kgo.Record {
	s := calmScenario(benchSeconds)
	partition, _ := sameTicksPartition(1)
	var resolved [scenarioPartitions]memoryLog
	for p, input := range s.raw {
		resolved[p] = fold(b, resolveUnit(), input)
	}
	return s.ticks(partition, resolved)
}

func benchmarkUnit(b *testing.B, unit processors.Unit, input []*kgo.Record) {
	ticks := 0
	for _, rec := range input {
		ticks += ticksIn(b, rec)
	}
	b.ReportAllocs()
	var d discard
	for b.Loop() {
		w := processors.TakeOver(unit, partitionOf(input), &d, memoryLog{}.applied)
		for _, rec := range input {
			if err := w.Apply(context.Background(), rec); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*ticks)/b.Elapsed().Seconds(), "ticks/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*ticks), "ns/tick")
	b.ReportMetric(float64(b.N*len(input))/b.Elapsed().Seconds(), "records/s")
}

func ticksIn(b *testing.B, rec *kgo.Record) int {
	b.Helper()
	if rec.Topic == schemas.TopicTicks {
		if decode(rec).(*eventsv1.ResolvedRecord).GetTick() != nil {
			return 1
		}
		return 0
	}
	raw := &eventsv1.RawRecord{}
	if err := raw.UnmarshalVT(rec.Value); err != nil {
		b.Fatal(err)
	}
	if raw.GetTick() != nil {
		return 1
	}
	return 0
}
