package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/outbox"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// scriptedClock is a time that a test moves. What waits for it is woken at the first second that lies
// behind, so that nobody who counts seconds misses one by having looked in between.
type scriptedClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []scriptedTimer
	// finished is the last second whose clock records are in the log, by writer.
	finished map[string]time.Time
	moved    chan struct{} // closed when somebody finished a second
}

type scriptedTimer struct {
	at   time.Time
	fire chan time.Time
}

func newScriptedClock(now time.Time) *scriptedClock {
	return &scriptedClock{now: now, finished: map[string]time.Time{}, moved: make(chan struct{})}
}

func (c *scriptedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *scriptedClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.now.Add(d)
	if second := at.Truncate(time.Second); second.After(c.now) {
		at = second
	}
	fire := make(chan time.Time, 1)
	c.timers = append(c.timers, scriptedTimer{at, fire})
	return fire
}

func (c *scriptedClock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	c.timers = slices.DeleteFunc(c.timers, func(t scriptedTimer) bool {
		if t.at.After(now) {
			return false
		}
		t.fire <- now
		return true
	})
}

// Join and Finished are how a producer's writer notifies that the log holds its clock of a second.
func (c *scriptedClock) Join(name string) { c.Finished(name, c.Now()) }

func (c *scriptedClock) Finished(name string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished[name] = at
	close(c.moved)
	c.moved = make(chan struct{})
}

// written waits until the log holds every writer's clock of a second.
func (c *scriptedClock) written(t *testing.T, second time.Time) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		c.mu.Lock()
		done := len(c.finished) > 0
		for _, at := range c.finished {
			done = done && !at.Before(second)
		}
		moved := c.moved
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-moved:
		case <-limit:
			t.Fatalf("the clock records of %s are not in the log", second)
		}
	}
}

// recordingClock is a scripted clock as an adapter sees it that lives in the time of its recording.
type recordingClock struct {
	*scriptedClock
	shift time.Duration // from the recording's time to the log's
}

func (c recordingClock) Now() time.Time { return c.scriptedClock.Now().Add(-c.shift) }

// recordingOutbox takes what an adapter read in the time of its recording into the time of the log, and
// remembers the ticks as they were handed over.
type recordingOutbox struct {
	producers.Outbox
	shift int64

	mu    sync.Mutex
	ticks []*eventsv1.Tick
	dead  []*eventsv1.DeadLetter
}

