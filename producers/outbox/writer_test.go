package outbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// fakeBroker is kfake on one port and one directory, to be stopped and started again.
type fakeBroker struct {
	t       testing.TB
	port    int
	dir     string
	cluster *kfake.Cluster
}

func newFakeBroker(t testing.TB) *fakeBroker {
	t.Helper()
	port, err := streamtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b := &fakeBroker{t: t, port: port, dir: t.TempDir()}
	t.Cleanup(func() {
		if b.cluster != nil {
			b.cluster.Close()
		}
	})
	return b
}

func (b *fakeBroker) Addr() string { return "127.0.0.1:" + strconv.Itoa(b.port) }

func (b *fakeBroker) start() {
	b.t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(b.port), kfake.DataDir(b.dir),
		kfake.SeedTopics(partitionCounts[topicTicks], schemas.TopicTicksRaw),
		kfake.SeedTopics(partitionCounts[topicDead], schemas.TopicTicksRawDead))
	if err != nil {
		b.t.Fatal(err)
	}
	b.cluster = cluster
}

func (b *fakeBroker) stop() {
	b.cluster.Close()
	b.cluster = nil
}

func createTopics(t *testing.T, addr string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for topic, name := range topicNames {
		if _, err := admin.CreateTopic(t.Context(), partitionCounts[topic], 1, nil, name); err != nil {
			t.Fatal(err)
		}
	}
}

// drifting is a clock that runs faster than the machine's.
type drifting struct {
	start time.Time
	times time.Duration
}

func (c drifting) Now() time.Time { return c.start.Add(time.Since(c.start) * c.times) }

func (c drifting) After(d time.Duration) <-chan time.Time { return time.After(d/c.times + 1) }

func testConfig(t testing.TB, addr string) WriterConfig {
	cfg := DefaultWriterConfig()
	cfg.Log = stream.Config{Brokers: []string{addr}}
	cfg.SpoolDir = filepath.Join(t.TempDir(), "spool")
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.SpoolAfter = time.Minute // a broker that answers late on a busy machine is not taken for one that is away
	cfg.DrainTimeout = time.Minute
	return cfg
}

// running starts a writer; stop ends it and waits.
func running(t testing.TB, cfg WriterConfig) (w *Writer, stop func()) {
	t.Helper()
	w, err := NewWriter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return w, stop
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// settled waits until everything handed over before now is acknowledged: the next clock of all
// sources comes after it.
func settled(t testing.TB, w *Writer) {
	t.Helper()
	now := w.clock.Now()
	eventually(t, "a later clock is acknowledged", func() bool { s := w.Stats(); return !s.Spooling && s.Clock.After(now) })
}

func number(i int) []byte { return binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i)) }

func tickNumber(venue string, i int, at time.Time) *eventsv1.Tick {
	base := "C" + strconv.Itoa(i%40)
	return &eventsv1.Tick{
		Venue: venue, Symbol: base + "-USD", Base: base, Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
		EventId: number(i), EventTime: at.UnixNano() - 3_000_000, IngestTime: at.UnixNano(),
		Price: "64123.5", Size: "0.00125", Side: eventsv1.Side_SIDE_BUY, TradeId: strconv.Itoa(1_000_000 + i),
	}
}

// logged is what the log holds, by partition.
type logged struct {
	ticks map[int32][]*eventsv1.RawRecord
	dead  []*eventsv1.DeadRecord
}

// readLog reads both topics from their beginning to their end, with a client of its own.
func readLog(t testing.TB, addr string) logged {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topicNames[:]...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topicNames[:]...)
	if err != nil {
		t.Fatal(err)
	}
	missing := int64(0)
	ends.Each(func(o kadm.ListedOffset) { missing += o.Offset })
	log := logged{ticks: map[int32][]*eventsv1.RawRecord{}}
	for missing > 0 {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("reading the log: %v, %d records missing", err, missing)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			missing--
			if r.Topic == schemas.TopicTicksRawDead {
				d := new(eventsv1.DeadRecord)
				if err := d.UnmarshalVT(r.Value); err != nil {
					t.Errorf("dead letter at offset %d: %v", r.Offset, err)
				}
				log.dead = append(log.dead, d)
				return
			}
			raw := new(eventsv1.RawRecord)
			if err := raw.UnmarshalVT(r.Value); err != nil {
				t.Errorf("record at offset %d: %v", r.Offset, err)
			}
			if tick := raw.GetTick(); tick != nil {
				if want := stream.PartitionFor(tick.Venue+"|"+tick.Base, partitionCounts[topicTicks]); r.Partition != want {
					t.Errorf("tick of %s|%s is on partition %d, want %d", tick.Venue, tick.Base, r.Partition, want)
				}
				if got, want := r.Timestamp.UnixMilli(), tick.IngestTime/1e6; got != want {
					t.Errorf("timestamp of a tick = %d, want its ingest time %d", got, want)
				}
			}
			log.ticks[r.Partition] = append(log.ticks[r.Partition], raw)
		})
	}
	return log
}

