package processors_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/latest"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// sinkBenchRows make a run of some seconds, in which what begins and ends it counts for little.
const (
	sinkBenchRows   = 2_000_000
	sinkBenchBatch  = 50_000
	sinkBenchPrices = 100_000
)

// sinkTicks yields trades and quotes of 20 venues and 1,000 coins, and where each lies in the log.
// None is kept: millions of them would be scanned by every garbage collection.
func sinkTicks(yield func(rows.Place, eventsv1.Marked) bool) {
	const venues, coins = 20, 1000
	var offsets [8]int64
	for i := range int64(sinkBenchRows) {
		coin := i % coins
		p := coin % 8
		var id [16]byte
		binary.BigEndian.PutUint64(id[:], uint64(i)*0x9e3779b97f4a7c15)
		k := &eventsv1.Tick{
			Venue: "venue" + strconv.FormatInt(i/coins%venues, 10), Symbol: fmt.Sprintf("COIN%dUSDT", coin), Base: fmt.Sprintf("COIN%d", coin), Quote: "USDT",
			EventId: id[:], EventTime: noon + i*1e6, IngestTime: noon + i*1e6 + 5e7,
		}
		if i%3 == 0 {
			k.Kind, k.Price, k.Size, k.Side, k.TradeId = eventsv1.TickKind_TICK_KIND_TRADE, fmt.Sprintf("%d.%02d", 1000+coin, i%100), fmt.Sprintf("0.%06d", 1+i%999_999), 1, strconv.FormatInt(i, 10)
		} else {
			k.Kind, k.Bid, k.Ask = eventsv1.TickKind_TICK_KIND_QUOTE, fmt.Sprintf("%d.%02d", 1000+coin, i%100), fmt.Sprintf("%d.%02d", 1001+coin, i%100)
		}
		place := rows.Place{Topic: schemas.TopicTicks, Partition: int32(p), Offset: offsets[p]}
		offsets[p]++
		more := yield(place, &eventsv1.ResolvedRecord{
			Mark: &eventsv1.Mark{LogicVersion: 1, Partition: int32(p), Offset: i},
			Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{Tick: k, CoinId: fmt.Sprintf("coin-%d", coin), QuoteId: "tether", Rate: 1.0001, RateTime: noon, RateOffset: i}},
		})
		if !more {
			return
		}
	}
}

// sinkPrices yields what 1,000 coins cost, each second anew, with the inputs from 20 venues.
func sinkPrices(yield func(rows.Place, eventsv1.Marked) bool) {
	const coins, venues = 1000, 20
	var offsets [8]int64
	for i := range int64(sinkBenchPrices) {
		coin, at := i%coins, noon+i/coins*1e9
		p := &eventsv1.Price{CoinId: fmt.Sprintf("coin-%d", coin), Symbol: fmt.Sprintf("COIN%d", coin), Time: at,
			Price: float64(1000 + coin), Median0: float64(1000 + coin), Min: float64(999 + coin), Max: float64(1001 + coin),
			Confidence: 0.5, Score: 0.9, Accepted: venues, Volume24H: 1e6, Source: "venue7"}
		for v := range int64(venues) {
			p.Inputs = append(p.Inputs, &eventsv1.PriceInput{Provider: fmt.Sprintf("venue%d", v), Symbol: fmt.Sprintf("COIN%dUSDT", coin), QuoteId: "tether",
				Bid: float64(999+coin) + float64(i%100)/100, Ask: float64(1001 + coin), Last: float64(1000+coin) + float64(v)/100,
				QuoteHeard: at - 1e8*v, LastHeard: at - 2e8*v, EventTime: at - 3e8*v, Rate: 1.0001, RateTime: noon, RateOffset: i, Range60: 1, Volume24H: 5e4,
				Partition: int32(v % 8), Offset: i*venues + v, Value: float64(1000 + coin), PriceUsd: float64(1000 + coin), Accepted: true, Basis: "last"})
		}
		partition := int32(coin % 8)
		place := rows.Place{Topic: schemas.TopicPrices, Partition: partition, Offset: offsets[partition]}
		offsets[partition]++
		record := &eventsv1.PriceRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Partition: partition, Offset: i}, Body: &eventsv1.PriceRecord_Price{Price: p}}
		if !yield(place, record) {
			return
		}
	}
}

// BenchmarkSink_20Venues1000Coins measures log to tables, beside what only inserting the same rows
// reaches and what a consumer written by hand does.
func BenchmarkSink_20Venues1000Coins(b *testing.B) {
	ticks := sinkLoad{{schemas.TopicTicks, "ticks", sinkBenchRows, sinkBenchBatch, sinkTicks}}
	log := ticks.produce(b)
	b.Run("insert-only", ticks.insertOnly)
	b.Run("sink", func(b *testing.B) { ticks.sink(b, log, nil) })
	b.Run("by-hand", func(b *testing.B) {
		ticks.measure(b, func(b *testing.B, store *history.Store, way *wire) { consumeByHand(b, log, store, way) })
	})
}

