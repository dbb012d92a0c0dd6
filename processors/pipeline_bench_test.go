package processors_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
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

// A market of 20 venues and 500 coins, each of which trades or is quoted somewhere eight times a second.
const (
	pipelineVenues  = 20
	pipelineCoins   = 500
	pipelinePerSec  = 4000
	pipelineSeconds = 90
)

// derived are the topics that the pipeline makes, with the table that most of their rows are in.
var derived = map[string]string{schemas.TopicTicks: "ticks", schemas.TopicPrices: "prices", schemas.TopicCandles: "candles_1m"}

// BenchmarkPipeline_20Venues500Coins measures from the log of raw ticks to the tables and the cache: names resolved, a median of
// each coin a second, candles, and all rows inserted with the ledger that makes a kill harmless, the prices in a Redis of its
// own process too. Beside it: inserting the same rows and nothing else, twice over nothing guaranteed.
func BenchmarkPipeline_20Venues500Coins(b *testing.B) {
	raw := pipelineTicks(b)
	var rows sinkLoad
	b.Run("pipeline", func(b *testing.B) { rows = runPipeline(b, raw) })
	b.Run("insert-only", func(b *testing.B) {
		if rows == nil {
			b.Skip("not applicable: the pipeline makes the rows, and was not run")
		}
		began := b.Elapsed()
		rows.insertOnly(b)
		b.ReportMetric(float64(b.N*pipelinePerSec*pipelineSeconds)/(b.Elapsed()-began).Seconds(), "ticks/s")
	})
}

// pipelineTicks are the raw ticks and the clocks of their venues, in the order of the log.
func pipelineTicks(b *testing.B) (records []*kgo.Record) {
	seen := map[string]int{}
	for _, c := range schemas.Coins().All() {
		seen[c.Symbol]++
	}
	var symbols []string
	for _, c := range schemas.Coins().All() {
		if seen[c.Symbol] == 1 && len(symbols) < pipelineCoins {
			symbols = append(symbols, c.Symbol)
		}
	}
	topic, err := schemas.TopicNamed(schemas.TopicTicksRaw)
	if err != nil || len(symbols) < pipelineCoins {
		b.Fatalf("got %d coins, %v", len(symbols), err)
	}
	add := func(partition int32, venue string, rec *eventsv1.RawRecord) {
		rec.Producer, rec.Epoch = venue, noon
		value, err := rec.MarshalVT()
		if err != nil {
			b.Fatal(err)
		}
		records = append(records, &kgo.Record{Topic: topic.Name, Partition: partition, Value: value, Timestamp: time.Unix(0, noon)})
	}
	clocks := func(at int64) {
		for v := range pipelineVenues {
			for p := range int32(topic.Partitions) {
				add(p, "venue"+strconv.Itoa(v), &eventsv1.RawRecord{Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: at}}})
			}
		}
	}
	n := 0
	for second := range int64(pipelineSeconds) {
		for i := range int64(pipelinePerSec) {
			coin, venue := n%pipelineCoins, "venue"+strconv.Itoa(n/pipelineCoins%pipelineVenues)
			n++
			at := noon + second*1e9 + i*1e9/pipelinePerSec
			var id [16]byte
			binary.BigEndian.PutUint64(id[:], uint64(n)*0x9e3779b97f4a7c15)
			k := &eventsv1.Tick{
				Venue:      venue,
				Symbol:     symbols[coin] + "-USD",
				Base:       symbols[coin],
				Quote:      "USD",
				EventId:    id[:],
				EventTime:  at - 5e7,
				IngestTime: at,
			}
			if n%3 == 0 {
				k.Kind, k.Price, k.Size, k.TradeId = eventsv1.TickKind_TICK_KIND_TRADE, fmt.Sprintf(
					"%d.%02d",
					1000+coin,
					n%100,
				), fmt.Sprintf(
					"0.%06d",
					1+n%999_999,
				), strconv.Itoa(
					n,
				)
			} else {
				k.Kind, k.Bid, k.Ask = eventsv1.TickKind_TICK_KIND_QUOTE, fmt.Sprintf(
					"%d.%02d",
					1000+coin,
					n%100,
				), fmt.Sprintf(
					"%d.%02d",
					1001+coin,
					n%100,
				)
			}
			add(
				stream.PartitionFor(venue+"|"+symbols[coin], int32(topic.Partitions)),
				venue,
				&eventsv1.RawRecord{Body: &eventsv1.RawRecord_Tick{Tick: k}},
			)
		}
		clocks(noon + (second+1)*1e9)
	}
	for past := int64(30); past <= 150; past += 30 { // until the last minute is closed
		clocks(noon + (pipelineSeconds+past)*1e9)
	}
	return records
}