type producerEpoch struct {
	producer string
	epoch    int64
}

// wantTicks checks that the numbers [0,n) of each venue are there but for the missing, that each key is in
// order and that no clock is contradicted. Second copies are allowed only if again is.
func (l logged) wantTicks(t testing.TB, n int, again bool, missing uint64, venues ...string) {
	t.Helper()
	seen := map[string]int{}
	for partition, records := range l.ticks {
		clocks := map[producerEpoch]int64{}
		last := map[string]int{}
		for i := len(records) - 1; again && i >= 0; i-- {
			// Only the last copy has to be in order with all others.
			if id := key(records[i]); id != "" && last[id] == 0 {
				last[id] = i
			}
		}
		newest := map[string]int{}
		for i, raw := range records {
			if again && key(raw) != "" && last[key(raw)] != i {
				continue
			}
			p := producerEpoch{raw.Producer, raw.Epoch}
			switch body := raw.Body.(type) {
			case *eventsv1.RawRecord_Tick:
				tick := body.Tick
				if tick.IngestTime <= clocks[p] {
					t.Fatalf("partition %d, record %d: tick of %s read at %d comes after the clock %d",
						partition, i, p.producer, tick.IngestTime, clocks[p])
				}
				id := int(binary.BigEndian.Uint64(tick.EventId[8:]))
				market := tick.Venue + tick.Base
				if before, ok := newest[market]; ok && id <= before {
					t.Fatalf("partition %d, record %d: %s tick %d after %d", partition, i, market, id, before)
				}
				newest[market] = id
				seen[tick.Venue+"/"+strconv.Itoa(id)]++
			case *eventsv1.RawRecord_Clock:
				if body.Clock.Time <= clocks[p] {
					t.Fatalf("partition %d: clock of %s went from %d to %d", partition, p.producer, clocks[p], body.Clock.Time)
				}
				clocks[p] = body.Clock.Time
			}
		}
	}
	absent := uint64(0)
	for _, venue := range venues {
		for i := range n {
			if seen[venue+"/"+strconv.Itoa(i)] == 0 {
				absent++
			}
		}
	}
	if absent != missing {
		t.Errorf("%d of %d ticks are not in the log, want %d", absent, n*len(venues), missing)
	}
}

func key(raw *eventsv1.RawRecord) string {
	switch body := raw.Body.(type) {
	case *eventsv1.RawRecord_Tick:
		return body.Tick.Venue + string(body.Tick.EventId)
	case *eventsv1.RawRecord_Clock:
		return fmt.Sprint(raw.Producer, raw.Epoch, body.Clock.Time)
	}
	return ""
}

func (l logged) gaps() (gaps []*eventsv1.Gap) {
	for _, records := range l.ticks {
		for _, raw := range records {
			if g := raw.GetGap(); g != nil {
				gaps = append(gaps, g)
			}
		}
	}
	return gaps
}

// Several sources, each from several goroutines, beside clocks that come 200 times a second.
func TestClockStandsBehindEveryTickItSpeaksFor(t *testing.T) {
	broker := newFakeBroker(t)
	broker.start()
	cfg := testConfig(t, broker.Addr())
	clock := drifting{time.Now(), 200}
	cfg.Clock = clock
	w, stop := running(t, cfg)
	venues := []string{"alpha", "beta", "gamma"}
	const n = 6000
	var wg sync.WaitGroup
	for _, venue := range venues {
		out := w.Source(venue)
		// Goroutine g has the bases of its own, as a connection has its markets.
		for g := range 2 {
			wg.Go(func() {
				for i := range n {
					if i%2 != g {
						continue
					}
					read := clock.Now()
					if i%100 == g {
						time.Sleep(time.Millisecond) // decoding takes its time: a clock comes in between
					}
					out.Tick(tickNumber(venue, i, read))
				}
			})
		}
	}
	wg.Wait()
	eventually(t, "a clock of all sources is acknowledged", func() bool { return w.Stats().Clock.After(clock.start) })
	stop()
	if s := w.Stats(); s.Dropped != 0 || s.Accepted != 3*n || s.InFlight != 0 {
		t.Errorf("stats = %+v, want %d accepted, none dropped or in flight", s, 3*n)
	}
	log := readLog(t, broker.Addr())
	log.wantTicks(t, n, false, 0, venues...)
	perPartition := map[int32]int{}
	for p, records := range log.ticks {
		for _, raw := range records {
			if raw.GetClock() != nil {
				perPartition[p]++
			}
		}
	}
	for p := range partitionCounts[topicTicks] {
		if perPartition[p] != perPartition[0] || perPartition[p] == 0 {
			t.Errorf("clocks on partition %d = %d, on partition 0 = %d, want as many and some", p, perPartition[p], perPartition[0])
		}
	}
}

