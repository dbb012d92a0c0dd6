package processors_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/latest"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// drawTheSameCases makes random tests repeat themselves unless a seed is given: a gate that fails for
// chance teaches people to run it again. Other seeds, and more cases, are explored with -rapid.seed and -rapid.checks.
func drawTheSameCases() {
	given := false
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		_ = flag.Set("rapid.checks", "40") // with the race detector a case of a whole log takes a second
	}
	if seed := flag.Lookup("rapid.seed"); seed != nil && seed.Value.String() == "0" {
		_ = seed.Value.Set("20261121")
	}
}

func TestMain(m *testing.M) {
	drawTheSameCases()
	if os.Getenv(memberOf) != "" {
		os.Exit(m.Run()) // a member has no engine, which would take the pipe to its parent from it
	}
	enginetest.Main(m)
}

// wire is a way to ClickHouse that a test can cut.
type wire struct {
	http.RoundTripper
	before, after atomic.Pointer[func(*http.Request) error]
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if f := w.before.Load(); f != nil {
		if err := (*f)(r); err != nil {
			return nil, err
		}
	}
	resp, err := w.RoundTripper.RoundTrip(r)
	if f := w.after.Load(); f != nil && err == nil {
		if err := (*f)(r); err != nil {
			resp.Body.Close()
			return nil, err
		}
	}
	return resp, err
}

// newStore is a migrated store on a database that no other test has, and the wire to it.
func newStore(t testing.TB) (*history.Store, *wire) {
	t.Helper()
	database, to := enginetest.Migrated(t)
	way := &wire{RoundTripper: to}
	store, err := history.Open(t.Context(), history.Config{Database: database, Transport: way})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store, way
}

// newLog is a broker with all topics, and a producer to the partitions that records name.
func newLog(t testing.TB) (stream.Config, *kgo.Client) {
	t.Helper()
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"}
	producer, err := cfg.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	if err := stream.CreateTopics(t.Context(), producer, schemas.Topics, 1, stream.ClusterTopicConfigs); err != nil {
		t.Fatal(err)
	}
	return cfg, producer
}

// script writes derived records and keeps, per table, what a sink must make of them.
type script struct {
	t        testing.TB
	topic    string
	producer *kgo.Client
	expected rows.Batch
	offsets  map[int32]int64
	prices   map[string]latest.Record
}

func newScript(t testing.TB, topic string, producer *kgo.Client) *script {
	return &script{t: t, topic: topic, producer: producer, offsets: map[int32]int64{}, prices: map[string]latest.Record{}}
}

// write appends a record. One that counts is expected in the tables.
func (s *script) write(partition int32, record eventsv1.Marked, counts bool) {
	value := make([]byte, record.SizeVT())
	if _, err := record.MarshalToSizedBufferVT(value); err != nil {
		s.t.Fatal(err)
	}
	offset := s.raw(partition, value)
	if !counts {
		return
	}
	s.expected.Add(rows.Place{Topic: s.topic, Partition: partition, Offset: offset}, record)
	if p, ok := record.(*eventsv1.PriceRecord); ok && p.GetPrice() != nil {
		s.prices[p.GetPrice().CoinId] = latest.Record{Partition: partition, Offset: offset, Mark: p.Mark, Price: p.GetPrice()}
	}
}

func (s *script) raw(partition int32, value []byte) int64 {
	s.producer.Produce(s.t.Context(), &kgo.Record{Topic: s.topic, Partition: partition, Value: value, Timestamp: time.Unix(0, noon)}, func(_ *kgo.Record, err error) {
		if err != nil {
			s.t.Errorf("producing: %v", err)
		}
	})
	offset := s.offsets[partition]
	s.offsets[partition]++
	return offset
}

func (s *script) flush() {
	s.t.Helper()
	if err := s.producer.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano()

func price(partition int32, offset int64, coin string) *eventsv1.PriceRecord {
	return &eventsv1.PriceRecord{
		Mark: &eventsv1.Mark{LogicVersion: 1, Partition: partition, Offset: offset},
		Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{
			CoinId: coin, Time: noon + offset*int64(time.Second), Price: float64(offset), Method: 1, Inputs: []*eventsv1.PriceInput{{Provider: "kraken", Bid: float64(offset)}},
		}},
	}
}

