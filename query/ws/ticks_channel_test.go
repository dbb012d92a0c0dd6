package ws

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/ticks"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// tickLog is ticks.v1 on a broker of its own.
type tickLog struct {
	t      testing.TB
	client *kgo.Client
	broker string
	coins  *schemas.CoinTable
	wrote  int
}

func newTickLog(t testing.TB, coins *schemas.CoinTable) *tickLog {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	l := &tickLog{t: t, broker: cluster.ListenAddrs()[0], coins: coins}
	if l.client, err = kgo.NewClient(kgo.SeedBrokers(l.broker), kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.client.Close)
	if _, err := kadm.NewClient(l.client).CreateTopics(t.Context(), 8, 1, nil, schemas.TopicTicks); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *tickLog) fixture(bytes int) *fixture {
	return newFixture(l.t, func(s *setup) {
		s.coins, s.stream.OffsetBytes = l.coins, bytes
		s.channels = ticks.Channels(l.coins, func(ctx context.Context, rewind time.Duration, handle func(stream.TailRecord, bool) error) error {
			return stream.NewTail(stream.TailConfig{Brokers: []string{l.broker}, Topic: schemas.TopicTicks, Rewind: rewind, Raw: true}).RunSettled(ctx, handle)
		}, "ticks", slog.New(slog.DiscardHandler))
	})
}

func (l *tickLog) write(records ...*kgo.Record) {
	l.t.Helper()
	if err := l.client.ProduceSync(l.t.Context(), records...).FirstErr(); err != nil {
		l.t.Fatal(err)
	}
}

func (l *tickLog) record(partition int, key string, rec *eventsv1.ResolvedRecord) *kgo.Record {
	value, err := rec.MarshalVT()
	if err != nil {
		l.t.Fatal(err)
	}
	return &kgo.Record{Topic: schemas.TopicTicks, Partition: int32(partition), Key: []byte(key), Value: value, Timestamp: time.Now()}
}

// pulse writes one into every partition, as the fold does each second.
func (l *tickLog) pulse() {
	var all []*kgo.Record
	for p := range 8 {
		all = append(all, l.record(p, "", &eventsv1.ResolvedRecord{Mark: &eventsv1.Mark{}, Body: &eventsv1.ResolvedRecord_Pulse{Pulse: &eventsv1.Pulse{Now: 1, Watermark: 1}}}))
	}
	l.write(all...)
}

// trades writes so many of a coin; the id of each is the number of it.
func (l *tickLog) trades(coin schemas.Coin, n int) {
	var all []*kgo.Record
	for range n {
		l.wrote++
		now := time.Now().UnixNano()
		t := &eventsv1.Tick{Venue: "kraken", Symbol: coin.Symbol + "/USD", Base: coin.Symbol, Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE, EventId: []byte{1, 2}, Price: "101.5",
			Size: "0.25", Side: eventsv1.Side_SIDE_SELL, TradeId: fmt.Sprint(l.wrote), EventTime: now, IngestTime: now}
		all = append(all, l.record(partitionOf(coin), coin.ID, &eventsv1.ResolvedRecord{Mark: &eventsv1.Mark{Offset: int64(l.wrote)}, Body: &eventsv1.ResolvedRecord_Tick{
			Tick: &eventsv1.ResolvedTick{Tick: t, CoinId: coin.ID, QuoteId: "USD", Rate: 1, Flags: uint32(schemas.Late)}}}))
	}
	l.write(all...)
}

// tickMessage is what a client reads of a message.
type tickMessage struct {
	Type, Cursor, Source, Reason string
	Timestamp                    time.Time
	Data                         []ticks.Tick
}

func (c *client) tickMessage(documents *messageSchemas) (m tickMessage, ok bool) {
	c.t.Helper()
	text, err := c.next()
	if err != nil {
		c.t.Log(err)
		return m, false
	}
	if err := documents.fault(text); err != nil {
		c.t.Error(err)
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		c.t.Fatalf("%s: %v", text, err)
	}
	return m, true
}