func TestBrokerAwayLosesNothing(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (addr string, away, back func()){
		"kfake": func(t *testing.T) (string, func(), func()) {
			b := newFakeBroker(t)
			b.start()
			return b.Addr(), b.stop, b.start
		},
		"kafka": func(t *testing.T) (string, func(), func()) {
			b := streamtest.StartKafka(t)
			createTopics(t, b.Addr())
			return b.Addr(), b.Kill, func() { b.Restart(t) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr, away, back := start(t)
			cfg := testConfig(t, addr)
			cfg.SpoolAfter, cfg.Clock = 2*time.Second, drifting{time.Now(), 20}
			w, stop := running(t, cfg)
			out := w.Source("alpha")
			sent := 0
			send := func(n int) {
				for range n {
					out.Tick(tickNumber("alpha", sent, cfg.Clock.Now()))
					sent++
				}
			}
			send(2000)
			eventually(t, "something is acknowledged", func() bool { return w.Stats().Acked > 2000 })
			away()
			send(3000)
			eventually(t, "the writer spools", func() bool { return w.Stats().Spooling })
			send(3000)
			eventually(t, "the outage is on disk", func() bool { return w.Stats().QueueBytes == 0 })
			if got := w.Stats().SpoolBytes; got < 3000*80 {
				t.Errorf("spool holds %d bytes, want those of 3000 ticks at least", got)
			}
			back()
			for w.Stats().Spooling { // new ticks must not overtake those in the spool
				send(10)
				time.Sleep(time.Millisecond)
			}
			send(1000)
			// A broker that just started may be slow enough for the writer to spool again: what a stop leaves there is kept, and not read here.
			eventually(t, "the spool is empty", func() bool { s := w.Stats(); return !s.Spooling && s.SpoolBytes == 0 })
			stop()
			if s := w.Stats(); s.Dropped != 0 || s.SpoolBytes != 0 || s.Err != nil {
				t.Errorf("stats = %+v, want nothing dropped, an empty spool, no error", s)
			}
			// A broker that was killed may have written what it did not acknowledge.
			readLog(t, addr).wantTicks(t, sent, true, 0, "alpha")
		})
	}
}

func TestStoppedWithoutBrokerSendsAfterRestart(t *testing.T) {
	broker := newFakeBroker(t)
	cfg := testConfig(t, broker.Addr())
	cfg.DrainTimeout = time.Millisecond
	sent := 0
	for range 3 { // three processes one after the other, none of which finds the broker
		w, stop := running(t, cfg)
		out := w.Source("alpha")
		for range 1000 {
			out.Tick(tickNumber("alpha", sent, time.Now()))
			sent++
		}
		stop()
		out.Tick(tickNumber("alpha", sent, time.Now()))
		if s := w.Stats(); s.Accepted != 1000 || s.Refused != 1 || s.Dropped != 0 {
			t.Errorf("stats = %+v, want 1000 accepted, 1 refused after the end, none dropped", s)
		}
	}
	broker.start()
	cfg.DrainTimeout = time.Minute
	w, stop := running(t, cfg)
	w.Source("alpha").Tick(tickNumber("alpha", sent, time.Now()))
	eventually(t, "the spool is sent", func() bool { return w.Stats().Acked > 0 && !w.Stats().Spooling })
	stop()
	readLog(t, broker.Addr()).wantTicks(t, sent+1, false, 0, "alpha")
}