func (o *recordingOutbox) Tick(t *eventsv1.Tick) {
	t.IngestTime += o.shift
	if t.EventTime != 0 {
		t.EventTime += o.shift
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ticks = append(o.ticks, proto.CloneOf(t))
	o.Outbox.Tick(t)
}

func (o *recordingOutbox) Dead(d *eventsv1.DeadLetter) {
	d.IngestTime += o.shift
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = append(o.dead, d)
	o.Outbox.Dead(d)
}

func (o *recordingOutbox) Gap(g *eventsv1.Gap) {
	g.FromTime, g.ToTime = g.FromTime+o.shift, g.ToTime+o.shift
	o.Outbox.Gap(g)
}

// openEngine opens the ClickHouse that the logs of one test share, each with a database of its own.
func openEngine(t *testing.T) *engine.Engine {
	t.Helper()
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	dir := t.TempDir()
	e, err := engine.Open(dir, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// recordedLog is a log of its own with everything that folds it, on a clock that the test moves.
type recordedLog struct {
	t      *testing.T
	in     *instance.Instance
	clock  *scriptedClock
	writer *outbox.Writer
	rates  *feed
	// opened means that the folds have seen enough clocks to move theirs, and know the rates.
	opened bool

	mu sync.Mutex
	// records are all of the log, by topic and partition.
	records map[string]map[int32][]oracle.Record
	// folded is the watermark of each partition of prices.v1 and candles.v1.
	folded  map[string]map[int32]int64
	changed chan struct{} // closed when records came
	// converted is the ingest time of the newest tick of the scripted venue that was converted by a rate.
	converted int64
}

// newRecordedLog opens a log whose time begins at a full second.
func newRecordedLog(t *testing.T, e *engine.Engine, database string, begin time.Time) *recordedLog {
	t.Helper()
	dir, err := os.MkdirTemp("", "recorded") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Feeds, cfg.Kafka.Listen, cfg.ClickHouse.Database = dir, "none", "127.0.0.1:0", database
	quiet := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	in, err := instance.OpenInstance(t.Context(), cfg, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	l := &recordedLog{
		t: t, in: in, clock: newScriptedClock(begin), records: map[string]map[int32][]oracle.Record{},
		folded: map[string]map[int32]int64{}, changed: make(chan struct{}),
	}
	in.UseEngine(e)
	in.Clock = l.clock
	if _, err := operations.Migrate(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	started, err := roles.ProcessorRoles(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	writing := outbox.DefaultWriterConfig()
	writing.Log, writing.SpoolDir, writing.Clock, writing.Logger = in.Stream, in.Dir.Path("spool"), l.clock, quiet
	if l.writer, err = outbox.NewWriter(writing); err != nil {
		t.Fatal(err)
	}
	started = append(started, supervise.Role{Name: "producers", Run: l.writer.Run}, supervise.Role{Name: "reader", Run: l.read})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, role := range started {
		running.Go(func() {
			if err := role.Run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", role.Name, err)
			}
		})
	}
	t.Cleanup(func() { stop(); running.Wait() })
	l.openRates()
	return l
}

// read keeps every record of the log.
func (l *recordedLog) read(ctx context.Context) error {
	topics := []string{schemas.TopicTicksRaw, schemas.TopicTicksRawDead, schemas.TopicTicks, schemas.TopicQuotes, schemas.TopicPrices, schemas.TopicCandles}
	client, err := l.in.Stream.NewClient(kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		l.mu.Lock()
		fetches.EachRecord(func(rec *kgo.Record) {
			if l.records[rec.Topic] == nil {
				l.records[rec.Topic] = map[int32][]oracle.Record{}
			}
			l.records[rec.Topic][rec.Partition] = append(l.records[rec.Topic][rec.Partition], oracle.Record{Offset: rec.Offset, Value: rec.Value})
			err = l.note(rec)
		})
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// note keeps how far the folds have come.
func (l *recordedLog) note(rec *kgo.Record) error {
	if rec.Topic == schemas.TopicTicksRaw || rec.Topic == schemas.TopicTicksRawDead {
		return nil
	}
	marked, err := schemas.DecodeRecord(rec.Topic, rec.Value)
	if err != nil {
		return err
	}
	if pulse := marked.GetPulse(); pulse != nil && rec.Topic != schemas.TopicTicks {
		if l.folded[rec.Topic] == nil {
			l.folded[rec.Topic] = map[int32]int64{}
		}
		l.folded[rec.Topic][rec.Partition] = pulse.Watermark
	}
	if resolved, ok := marked.(*eventsv1.ResolvedRecord); ok {
		if r := resolved.GetTick(); r != nil && r.Tick.Venue == scriptedSlug && r.Tick.Symbol == convertedMarket && r.Rate != 0 {
			l.converted = max(l.converted, r.Tick.IngestTime)
		}
	}
	return nil
}

// await waits until what is read of the log fulfils a condition.
func (l *recordedLog) await(what string, limit time.Duration, done func() bool) bool {
	timeout := time.After(limit)
	for {
		l.mu.Lock()
		ok, changed := done(), l.changed
		l.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-timeout:
			return false
		}
	}
}

// awaitFolds waits until all partitions of a topic have folded the log up to a time.
func (l *recordedLog) awaitFolds(at time.Time, topics ...string) {
	l.t.Helper()
	for _, name := range topics {
		topic, err := schemas.TopicNamed(name)
		if err != nil {
			l.t.Fatal(err)
		}
		behind := func() bool {
			n := int32(0)
			for _, watermark := range l.folded[name] {
				if watermark >= at.UnixNano() {
					n++
				}
			}
			return n == topic.Partitions
		}
		if !l.await(name, time.Minute, behind) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.t.Fatalf("%s is not folded up to %s: %v", name, at, slices.Sorted(maps.Values(l.folded[name])))
		}
	}
}

// togetherness is how far apart the folds may be: far below what a rate or a market is fresh for.
const togetherness = 15

// advance moves the clock, second by second, and lets the scripted venue speak in each.
func (l *recordedLog) advance(to time.Time) {
	l.t.Helper()
	for now := l.clock.Now(); ; {
		next := now.Truncate(time.Second).Add(time.Second)
		if speaks := now.Truncate(time.Second).Add(scriptedAt); l.rates != nil && now.Before(speaks) && !to.Before(speaks) {
			l.clock.set(speaks)
			l.rates.venue.sendAndWait(scriptedTickers(speaks))
			now = speaks
		}
		if to.Before(next) {
			break
		}
		l.clock.set(next)
		l.clock.written(l.t, next)
		now = next
		if l.opened && next.Unix()%togetherness == 0 {
			l.awaitFolds(next.Add(-time.Second), schemas.TopicPrices)
		}
	}
	l.clock.set(to)
}

// stride is how far the clock leaps: less than the scripted venue may be silent for.
const stride = 6 * time.Second

// leap moves the clock to a full second, in strides: nothing is evaluated in the seconds between.
func (l *recordedLog) leap(to time.Time) {
	l.t.Helper()
	for now := l.clock.Now().Truncate(time.Second); now.Before(to.Truncate(time.Second)); {
		now = now.Add(min(stride, to.Truncate(time.Second).Sub(now)))
		l.clock.set(now)
		l.clock.written(l.t, now)
		l.clock.set(now.Add(scriptedAt))
		l.rates.venue.sendAndWait(scriptedTickers(now))
	}
}

// feed is one adapter that reads one loopback venue.
type feed struct {
	l     *recordedLog
	venue *loopbackVenue
	out   *recordingOutbox
	stop  func()
	x     *adapter.Exchange
}

// openFeed connects the venue's adapter to a loopback venue and returns once it has subscribed.
func (l *recordedLog) openFeed(v adapter.Venue, server *loopbackVenue, shift time.Duration, wanted func(adapter.Instrument) bool) *feed {
	l.t.Helper()
	v = v.Recorded() // recordings also have feeds of a venue that the engine never asks for
	clock := recordingClock{l.clock, shift}
	client, err := fetch.New(instance.RequestBudget(v.Limits), clock, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	f := &feed{l: l, venue: server, out: &recordingOutbox{Outbox: l.writer.Source(v.Slug), shift: int64(shift)}}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	f.x = adapter.NewExchange(v, adapter.ExchangeConfig{
		URLs: adapter.URLs{Stream: server.streamURL(), REST: server.restURL()}, Select: wanted,
	}, client, f.out, clock, nil, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.x.Run(ctx) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Errorf("%s: %v", v.Slug, err)
		}
		server.server.Close()
	})
	l.t.Cleanup(f.stop)
	select {
	case <-server.subscribed:
	case <-time.After(time.Minute):
		l.t.Fatalf("%s: the adapter has not subscribed: %+v", v.Slug, f.x.Stats())
	}
	return f
}

// The scripted venue reports every second what USD is worth: it speaks Kraken's feed, and its last market
// reports when rates have come through.
const (
	scriptedSlug    = "kraken"
	convertedMarket = "SOL/EUR"
	scriptedAt      = 300 * time.Millisecond
)

var scriptedMarkets = []struct {
	pair  pair
	price int64 // in 1e-5 of the quote
}{
	{pair{"BTC/USD", "BTC", "USD"}, 40_000_00000}, {pair{"ETH/USD", "ETH", "USD"}, 2_800_00000},
	{pair{"USDT/USD", "USDT", "USD"}, 99990}, {pair{"USDC/USD", "USDC", "USD"}, 1_00010}, {pair{"BUSD/USD", "BUSD", "USD"}, 1_00000},
	{pair{"EUR/USD", "EUR", "USD"}, 1_08500}, {pair{"GBP/USD", "GBP", "USD"}, 1_27300},
	{pair{convertedMarket, "SOL", "EUR"}, 88_00000},
}

// scriptedPrice moves a market by up to 3 bps, by the second.
func scriptedPrice(market int, second int64) int64 {
	price := scriptedMarkets[market].price
	return price + price*((second*31+int64(market)*7)%7-3)/10_000
}

// scriptedTickers are what the scripted venue sends in a second.
func scriptedTickers(at time.Time) recordedFrame {
	var rows []byte
	spell := func(n int64) string { return fmt.Sprintf("%d.%05d", n/1e5, n%1e5) }
	for i, m := range scriptedMarkets {
		price := scriptedPrice(i, at.Unix())
		if i > 0 {
			rows = append(rows, ',')
		}
		rows = fmt.Appendf(rows, `{"symbol":%q,"bid":%s,"bid_qty":10.5,"ask":%s,"ask_qty":3.25,"last":%s,"volume":1200.5,"vwap":%s,"low":%s,"high":%s,"change":0.1,"change_pct":0.01}`,
			m.pair.symbol, spell(price-price/20_000-1), spell(price+price/20_000+1), spell(price), spell(price), spell(price), spell(price))
	}
	return recordedFrame{bytes: fmt.Appendf(nil, `{"channel":"ticker","type":"update","data":[%s]}`, rows)}
}

// openRates opens the scripted venue, and moves the clock until ticks are converted by the rates that
// follow from it.
func (l *recordedLog) openRates() {
	l.t.Helper()
	venue, _ := exchanges.Find(scriptedSlug)
	var pairs []pair
	for _, m := range scriptedMarkets {
		pairs = append(pairs, m.pair)
	}
	server := newLoopbackVenue(l.t, scriptedSlug, map[string]string{venue.Listing[0]: listing(l.t, scriptedSlug, pairs)})
	l.rates = l.openFeed(venue, server, 0, func(adapter.Instrument) bool { return true })
	for range 50 {
		spoke := l.clock.Now().Truncate(time.Second).Add(time.Second + scriptedAt)
		l.advance(spoke.Truncate(time.Second).Add(time.Second))
		now := l.clock.Now().UnixNano()
		// As long as the folds have not seen this second there may be a rate yet that follows from it.
		l.await("rates", time.Second, func() bool {
			return l.converted >= spoke.UnixNano() || l.folded[schemas.TopicPrices][0] >= now && l.folded[schemas.TopicQuotes][0] >= now-int64(quotesSettle)
		})
		if l.await("a converted tick", 20*time.Millisecond, func() bool { return l.converted >= spoke.UnixNano() }) {
			l.opened = true
			return
		}
	}
	l.t.Fatal("no tick was converted in 50 s of rates")
}

// quotesSettle is about how far the fold of rates lags behind the log: it waits for clocks to settle.
const quotesSettle = 2 * time.Second