// somePrices writes n prices of 40 coins, pulses, duplicates and records that are not ours.
func (s *script) somePrices(random *rand.Rand, n int) {
	for range n {
		coin := fmt.Sprintf("coin%d", random.IntN(40))
		p := stream.PartitionFor(coin, 8)
		// Marks ascend with the offsets, and so do the prices' seconds.
		at := 10 * (s.offsets[p] + 1)
		s.write(p, price(p, at, coin), true)
		switch random.IntN(8) {
		case 0: // another writer saw something else
			duplicate := price(p, at, coin)
			duplicate.GetPrice().Price = -1
			s.write(p, duplicate, false)
		case 1:
			s.write(p, price(p, at-5, "zombie"), false)
		case 2:
			s.write(p, &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: p, Offset: at + 1}, Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{}}}, true)
		case 3:
			s.raw(p, []byte("\xff not ours"))
		}
	}
	s.flush()
}

// start runs a sink and returns how to end it: it gives Run's error.
func start(t testing.TB, sink *processors.Sink) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sink.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(time.Minute):
			return errors.New("the sink did not end")
		}
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

func quiet(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// settled waits until the ledger is at the end of what was written.
func (s *script) settled(store *history.Store) {
	s.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		progress, err := store.Progress(s.t.Context(), s.topic, 0)
		behind := err
		for p, next := range s.offsets {
			if err == nil && progress[p].Next != next {
				behind = fmt.Errorf("partition %d: got %d of %d records into the ledger", p, progress[p].Next, next)
			}
		}
		if behind == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal(behind)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// check compares the tables with those that one insert makes.
func (s *script) check(store *history.Store) {
	s.t.Helper()
	want, _ := newStore(s.t)
	if err := s.expected.Insert(s.t.Context(), want, ""); err != nil {
		s.t.Fatal(err)
	}
	for _, table := range []string{"ticks", "prices", "prices_1h"} {
		wanted, err := want.Digest(s.t.Context(), table, "")
		if err != nil {
			s.t.Fatal(err)
		}
		got, err := store.Digest(s.t.Context(), table, "")
		if err != nil {
			s.t.Fatal(err)
		}
		if got != wanted {
			var rows, wantedRows uint64
			_ = store.Conn().QueryRow(s.t.Context(), "SELECT count() FROM "+table+" FINAL").Scan(&rows)
			_ = want.Conn().QueryRow(s.t.Context(), "SELECT count() FROM "+table+" FINAL").Scan(&wantedRows)
			s.t.Errorf("%s: got %d rows with digest %x, want %d with %x", table, rows, got, wantedRows, wanted)
		}
	}
}

// checkLatest compares the cache with the last price of each coin. Offsets of what was read back
// from history are unknown.
func (s *script) checkLatest(cache *latest.Store) {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		snap, err := cache.Load(s.t.Context(), 8)
		diff := fmt.Sprint(err)
		if err == nil {
			got := map[string]latest.Record{}
			for _, r := range snap.Records {
				r.Offset = s.prices[r.Price.CoinId].Offset
				got[r.Price.CoinId] = r
			}
			diff = cmp.Diff(s.prices, got, protocmp.Transform()) + cmp.Diff(s.offsets, snap.Next)
		}
		if diff == "" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("cache: want(-), got(+):\n%s", diff)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func embeddedCache(t testing.TB) *latest.Store {
	return latest.New(connectRedis(t, miniredis.RunT(t).Addr()))
}

func connectRedis(t testing.TB, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}

func TestEveryRecordIsMaterializedOnce(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	cache := embeddedCache(t)
	s := newScript(t, schemas.TopicPrices, producer)
	random := rand.New(rand.NewPCG(1, 1))
	s.somePrices(random, 3000)
	stop := start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Latest: cache, Logger: slog.New(slog.DiscardHandler)})
	s.settled(store)
	s.somePrices(random, 3000)
	s.settled(store)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s.check(store)
	s.checkLatest(cache)
}

// The ledger says up to when the minutes of a partition are closed, once they are in their table. Of a log that has records, it
// says from the beginning that none is.
func TestTheLedgerShowsWhichMinutesAreClosed(t *testing.T) {
	log, producer := newLog(t)
	store, way := newStore(t)
	s := newScript(t, schemas.TopicCandles, producer)
	pulse := func(partition int32, offset int64, watermark time.Duration) {
		s.write(partition, &eventsv1.CandleRecord{Mark: &eventsv1.Mark{Partition: partition, Offset: offset}, Body: &eventsv1.CandleRecord_Pulse{
			Pulse: &eventsv1.Pulse{Now: noon, Watermark: noon + int64(watermark)}}}, true)
	}
	pulse(0, 1, schemas.AllowedLateness+119*time.Second)
	pulse(0, 2, schemas.AllowedLateness+2*time.Minute)
	pulse(0, 3, schemas.AllowedLateness+time.Minute) // a watermark goes back only where the fold began again
	pulse(1, 1, schemas.AllowedLateness+time.Minute-1)
	s.write(2, &eventsv1.CandleRecord{Mark: &eventsv1.Mark{Partition: 2, Offset: 1}, Body: &eventsv1.CandleRecord_Candle{
		Candle: &eventsv1.Candle{CoinId: "bitcoin", Start: noon, Open: 1, High: 1, Low: 1, Close: 1, Volume: "1"}}}, true)
	s.flush()
	begun := make(chan map[int32]history.Progress, 1)
	hold := func(r *http.Request) error {
		if strings.Contains(r.URL.Query().Get("query"), "INSERT INTO candles_1m ") && len(begun) == 0 {
			progress, err := store.Progress(t.Context(), schemas.TopicCandles, 0)
			if err != nil {
				return err
			}
			begun <- progress
		}
		return nil
	}
	way.before.Store(&hold)
	start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Logger: quiet(t)})
	s.settled(store)
	if before := <-begun; len(before) != 3 || before[0].ClosedUntil != 0 || before[0].Next != 0 {
		t.Errorf("before the first insert: got the ledger %+v, want all three partitions at nothing", before)
	}
	progress, err := store.Progress(t.Context(), schemas.TopicCandles, 0)
	if err != nil {
		t.Fatal(err)
	}
	for partition, want := range map[int32]int64{0: noon + int64(2*time.Minute), 1: noon, 2: 0} {
		if got := progress[partition].ClosedUntil; got != want {
			t.Errorf("partition %d: got minutes closed until %d, want %d", partition, got, want)
		}
	}
}