func TestOverflowLeavesAGapOfTheExactSize(t *testing.T) {
	broker := newFakeBroker(t)
	cfg := testConfig(t, broker.Addr())
	cfg.MemoryBytes, cfg.SegmentBytes, cfg.SpoolBytes = 256<<10, 64<<10, 1<<20
	w, stop := running(t, cfg)
	alpha, beta := w.Source("alpha"), w.Source("beta")
	const n = 20_000
	start := time.Now()
	for i := range n {
		alpha.Tick(tickNumber("alpha", i, time.Now()))
		beta.Tick(tickNumber("beta", i, time.Now()))
		if i == n/4 {
			alpha.Gap(&eventsv1.Gap{Venue: "alpha", Symbol: "X", Reason: "sequence", FromTime: start.UnixNano(), ToTime: time.Now().UnixNano(), Missed: 7})
		}
		if got := w.Stats().SpoolBytes; got > cfg.SpoolBytes+cfg.SegmentBytes {
			t.Fatalf("spool has %d bytes, want at most about %d", got, cfg.SpoolBytes)
		}
	}
	eventually(t, "everything is on disk", func() bool { return w.Stats().QueueBytes == 0 })
	dropped := w.Stats().Dropped
	if dropped == 0 {
		t.Fatal("nothing was dropped: the test shows nothing")
	}
	broker.start()
	eventually(t, "the spool is sent", func() bool { return !w.Stats().Spooling })
	stop()
	log := readLog(t, broker.Addr())
	log.wantTicks(t, n, false, dropped, "alpha", "beta")
	missed, venues := uint64(0), []string{}
	for _, g := range log.gaps() {
		if g.Reason != "overflow" || g.FromTime < start.UnixNano() || g.ToTime < g.FromTime || g.ToTime > time.Now().UnixNano() {
			t.Errorf("gap = %v, want an overflow within the outage", g)
		}
		missed += g.Missed
		venues = append(venues, g.Venue)
	}
	// The gap of 7 was dropped too: what it counted is part of the sum.
	if missed != dropped+7 {
		t.Errorf("gaps report %d missed, want %d dropped and 7 that were missing before", missed, dropped)
	}
	if slices.Sort(venues); strings.Join(venues, " ") != "alpha beta" {
		t.Errorf("gaps are of %q, want one of each venue", venues)
	}
}

// With neither broker nor disk the oldest ticks go, the writer stays within its memory and no source
// waits; what went is in a gap once there is a broker.
func TestWithoutBrokerAndDiskTheOldestGo(t *testing.T) {
	broker := newFakeBroker(t)
	cfg := testConfig(t, broker.Addr())
	cfg.MemoryBytes = 1 << 20
	w, stop := running(t, cfg)
	out := w.Source("alpha")
	out.Tick(tickNumber("alpha", 0, time.Now()))
	eventually(t, "the first tick is in flight", func() bool { return w.Stats().InFlight > 0 })
	if err := os.RemoveAll(cfg.SpoolDir); err != nil { // no segment can be created from now on
		t.Fatal(err)
	}
	const n = 10_000
	for i := 1; i < n; i++ {
		out.Tick(tickNumber("alpha", i, time.Now()))
	}
	eventually(t, "something is given up", func() bool { s := w.Stats(); return s.Dropped > 0 && s.Err != nil && s.Spooling })
	if s := w.Stats(); s.QueueBytes+int(s.InFlightBytes) > cfg.MemoryBytes*3/2 {
		t.Errorf("%d bytes queued and %d in flight, want about %d at most", s.QueueBytes, s.InFlightBytes, cfg.MemoryBytes)
	}
	broker.start()
	settled(t, w)
	dropped := w.Stats().Dropped
	if err := os.MkdirAll(cfg.SpoolDir, 0o700); err != nil {
		t.Fatal(err)
	}
	stop()
	log := readLog(t, broker.Addr())
	log.wantTicks(t, n, false, dropped, "alpha")
	missed := uint64(0)
	for _, g := range log.gaps() {
		missed += g.Missed
	}
	if missed != dropped {
		t.Errorf("gaps report %d missed, want %d", missed, dropped)
	}
}

// refuse makes the broker refuse the produce requests that which names, counted from 1, outright: no permission.
func (b *fakeBroker) refuse(which func(n int) bool) {
	n := 0
	b.cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if n++; !which(n) {
			return nil, nil, false
		}
		produce := request.(*kmsg.ProduceRequest)
		response := produce.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range produce.Topics {
			refused := kmsg.NewProduceResponseTopic()
			refused.Topic, refused.TopicID = topic.Topic, topic.TopicID
			for _, partition := range topic.Partitions {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode = partition.Partition, kerr.TopicAuthorizationFailed.Code
				refused.Partitions = append(refused.Partitions, p)
			}
			response.Topics = append(response.Topics, refused)
		}
		return response, nil, true
	})
}