// Each tick of the chosen coins comes once, over any cuts, also where the client comes back to a server that has just begun; what
// memory holds no longer is a gap with a time.
func TestTicksComeOnceOverCuts(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	coins := scriptCoins(t)
	log := newTickLog(t, coins)
	bitcoin, _ := coins.ByID("bitcoin")
	ethereum, _ := coins.ByID("ethereum")
	log.pulse()
	log.trades(bitcoin, 5)
	replicas := []*fixture{log.fixture(1 << 20), log.fixture(1 << 20)}
	documents := newMessageSchemas(t, replicas[0].document())
	keys := []string{replicas[0].key("growth"), replicas[1].key("growth")}
	open := func(replica int, cursor string) *client {
		asks := "?channels=ticks&symbols=BTC&heartbeatMs=1000"
		if cursor != "" {
			asks += "&cursor=" + cursor
		}
		return replicas[replica].open(dialing{key: keys[replica], query: asks})
	}
	var writing sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	writing.Go(func() { // pulses go on, as from the fold
		every := time.NewTicker(20 * time.Millisecond)
		defer every.Stop()
		for ctx.Err() == nil {
			<-every.C
			log.pulse()
		}
	})
	defer func() { cancel(); writing.Wait() }()
	c := open(0, "")
	cursor := ""
	for cursor == "" {
		m, ok := c.tickMessage(documents)
		if !ok {
			t.Fatal("the socket was closed")
		}
		cursor = m.Cursor
	}
	from := log.wrote
	var got []string
	take := func(until int) {
		for n := 0; n < until; {
			m, ok := c.tickMessage(documents)
			if !ok {
				t.Fatal("the socket was closed")
			}
			if m.Type == "gap" {
				t.Fatalf("seed %d: a gap: %+v", seed, m)
			}
			for _, tick := range m.Data {
				n++
				got = append(got, tick.TradeID)
				if tick.CoinID != "bitcoin" || tick.Price != "101.5" || tick.Side != "sell" || !slices.Equal(tick.Flags, []string{"late"}) || tick.Offset.Partition != int32(partitionOf(bitcoin)) {
					t.Errorf("got %+v", tick)
				}
			}
			if m.Cursor != "" {
				cursor = m.Cursor
			}
		}
	}
	var want []string
	for range 12 {
		n := 1 + rng.IntN(30)
		log.trades(ethereum, rng.IntN(9))
		for i := range n {
			want = append(want, fmt.Sprint(log.wrote+i+1))
		}
		log.trades(bitcoin, n)
		if rng.IntN(2) == 0 {
			c.CloseNow()
			c = open(rng.IntN(2), cursor)
		}
		take(len(want) - len(got))
	}
	if !slices.Equal(got, want) {
		t.Errorf("seed %d: got %v, want %v (after %d)", seed, got, want, from)
	}
	c.CloseNow()
	old := cursor
	ends, err := kadm.NewClient(log.client).ListEndOffsets(t.Context(), schemas.TopicTicks)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(schemas.TopicTicks, int32(partitionOf(bitcoin)))
	for range 30 { // more than memory holds
		log.trades(bitcoin, 200)
	}
	replicas[0].eventually("memory holds none of what was there", func() bool {
		channel := replicas[0].hub.channels[0]
		return !channel.demand.ready.Load() || channel.offsets.floors()[end.Partition] > end.Offset
	})
	c = open(0, old)
	for {
		m, ok := c.tickMessage(documents)
		if !ok {
			t.Fatal("the socket was closed")
		}
		if m.Type == "gap" {
			if m.Reason != gapTooOld || time.Since(m.Timestamp).Abs() > time.Minute {
				t.Errorf("got %+v, want a gap with the time up to which nothing is sent", m)
			}
			break
		}
		if len(m.Data) > 0 {
			t.Fatalf("ticks before a gap: %+v", m)
		}
	}
	for last := ""; last != fmt.Sprint(log.wrote); {
		m, ok := c.tickMessage(documents)
		if !ok {
			t.Fatal("the socket was closed")
		}
		for _, tick := range m.Data {
			last = tick.TradeID
		}
	}
}

// BenchmarkTicks asks how long a tick takes from the log to a subscriber; goal: a median of at most 20 ms from the wire.
func BenchmarkTicks_OneReader20Coins(b *testing.B) {
	coins := scriptCoins(b)
	log := newTickLog(b, coins)
	bitcoin, _ := coins.ByID("bitcoin")
	log.pulse()
	w := log.fixture(32 << 20)
	c := w.open(dialing{key: w.key(limits.PlanPro), query: "?channels=ticks&symbols=BTC,ETH"})
	documents := newMessageSchemas(b, w.document())
	for began := false; !began; {
		log.pulse()
		log.trades(bitcoin, 1)
		w.hub.mu.Lock()
		began = w.hub.channels[0].begun()
		w.hub.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	var waits []time.Duration
	for b.Loop() {
		log.trades(bitcoin, 1)
		for want := fmt.Sprint(log.wrote); ; {
			m, ok := c.tickMessage(documents)
			if !ok {
				b.Fatal("the socket was closed")
			}
			if n := len(m.Data); n > 0 && m.Data[n-1].TradeID == want {
				received, err := time.Parse(time.RFC3339, m.Data[n-1].ReceivedAt)
				if err != nil {
					b.Fatal(err)
				}
				waits = append(waits, time.Since(received))
				break
			}
		}
	}
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "p99-ms")
}