// A sink that is asked to end has written what it read, and a later one reads none of it again.
func TestEndingWritesWhatWasRead(t *testing.T) {
	log, producer := newLog(t)
	store, way := newStore(t)
	s := newScript(t, schemas.TopicPrices, producer)
	s.somePrices(rand.New(rand.NewPCG(2, 2)), 500)
	read := make(chan struct{})
	hold := func(r *http.Request) error {
		if strings.Contains(r.URL.Query().Get("query"), "INSERT INTO prices ") {
			select {
			case <-read:
			default:
				close(read)
			}
		}
		return nil
	}
	way.before.Store(&hold)
	stop := start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Logger: slog.New(slog.DiscardHandler)})
	<-read
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s.settled(store)
	s.check(store)
}

// death is the end of a sink at a statement: neither that nor any later one is made, or that is the
// last one made.
type death struct {
	insert string // the table; empty for a query
	made   bool
	dead   atomic.Bool
}

// errDead is not an error that a sink tries again after, so that it ends and forgets what it holds.
var errDead = &clickhouse.Exception{Code: 62, Message: "dead"}

func (d *death) before(r *http.Request) error {
	if d.dead.Load() {
		return errDead
	}
	table, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Query().Get("query"), "INSERT INTO "), " ")
	if table == d.insert && d.dead.CompareAndSwap(false, true) && !d.made {
		return errDead
	}
	return nil
}

func (d *death) after(*http.Request) error {
	if d.dead.Load() {
		return errDead
	}
	return nil
}

// The sink dies before or after any of its statements, loses all it knows, and begins again.
func TestDyingAnywhereLosesAndDoublesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	log, producer := newLog(t)
	store, way := newStore(t)
	cache := embeddedCache(t)
	s := newScript(t, schemas.TopicPrices, producer)
	for round, n := range random.Perm(16) {
		s.somePrices(random, 200)
		d := &death{insert: []string{"", "prices", "prices_1h", "ledger"}[n/4], made: n%2 == 1}
		before, after := d.before, d.after
		way.before.Store(&before)
		way.after.Store(&after)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := (&processors.Sink{Topic: s.topic, Log: log, History: store, Latest: cache, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
		cancel()
		way.before.Store(nil)
		way.after.Store(nil)
		if !errors.Is(err, errDead) {
			t.Fatalf("seed %d, round %d, insert into %q, made %t: got %v, want %v", seed, round, d.insert, d.made, err, errDead)
		}
	}
	start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Latest: cache, Logger: quiet(t)})
	s.settled(store)
	s.check(store)
	s.checkLatest(cache)
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// A batch is refused for good while the next is being filled, and what comes after is accepted again: the sink ends without writing what lies
// after that batch, whose ledger would state that the batch is kept.
func TestARefusedBatchIsNotPassedOver(t *testing.T) {
	log, producer := newLog(t)
	store, way := newStore(t)
	s := newScript(t, schemas.TopicPrices, producer)
	s.somePrices(rand.New(rand.NewPCG(5, 5)), 50)
	filling := make(chan string, 1000) // topics of records that are passed over
	var refused atomic.Bool
	refuse := func(r *http.Request) error {
		if !strings.Contains(r.URL.Query().Get("query"), "INSERT INTO prices ") || !refused.CompareAndSwap(false, true) {
			return nil
		}
		for len(filling) > 0 {
			<-filling
		}
		s.write(0, price(0, 1<<20, "bitcoin"), true)
		s.raw(0, []byte("\xff not ours"))
		s.flush()
		<-filling
		return errDead
	}
	way.before.Store(&refuse)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sink := processors.Sink{
		Topic: s.topic, Log: log, History: store, Logger: slog.New(slog.DiscardHandler), Undecodable: func(topic string) { filling <- topic },
	}
	if err := sink.Run(ctx); !errors.Is(err, errDead) {
		t.Fatalf("got %v, want %v", err, errDead)
	}
	start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Logger: quiet(t)})
	s.settled(store)
	s.check(store)
}