// A broker that refuses a batch makes the client fail it and go on with the next; the log must report
// it in order all the same.
func TestRefusedRecordsAreSentAgainInOrder(t *testing.T) {
	broker := newFakeBroker(t)
	broker.start()
	cfg := testConfig(t, broker.Addr())
	cfg.Clock = drifting{time.Now(), 20}
	broker.refuse(func(n int) bool { return n <= 12 && n%3 == 2 })
	w, stop := running(t, cfg)
	out := w.Source("alpha")
	const n = 5000
	for i := range n {
		out.Tick(tickNumber("alpha", i, cfg.Clock.Now()))
		if i%500 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	eventually(t, "a refusal is reported", func() bool { return w.Stats().Err != nil })
	settled(t, w)
	stop()
	readLog(t, broker.Addr()).wantTicks(t, n, true, 0, "alpha")
}

// What is refused while the writer ends is tried again then too, without waiting for the time to run out.
func TestRefusedWhileEndingIsSentAgain(t *testing.T) {
	broker := newFakeBroker(t)
	broker.start()
	cfg := testConfig(t, broker.Addr())
	broker.refuse(func(n int) bool { return n == 1 })
	w, stop := running(t, cfg)
	out := w.Source("alpha")
	const n = 100
	for i := range n {
		out.Tick(tickNumber("alpha", i, time.Now()))
	}
	ended := time.Now()
	stop()
	if took := time.Since(ended); took > cfg.DrainTimeout/2 {
		t.Errorf("ending took %s, want about the second between two tries", took)
	}
	if s := w.Stats(); s.Acked < n || s.SpoolBytes != 0 {
		t.Errorf("stats = %+v, want all acknowledged and an empty spool", s)
	}
	readLog(t, broker.Addr()).wantTicks(t, n, true, 0, "alpha")
}

func TestRecordsConformToTheProtocol(t *testing.T) {
	broker := newFakeBroker(t)
	broker.start()
	w, stop := running(t, testConfig(t, broker.Addr()))
	out := w.Source("alpha")
	at := time.Now()
	tick := tickNumber("alpha", 1, at)
	out.Tick(tick)
	gap := &eventsv1.Gap{Venue: "alpha", Symbol: "BTC-USD", Reason: "sequence", FromTime: at.UnixNano(), ToTime: at.UnixNano() + 5, Missed: 3}
	out.Gap(gap)
	out.Dead(&eventsv1.DeadLetter{Reason: "undecodable", Source: "alpha", Payload: make([]byte, 64<<10+1), IngestTime: at.UnixNano()})
	stop()
	log := readLog(t, broker.Addr())
	if len(log.dead) != 1 || len(log.dead[0].Letter.Payload) != 64<<10 || !log.dead[0].Letter.Truncated || log.dead[0].Letter.Source != "alpha" {
		t.Errorf("dead letters = %v, want one with 64 kB of its payload, truncated", len(log.dead))
	}
	found := 0
	for _, records := range log.ticks {
		for _, raw := range records {
			if got := raw.GetTick(); got != nil && proto.Equal(got, tick) && raw.Producer == "alpha" && raw.Epoch > 0 {
				found++
			}
			if got := raw.GetGap(); got != nil && proto.Equal(got, gap) && raw.Producer == "alpha" && raw.Epoch > 0 {
				found++
			}
		}
	}
	if found != 2 {
		t.Errorf("found %d of the tick and the gap, want both as they were handed over", found)
	}
}

func TestAppendRawIsProtobuf(t *testing.T) {
	tick := tickNumber("alpha", 5, time.Unix(1_700_000_000, 123))
	want, err := (&eventsv1.RawRecord{Producer: "alpha", Epoch: 42, Body: &eventsv1.RawRecord_Tick{Tick: tick}}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	if got := appendRaw(nil, rawPrefix("alpha", 42), bodyTick, tick); string(got) != string(want) {
		t.Errorf("record = %x, want %x", got, want)
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	_, err := NewWriter(WriterConfig{})
	for _, field := range []string{"Log.Brokers", "SpoolDir", "MemoryBytes", "SegmentBytes", "SpoolBytes", "SpoolAfter", "DrainTimeout"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
}