// runPipeline measures it, and returns the rows that it made of the ticks.
func runPipeline(b *testing.B, raw []*kgo.Record) (rows sinkLoad) {
	b.StopTimer()
	b.ResetTimer()
	var cpu time.Duration
	for range b.N {
		log, producer := newLog(b)
		for _, rec := range raw {
			copied := *rec
			producer.Produce(b.Context(), &copied, nil)
		}
		if err := producer.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
		store, _ := newStore(b)
		cache := latest.New(connectRedis(b, streamtest.StartRedis(b).Addr()))
		for _, table := range derived {
			if err := store.Conn().Exec(b.Context(), "SYSTEM STOP MERGES "+table); err != nil {
				b.Fatal(err)
			}
		}
		metrics := processors.NewMetrics(prometheus.NewRegistry())
		ctx, cancel := context.WithCancel(b.Context())
		all, ctx := errgroup.WithContext(ctx)
		began := cpuTime(b)
		b.StartTimer()
		quiet := slog.New(slog.DiscardHandler)
		for _, unit := range []processors.Unit{resolveUnit(), pricesUnit(8)} {
			all.Go(func() error { return (&processors.Runner{Unit: unit, Log: log, Logger: quiet}).Run(ctx) })
		}
		for topic := range derived {
			sink := &processors.Sink{Topic: topic, Log: log, History: store, Metrics: metrics, Logger: quiet}
			if topic == schemas.TopicPrices {
				sink.Latest = cache
			}
			all.Go(func() error { return sink.Run(ctx) })
		}
		admin := kadm.NewClient(producer)
		for look := time.Tick(pipelineLook); !pipelineEnded(b, store, metrics, admin); {
			select {
			case <-look:
			case <-ctx.Done():
				b.Fatal(all.Wait())
			}
		}
		b.StopTimer()
		cpu += cpuTime(b) - began
		cancel()
		if err := all.Wait(); err != nil {
			b.Fatal(err)
		}
		rows = madeRows(b, log, admin, store)
	}
	ticks := b.N * pipelinePerSec * pipelineSeconds
	b.ReportMetric(float64(ticks)/b.Elapsed().Seconds(), "ticks/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(ticks), "cpu-µs/tick")
	return rows
}

// pipelineLook is the time between two looks at whether a pipeline has ended: each asks the store.
const pipelineLook = 50 * time.Millisecond

// pipelineEnded reports whether every tick is in its table, the candles of the last minute are, and with them whatever the log
// holds of prices and candles.
func pipelineEnded(b *testing.B, store *history.Store, metrics *processors.Metrics, admin *kadm.Client) bool {
	for _, topic := range []string{schemas.TopicPrices, schemas.TopicCandles} {
		ends, err := admin.ListEndOffsets(b.Context(), topic)
		if err != nil {
			b.Fatal(err)
		}
		next := insertedOf(metrics, topic)
		behind := false
		ends.Each(func(end kadm.ListedOffset) { behind = behind || next[end.Partition] < end.Offset })
		if behind {
			return false
		}
	}
	var ticks, candles uint64
	if err := store.Conn().
		QueryRow(b.Context(), "SELECT (SELECT count() FROM ticks), (SELECT count() FROM candles_1m)").
		Scan(&ticks, &candles); err != nil {
		b.Fatal(err)
	}
	return ticks >= pipelinePerSec*pipelineSeconds && candles >= pipelineCoins*((pipelineSeconds+59)/60)
}

// madeRows reads what the pipeline wrote into the log, as rows to insert.
func madeRows(b *testing.B, log stream.Config, admin *kadm.Client, store *history.Store) (load sinkLoad) {
	for _, topic := range slices.Sorted(maps.Keys(derived)) {
		ends, err := admin.ListEndOffsets(b.Context(), topic)
		if err != nil {
			b.Fatal(err)
		}
		left := int64(0)
		ends.Each(func(end kadm.ListedOffset) { left += end.Offset })
		client, err := log.NewClient(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			b.Fatal(err)
		}
		var records []*kgo.Record
		for int64(len(records)) < left {
			fetches := client.PollFetches(b.Context())
			if err := fetches.Err(); err != nil {
				b.Fatal(err)
			}
			records = append(records, fetches.Records()...)
		}
		client.Close()
		var held uint64
		if err := store.Conn().QueryRow(b.Context(), "SELECT count() FROM "+derived[topic]+" FINAL").Scan(&held); err != nil {
			b.Fatal(err)
		}
		load = append(
			load,
			sinkPart{topic, derived[topic], int(held), sinkBenchBatch, func(yield func(rows.Place, eventsv1.Marked) bool) {
				for _, rec := range records {
					if !yield(rows.Place{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}, decode(rec)) {
						return
					}
				}
			}},
		)
	}
	return load
}