// Members come and go while records are written.
func TestPartitionsAreHandedOver(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	cache := embeddedCache(t)
	s := newScript(t, schemas.TopicPrices, producer)
	random := rand.New(rand.NewPCG(3, 3))
	var stops []func() error
	for range 4 {
		s.somePrices(random, 1500)
		stops = append(stops, start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Latest: cache, Logger: slog.New(slog.DiscardHandler)}))
		s.somePrices(random, 1500)
		if len(stops) > 2 {
			if err := stops[len(stops)-3](); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.settled(store)
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	s.check(store)
	s.checkLatest(cache)
}

func tick(partition int32, offset int64, coin string) *eventsv1.ResolvedRecord {
	return &eventsv1.ResolvedRecord{
		Mark: &eventsv1.Mark{LogicVersion: 1, Partition: partition, Offset: offset},
		Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
			CoinId: coin, QuoteId: "USD", Rate: 1, RateTime: noon,
			Tick: &eventsv1.Tick{
				Venue: "kraken", Symbol: coin + "/USD", Base: coin, Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
				EventId: fmt.Appendf(nil, "%02d%014d", partition, offset), EventTime: noon + offset, IngestTime: noon + offset,
				Price: "123.456789012345678901", Size: "0.5", TradeId: fmt.Sprint(offset),
			},
		}},
	}
}

// While ClickHouse is away, has no room left or hangs, the log waits: memory stays flat, and on its return the same sink goes
// on. It stays away until the sink has been refused with growing pauses for some three seconds.
func TestClickHouseAwayHoldsTheLogBack(t *testing.T) {
	const refusals = 6 // after pauses of 0.1, 0.2, 0.4, 0.8 and 1.6 s
	for name, away := range map[string]func(*http.Request) error{
		"away": func(*http.Request) error { return errors.New("connection refused") },
		"full": func(*http.Request) error {
			return &clickhouse.Exception{Code: 243, Message: "Cannot reserve 1.00 MiB, not enough space"}
		},
		"hangs": func(r *http.Request) error {
			<-r.Context().Done()
			return r.Context().Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, producer := newLog(t)
			store, way := newStore(t)
			s := newScript(t, schemas.TopicTicks, producer)
			for i := range int64(1000) {
				s.write(int32(i%8), tick(int32(i%8), i, "bitcoin"), true)
			}
			s.flush()
			stop := start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Logger: slog.New(slog.DiscardHandler)})
			s.settled(store)
			release := make(chan struct{})
			var refused atomic.Int32
			refuse := func(r *http.Request) error {
				select {
				case <-release:
					return nil
				default:
				}
				refused.Add(1)
				ctx, cancel := context.WithCancel(r.Context())
				defer cancel()
				go func() {
					select {
					case <-release:
					case <-ctx.Done():
					}
					cancel()
				}()
				return away(r.WithContext(ctx))
			}
			way.before.Store(&refuse)
			const n = 200_000
			for i := range int64(n) {
				s.write(int32(i%8), tick(int32(i%8), 1000+i, "bitcoin"), true)
			}
			s.flush()
			s.expected.Reset() // as large as what the sink must not hold
			heap := settledHeap()
			before := heap
			for begun := time.Now(); refused.Load() < refusals; {
				if name == "hangs" && refused.Load() > 0 && time.Since(begun) > 3*time.Second {
					break // one request takes longer than the test
				}
				if time.Since(begun) > time.Minute {
					t.Fatalf("in a minute the sink was refused %d times, want %d", refused.Load(), refusals)
				}
				time.Sleep(100 * time.Millisecond)
				heap = max(heap, settledHeap())
			}
			if grown := (int64(heap) - int64(before)) >> 20; grown > 64 {
				t.Errorf("with %d records waiting the heap grew by %d MiB, want at most 64", n, grown)
			}
			close(release)
			s.settled(store)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			var rows uint64
			if err := store.Conn().QueryRow(t.Context(), "SELECT count() FROM ticks FINAL").Scan(&rows); err != nil || rows != n+1000 {
				t.Errorf("got %d rows, %v, want %d", rows, err, n+1000)
			}
		})
	}
}

