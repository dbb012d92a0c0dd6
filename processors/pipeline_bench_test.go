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
	b.Run("beside a replay", func(b *testing.B) { besideReplay(b, raw) })
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
	written := time.Unix(0, noon)
	add := func(partition int32, venue string, rec *eventsv1.RawRecord) {
		rec.Producer, rec.Epoch = venue, noon
		value, err := rec.MarshalVT()
		if err != nil {
			b.Fatal(err)
		}
		records = append(records, &kgo.Record{Topic: topic.Name, Partition: partition, Value: value, Timestamp: written})
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
		written = time.Unix(0, noon+second*1e9)
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
	var cpu, replayed time.Duration
	for range b.N {
		p := newPipeline(b)
		p.produce(b, raw)
		began := cpuTime(b)
		b.StartTimer()
		p.start(b)
		p.await(b, pipelineSeconds)
		b.StopTimer()
		cpu += cpuTime(b) - began
		p.stop(b)
		replayed += p.replay(b)
		rows = madeRows(b, p.log, p.admin, p.store)
	}
	ticks := b.N * pipelinePerSec * pipelineSeconds
	b.ReportMetric(float64(ticks)/b.Elapsed().Seconds(), "ticks/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(ticks), "cpu-µs/tick")
	b.ReportMetric(float64(ticks)/replayed.Seconds(), "replayed-ticks/s")
	return rows
}

// besideReplay measures the second half of the ticks while a replay makes again what was made of the first.
func besideReplay(b *testing.B, raw []*kgo.Record) {
	b.StopTimer()
	b.ResetTimer()
	const half = pipelineSeconds / 2
	until := slices.IndexFunc(raw, func(rec *kgo.Record) bool { return rec.Timestamp.UnixNano() >= noon+half*1e9 })
	var replayed time.Duration
	for range b.N {
		p := newPipeline(b)
		p.produce(b, raw[:until])
		p.start(b)
		p.await(b, half)
		p.produce(b, raw[until:])
		b.StartTimer()
		took := make(chan time.Duration, 1)
		go func() { took <- p.replay(b) }()
		p.await(b, pipelineSeconds)
		b.StopTimer()
		replayed += <-took
		p.stop(b)
	}
	ticks := float64(b.N * pipelinePerSec * half)
	b.ReportMetric(ticks/b.Elapsed().Seconds(), "ticks/s")
	b.ReportMetric(ticks/replayed.Seconds(), "replayed-ticks/s")
}

// pipeline is a log, its tables and what folds the one into the others.
type pipeline struct {
	log      stream.Config
	producer *kgo.Client
	admin    *kadm.Client
	store    *history.Store
	cache    *latest.Store
	metrics  *processors.Metrics
	end      context.CancelFunc
	work     *errgroup.Group
	failed   <-chan struct{}
}

func newPipeline(b *testing.B) *pipeline {
	p := &pipeline{metrics: processors.NewMetrics(prometheus.NewRegistry())}
	p.log, p.producer = newLog(b)
	p.admin = kadm.NewClient(p.producer)
	p.store, _ = newStore(b)
	p.cache = latest.New(connectRedis(b, streamtest.StartRedis(b).Addr()))
	for _, table := range derived {
		if err := p.store.Conn().Exec(b.Context(), "SYSTEM STOP MERGES "+table); err != nil {
			b.Fatal(err)
		}
	}
	return p
}

func (p *pipeline) produce(b *testing.B, raw []*kgo.Record) {
	for _, rec := range raw {
		copied := *rec
		p.producer.Produce(b.Context(), &copied, nil)
	}
	if err := p.producer.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// start runs the folds and the sinks until stop.
func (p *pipeline) start(b *testing.B) {
	ctx, end := context.WithCancel(b.Context())
	p.work, ctx = errgroup.WithContext(ctx)
	p.end, p.failed = end, ctx.Done()
	quiet := slog.New(slog.DiscardHandler)
	for _, unit := range []processors.Unit{resolveUnit(), pricesUnit(8)} {
		p.work.Go(func() error { return (&processors.Runner{Unit: unit, Log: p.log, Logger: quiet}).Run(ctx) })
	}
	for topic := range derived {
		sink := &processors.Sink{Topic: topic, Log: p.log, History: p.store, Metrics: p.metrics, Logger: quiet}
		if topic == schemas.TopicPrices {
			sink.Latest = p.cache
		}
		p.work.Go(func() error { return sink.Run(ctx) })
	}
}

func (p *pipeline) stop(b *testing.B) {
	p.end()
	if err := p.work.Wait(); err != nil {
		b.Fatal(err)
	}
}

// await waits until the ticks of so many seconds are in the tables, with all that was made of them.
func (p *pipeline) await(b *testing.B, seconds int) {
	for look := time.Tick(pipelineLook); !p.ended(b, seconds); {
		select {
		case <-look:
		case <-p.failed:
			b.Fatal(p.work.Wait())
		}
	}
}

// replay returns how long a replay takes to make what the pipeline has made by now, beside it, and to find no difference.
func (p *pipeline) replay(b *testing.B) time.Duration {
	var prices uint64
	if err := p.store.Conn().QueryRow(b.Context(), "SELECT count() FROM prices FINAL").Scan(&prices); err != nil {
		b.Error(err)
	}
	replay := processors.Replay{
		View: schemas.ViewAll, Verify: true, Unit: pricesUnit(8), Log: p.log, History: p.store, Logger: slog.New(slog.DiscardHandler),
		Emit: func(any) error { return nil },
	}
	began := time.Now()
	result, err := replay.Run(b.Context())
	took := time.Since(began)
	if err != nil || result.Differing > 0 || result.Outside > 0 || result.Compared < int64(prices) {
		b.Errorf("got %+v, %v, want %d prices and all candles to be the same", result, err, prices)
	}
	return took
}

// pipelineLook is the time between two looks at whether a pipeline has ended: each asks the store.
const pipelineLook = 50 * time.Millisecond

// ended reports whether every tick of so many seconds is in its table, the candles of the minutes that closed are, and with them whatever the log
// holds of prices and candles.
func (p *pipeline) ended(b *testing.B, seconds int) bool {
	for _, topic := range []string{schemas.TopicPrices, schemas.TopicCandles} {
		ends, err := p.admin.ListEndOffsets(b.Context(), topic)
		if err != nil {
			b.Fatal(err)
		}
		next := insertedOf(p.metrics, topic)
		behind := false
		ends.Each(func(end kadm.ListedOffset) { behind = behind || next[end.Partition] < end.Offset })
		if behind {
			return false
		}
	}
	minutes := 0
	if seconds == pipelineSeconds {
		minutes = (pipelineSeconds + 59) / 60
	}
	var ticks, candles uint64
	if err := p.store.Conn().
		QueryRow(b.Context(), "SELECT (SELECT count() FROM ticks), (SELECT count() FROM candles_1m)").
		Scan(&ticks, &candles); err != nil {
		b.Fatal(err)
	}
	return ticks >= uint64(pipelinePerSec*seconds) && candles >= uint64(pipelineCoins*minutes)
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
