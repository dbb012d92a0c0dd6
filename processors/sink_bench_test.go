package processors_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
)

// sinkBenchRows make a run of some seconds, in which what begins and ends it counts for little.
const (
	sinkBenchRows  = 1_000_000
	sinkBenchBatch = 50_000
)

// sinkTicks yields trades and quotes of 20 venues and 1,000 coins, and where each lies in the log.
// None is kept: a million of them would be scanned by every garbage collection.
func sinkTicks(yield func(history.Place, *eventsv1.ResolvedRecord) bool) {
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
		place := history.Place{Topic: schemas.TopicTicks, Partition: int32(p), Offset: offsets[p]}
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

// BenchmarkSink_20Venues1000Coins measures log to tables, beside what only inserting the same rows
// reaches and what a consumer written by hand does.
func BenchmarkSink_20Venues1000Coins(b *testing.B) {
	log, producer := newLog(b)
	for place, record := range sinkTicks {
		value, err := record.MarshalVT()
		if err != nil {
			b.Fatal(err)
		}
		producer.Produce(b.Context(), &kgo.Record{Topic: place.Topic, Partition: place.Partition, Value: value, Timestamp: time.Unix(0, noon)}, nil)
	}
	if err := producer.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("insert-only", func(b *testing.B) {
		var cpu time.Duration
		for range b.N {
			b.StopTimer()
			store, _ := newStore(b)
			batches := []*history.Batch{{}}
			for place, record := range sinkTicks {
				if batches[len(batches)-1].Len() == sinkBenchBatch {
					batches = append(batches, &history.Batch{})
				}
				batches[len(batches)-1].Add(place, record)
			}
			b.StartTimer()
			began := cpuTime(b)
			for _, batch := range batches {
				if err := store.Insert(b.Context(), batch, ""); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			cpu += cpuTime(b) - began
			checkRows(b, store)
			b.StartTimer()
		}
		report(b, cpu)
	})
	b.Run("sink", func(b *testing.B) {
		var cpu time.Duration
		for range b.N {
			b.StopTimer()
			store, way := newStore(b)
			recorded := make(chan struct{}, 1) // one is enough to look again
			watch := func(r *http.Request) error {
				if strings.HasPrefix(r.URL.Query().Get("query"), "INSERT INTO ledger") {
					select {
					case recorded <- struct{}{}:
					default:
					}
				}
				return nil
			}
			way.after.Store(&watch)
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan error, 1)
			b.StartTimer()
			began := cpuTime(b)
			go func() {
				done <- (&processors.Sink{Topic: schemas.TopicTicks, Log: log, History: store, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
			}()
			for inserted(b, store) < sinkBenchRows {
				<-recorded
			}
			b.StopTimer()
			cpu += cpuTime(b) - began
			cancel()
			if err := <-done; err != nil {
				b.Fatal(err)
			}
			checkRows(b, store)
			b.StartTimer()
		}
		report(b, cpu)
	})
	b.Run("by-hand", func(b *testing.B) {
		var cpu time.Duration
		for range b.N {
			b.StopTimer()
			store, _ := newStore(b)
			b.StartTimer()
			began := cpuTime(b)
			consumeByHand(b, log, store)
			b.StopTimer()
			cpu += cpuTime(b) - began
			checkRows(b, store)
			b.StartTimer()
		}
		report(b, cpu)
	})
}

// cpuTime is what the process has used of all cores, the engine's and the broker's share included.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func report(b *testing.B, cpu time.Duration) {
	rows := float64(sinkBenchRows * b.N)
	b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(cpu.Microseconds())/rows, "cpu-µs/row")
}

func inserted(b *testing.B, store *history.Store) (rows int64) {
	progress, err := store.Progress(b.Context(), schemas.TopicTicks, 0)
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range progress {
		rows += p.Next
	}
	return rows
}

func checkRows(b *testing.B, store *history.Store) {
	b.Helper()
	var rows uint64
	if err := store.Conn().QueryRow(b.Context(), "SELECT count() FROM ticks FINAL").Scan(&rows); err != nil || rows != sinkBenchRows {
		b.Fatalf("got %d rows, %v, want %d", rows, err, sinkBenchRows)
	}
}

// consumeByHand is how one would write it in an afternoon: the usual protobuf, the driver's rows, and
// nothing read while 100,000 of them are sent. It guarantees nothing.
func consumeByHand(b *testing.B, log stream.Config, store *history.Store) {
	client, err := log.NewClient(kgo.ConsumeTopics(schemas.TopicTicks), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	const size = 100_000
	newBatch := func() (batch interface {
		Append(...any) error
		Send() error
	}) {
		batch, err := store.Conn().PrepareBatch(b.Context(), "INSERT INTO ticks")
		if err != nil {
			b.Fatal(err)
		}
		return batch
	}
	money := func(s string) *decimal.Decimal {
		if s == "" {
			return nil
		}
		d := decimal.RequireFromString(s)
		return &d
	}
	kinds, sides := []string{"", "trade", "quote", "ticker"}, []string{"", "buy", "sell"}
	batch, held := newBatch(), 0
	for done := 0; done < sinkBenchRows; {
		fetches := client.PollFetches(b.Context())
		if err := fetches.Err(); err != nil {
			b.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var rec eventsv1.ResolvedRecord
			if err := proto.Unmarshal(r.Value, &rec); err != nil {
				b.Fatal(err)
			}
			t := rec.GetTick()
			k := t.Tick
			version := new(big.Int).Lsh(big.NewInt(int64(rec.Mark.LogicVersion)), 64)
			version.Add(version, big.NewInt(r.Offset))
			at := time.Unix(0, k.IngestTime)
			err := batch.Append(t.CoinId, k.Venue, k.Symbol, kinds[k.Kind], at, time.Unix(0, k.EventTime), string(k.EventId), at, k.Base, k.Quote, t.QuoteId,
				money(k.Price), money(k.Size), sides[k.Side], k.TradeId, money(k.Bid), money(k.Ask), money(k.Last), money(k.VolumeBase), money(k.VolumeQuote),
				t.Rate, time.Unix(0, t.RateTime), t.RateOffset, t.Flags, k.Snapshot, k.Simulated, rec.Mark.Partition, rec.Mark.Offset, r.Partition, r.Offset, version)
			if err != nil {
				b.Fatal(err)
			}
			done++
			if held++; held == size || done == sinkBenchRows {
				if err := batch.Send(); err != nil {
					b.Fatal(err)
				}
				batch, held = newBatch(), 0
			}
		})
	}
}