func settledHeap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// What ClickHouse refuses for good ends the role, with the reason.
func TestDefectEndsTheSink(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	if err := store.Conn().Exec(t.Context(), "ALTER TABLE prices DROP COLUMN score"); err != nil {
		t.Fatal(err)
	}
	s := newScript(t, schemas.TopicPrices, producer)
	s.somePrices(rand.New(rand.NewPCG(4, 4)), 10)
	sink := &processors.Sink{Topic: s.topic, Log: log, History: store, Logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := sink.Run(ctx); err == nil || !strings.Contains(err.Error(), "score") {
		t.Errorf("got %v, want an error about the missing column", err)
	}
	progress, err := store.Progress(t.Context(), s.topic, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range progress { // those of a log with records are there, with nothing kept
		if p.Next != 0 {
			t.Errorf("got the ledger %+v, want it at the log's start", p)
		}
	}
}

// A ledger that is ahead of the log is one of another log: its offsets say nothing about this one.
func TestLedgerOfAnotherLogIsRefused(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	err := store.Record(t.Context(), []history.SinkProgress{{Sink: schemas.TopicPrices, Progress: history.Progress{Partition: 3, Next: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	s := newScript(t, schemas.TopicPrices, producer)
	s.write(3, price(3, 1, "bitcoin"), true)
	s.flush()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var past *stream.PastEndError
	err = (&processors.Sink{Topic: s.topic, Log: log, History: store, Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
	if !errors.As(err, &past) || past.Partition != 3 || past.Start != 5 || past.End != 1 {
		t.Errorf("got %v, want that 5 lies behind 1 in partition 3", err)
	}
}

// The cache is killed, paused and flushed: the tables go on when it does, and it ends up whole.
func TestCacheAwayIsFilledAgain(t *testing.T) {
	server := streamtest.StartRedis(t)
	log, producer := newLog(t)
	store, _ := newStore(t)
	cache := latest.New(connectRedis(t, server.Addr()))
	s := newScript(t, schemas.TopicPrices, producer)
	random := rand.New(rand.NewPCG(5, 5))
	s.somePrices(random, 1000)
	missed := newWaiting()
	start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Latest: cache, Logger: slog.New(missed)})
	s.settled(store)
	s.checkLatest(cache)

	server.Flush(t)
	// Only some coins change: the others come back from history.
	p := stream.PartitionFor("coin1", 8)
	s.write(p, price(p, 10*(s.offsets[p]+1), "coin1"), true)
	s.eachPartition()
	s.settled(store)
	s.checkLatest(cache)

	server.Pause(t)
	s.somePrices(random, 1000)
	missed.await(t) // a write has run out of its time
	server.Resume(t)
	s.settled(store)
	s.checkLatest(cache)

	missed.forget()
	server.Kill()
	s.somePrices(random, 1000)
	missed.await(t)
	server.Restart(t)
	s.settled(store)
	s.eachPartition()
	s.settled(store)
	s.checkLatest(cache)
	s.check(store)
}

// waiting is a log that says when a sink waits for a store. Its methods may be called concurrently.
type waiting struct {
	slog.Handler
	seen chan struct{}
}

func newWaiting() waiting { return waiting{slog.DiscardHandler, make(chan struct{}, 1)} }

func (w waiting) Enabled(context.Context, slog.Level) bool { return true }

func (w waiting) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "waiting for a store" {
		select {
		case w.seen <- struct{}{}:
		default:
		}
	}
	return nil
}

// forget drops what was seen so far.
func (w waiting) forget() {
	select {
	case <-w.seen:
	default:
	}
}

func (w waiting) await(t *testing.T) {
	t.Helper()
	select {
	case <-w.seen:
	case <-time.After(time.Minute):
		t.Fatal("the sink did not notice that the store is away")
	}
}

// eachPartition writes a pulse into every partition that has records.
func (s *script) eachPartition() {
	partitions := make([]int32, 0, 8)
	for p := range s.offsets {
		partitions = append(partitions, p)
	}
	slices.Sort(partitions)
	for _, p := range partitions {
		at := 10 * (s.offsets[p] + 1)
		s.write(p, &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Partition: p, Offset: at}, Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{}}}, true)
	}
	s.flush()
}