// BenchmarkSinkAndCache_20Venues1000Coins adds the prices that the ticks make, one for twenty ticks,
// each with all its inputs; they also go to the cache, a Redis in its own process.
func BenchmarkSinkAndCache_20Venues1000Coins(b *testing.B) {
	load := sinkLoad{
		{schemas.TopicTicks, "ticks", sinkBenchRows, sinkBenchBatch, sinkTicks},
		{schemas.TopicPrices, "prices", sinkBenchPrices, sinkBenchBatch / 10, sinkPrices},
	}
	log := load.produce(b)
	cache := latest.New(connectRedis(b, streamtest.StartRedis(b).Addr()))
	b.Run("insert-only", load.insertOnly)
	b.Run("sink", func(b *testing.B) { load.sink(b, log, cache) })
}

// sinkLoad is what the log holds when its sinks begin.
type sinkLoad []sinkPart

type sinkPart struct {
	topic, table string
	rows, batch  int
	records      iter.Seq2[rows.Place, eventsv1.Marked]
}

func (l sinkLoad) produce(b *testing.B) stream.Config {
	b.Helper()
	log, producer := newLog(b)
	for _, part := range l {
		for place, record := range part.records {
			value := make([]byte, record.SizeVT())
			if _, err := record.MarshalToSizedBufferVT(value); err != nil {
				b.Fatal(err)
			}
			producer.Produce(b.Context(), &kgo.Record{Topic: place.Topic, Partition: place.Partition, Value: value, Timestamp: time.Unix(0, noon)}, nil)
		}
	}
	if err := producer.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	return log
}

// insertOnly inserts as the sinks do, each topic beside the others.
func (l sinkLoad) insertOnly(b *testing.B) {
	batches := make([][]*rows.Batch, len(l))
	for i, part := range l {
		for place, record := range part.records {
			if n := len(batches[i]); n == 0 || batches[i][n-1].Len() == part.batch {
				batches[i] = append(batches[i], &rows.Batch{})
			}
			batches[i][len(batches[i])-1].Add(place, record)
		}
	}
	l.measure(b, func(b *testing.B, store *history.Store, _ *wire) {
		var all errgroup.Group
		for _, batches := range batches {
			all.Go(func() error {
				for _, batch := range batches {
					if err := batch.Insert(b.Context(), store, ""); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			b.Fatal(err)
		}
	})
}

func (l sinkLoad) sink(b *testing.B, log stream.Config, cache *latest.Store) {
	l.measure(b, func(b *testing.B, store *history.Store, _ *wire) {
		metrics := processors.NewMetrics(prometheus.NewRegistry())
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		all, ctx := errgroup.WithContext(ctx)
		for _, part := range l {
			sink := &processors.Sink{Topic: part.topic, Log: log, History: store, Metrics: metrics, Logger: slog.New(slog.DiscardHandler)}
			if part.topic == schemas.TopicPrices {
				sink.Latest = cache
			}
			all.Go(func() error { return sink.Run(ctx) })
		}
		for look := time.Tick(insertedLook); !l.inserted(metrics); {
			select {
			case <-look:
			case <-ctx.Done():
				b.Fatal(all.Wait())
			}
		}
		b.StopTimer()
		cancel()
		if err := all.Wait(); err != nil {
			b.Fatal(err)
		}
	})
}

// measure times a way of filling empty tables, and checks that they are full. It merges nothing:
// merging takes as much in all ways, but would fall into the longer runs only.
func (l sinkLoad) measure(b *testing.B, fill func(*testing.B, *history.Store, *wire)) {
	b.StopTimer()
	b.ResetTimer()
	var cpu time.Duration
	rows := 0
	for range b.N {
		store, way := newStore(b)
		for _, part := range l {
			if err := store.Conn().Exec(b.Context(), "SYSTEM STOP MERGES "+part.table); err != nil {
				b.Fatal(err)
			}
		}
		began := cpuTime(b)
		b.StartTimer()
		fill(b, store, way)
		b.StopTimer()
		cpu += cpuTime(b) - began
		for _, part := range l {
			var held uint64
			if err := store.Conn().QueryRow(b.Context(), "SELECT count() FROM "+part.table+" FINAL").Scan(&held); err != nil || held != uint64(part.rows) {
				b.Fatalf("%s: got %d rows, %v, want %d", part.table, held, err, part.rows)
			}
			rows += part.rows
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(rows), "cpu-µs/row")
}

// insertedLook is the time between two looks at how far sinks have inserted.
const insertedLook = 2 * time.Millisecond

// inserted reports whether the sinks have inserted the whole log.
func (l sinkLoad) inserted(metrics *processors.Metrics) bool {
	for _, part := range l {
		rows := int64(0)
		for _, next := range insertedOf(metrics, part.topic) {
			rows += next
		}
		if rows < int64(part.rows) {
			return false
		}
	}
	return true
}

// insertedOf is up to where the sink of a topic has inserted each partition.
func insertedOf(metrics *processors.Metrics, topic string) map[int32]int64 {
	next := map[int32]int64{}
	for _, p := range metrics.Positions() {
		if p.Fold == "" && p.Topic == topic {
			next[p.Partition] = p.Next
		}
	}
	return next
}

// cpuTime is what the process has used of all cores, the engine's and the broker's share included.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
