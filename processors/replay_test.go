package processors_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/candles"
	"github.com/marketlog/marketlog/processors/median"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// replayOrigins is how many origins ticks.v1 has.
const replayOrigins = 8

func replayedUnit() processors.Unit {
	return processors.Unit{
		Name: "prices", Input: schemas.TopicTicks,
		Outputs: []processors.Route{{Topic: schemas.TopicPrices, SamePartition: true}, {Topic: schemas.TopicCandles, SamePartition: true}},
		New: func(int32) processors.Fold {
			return processors.Chain(median.New(schemas.Coins(), replayOrigins), candles.New(replayOrigins))
		},
	}
}

// tickScript writes a market into ticks.v1 as eight resolvers do.
type tickScript struct {
	t        testing.TB
	producer *kgo.Client
	random   *rand.Rand
	// coins and venues trade in up to twice as many ticks a second as rate.
	coins, venues []string
	rate          int
	// second is the log time written up to.
	second  time.Time
	offsets [replayOrigins]int64
	events  uint64
	// corrections are applied over their validity.
	corrections *schemas.Corrections
}

func newTickScript(t testing.TB, producer *kgo.Client, seed uint64) *tickScript {
	// Rows of long ago may be gone by their age while the test looks at them.
	return &tickScript{
		t: t, producer: producer, random: rand.New(rand.NewPCG(seed, 0)), second: time.Now().UTC().Truncate(time.Minute).Add(-time.Hour),
		coins: tickCoins, venues: []string{"coinbase", "kraken", "okx"}, rate: 4,
	}
}

var tickCoins = []string{"bitcoin", "ethereum", "solana", "cardano", "dogecoin", "litecoin", "chainlink", "polkadot", "stellar", "monero", "tron", "uniswap"}

// write appends seconds of log time: trades and quotes of some coins, now and then a duplicate, and the
// clocks.
func (s *tickScript) write(seconds int) {
	s.t.Helper()
	for range seconds {
		s.second = s.second.Add(time.Second)
		for range 1 + s.random.IntN(2*s.rate) {
			s.tick()
		}
		if s.second.Second() == 30 {
			s.append(1, 1, &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Gap{
				Gap: &eventsv1.Gap{Venue: s.venues[0], Reason: "sequence", ToTime: s.second.UnixNano()},
			}})
		}
		for p := range int32(replayOrigins) {
			for origin := range int32(replayOrigins) {
				s.append(p, origin, &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Pulse{
					Pulse: &eventsv1.Pulse{Now: s.second.UnixNano(), Watermark: s.second.Add(-time.Duration(origin) * time.Second).UnixNano()},
				}})
			}
		}
	}
	if err := s.producer.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *tickScript) tick() {
	coin := s.coins[s.random.IntN(len(s.coins))]
	venue := s.venues[s.random.IntN(len(s.venues))]
	s.events++
	at := s.second.Add(-time.Duration(s.random.IntN(900)) * time.Millisecond)
	tick := &eventsv1.Tick{
		Venue: venue, Symbol: coin + "-USD", Base: coin, Quote: "USD", EventId: fmt.Appendf(nil, "%016d", s.events),
		EventTime: at.Add(-time.Duration(s.random.IntN(3)) * time.Second).UnixNano(), IngestTime: at.UnixNano(),
	}
	cents := 10_000 + s.random.IntN(300)
	if s.random.IntN(3) == 0 {
		tick.Kind = eventsv1.TickKind_TICK_KIND_QUOTE
		tick.Bid, tick.Ask = fmt.Sprintf("%d.%02d", cents/100, cents%100), fmt.Sprintf("%d.%02d", cents/100+1, cents%100)
	} else {
		tick.Kind = eventsv1.TickKind_TICK_KIND_TRADE
		tick.Price, tick.Size = fmt.Sprintf("%d.%02d", cents/100, cents%100), fmt.Sprintf("0.%d", 1+s.random.IntN(9))
	}
	rec := &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
		Tick: tick, CoinId: coin, QuoteId: schemas.USD, Rate: 1, RateTime: tick.IngestTime,
	}}}
	if excluded, _ := s.corrections.Corrected(venue, tick.Symbol, tick.IngestTime); excluded {
		rec.GetTick().Flags = uint32(schemas.Excluded)
	}
	p, origin := stream.PartitionFor(coin, 8), stream.PartitionFor(venue+"|"+coin, replayOrigins)
	s.append(p, origin, rec)
	if s.random.IntN(20) == 0 { // a zombie saw another rate
		rec.GetTick().Rate = 2
		s.produce(p, rec)
	}
}

func (s *tickScript) append(partition, origin int32, rec *eventsv1.ResolvedRecord) {
	s.offsets[origin]++
	rec.Mark = &eventsv1.Mark{LogicVersion: 1, Partition: origin, Offset: s.offsets[origin]}
	s.produce(partition, rec)
}

func (s *tickScript) produce(partition int32, rec *eventsv1.ResolvedRecord) {
	value, err := rec.MarshalVT()
	if err != nil {
		s.t.Fatal(err)
	}
	s.producer.Produce(s.t.Context(), &kgo.Record{Topic: schemas.TopicTicks, Partition: partition, Value: value, Timestamp: s.second}, func(_ *kgo.Record, err error) {
		if err != nil {
			s.t.Errorf("producing: %v", err)
		}
	})
}

// live runs what a replay is compared with.
func live(t testing.TB, log stream.Config, store *history.Store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	run := func(what string, f func(context.Context) error) {
		parts.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	run("folding", (&processors.Runner{Unit: replayedUnit(), Log: log, Logger: quiet(t)}).Run)
	for _, topic := range []string{schemas.TopicPrices, schemas.TopicCandles, schemas.TopicTicks} {
		run("materializing "+topic, (&processors.Sink{Topic: topic, Log: log, History: store, Logger: quiet(t)}).Run)
	}
	stop = sync.OnceFunc(func() { cancel(); parts.Wait() })
	t.Cleanup(stop)
	return stop
}

// replayer is a replay whose lines are kept.
type replayer struct {
	*processors.Replay
	mu          sync.Mutex
	differences []shadow.Difference
	notes       []string
}

func newReplay(t testing.TB, log stream.Config, store *history.Store, view string, verify bool) *replayer {
	r := &replayer{}
	r.Replay = &processors.Replay{View: view, Verify: verify, Unit: replayedUnit(), Log: log, History: store, Logger: quiet(t), Emit: func(line any) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch l := line.(type) {
		case *shadow.Difference:
			r.differences = append(r.differences, *l)
		case *processors.ReplayNote:
			r.notes = append(r.notes, l.Note)
		}
		return nil
	}}
	return r
}

func (r *replayer) run(t testing.TB) processors.ReplayResult {
	t.Helper()
	result, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result
}

var replayTables = []string{"prices", "prices_1h", "candles_1m", "venue_candles_1m"}

func digests(t testing.TB, store *history.Store, suffix string) (all [][sha256.Size]byte) {
	t.Helper()
	for _, table := range replayTables {
		d, err := store.Digest(t.Context(), table+suffix, "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func execSQL(t testing.TB, store *history.Store, statement string) {
	t.Helper()
	if err := store.Conn().Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func count(t testing.TB, store *history.Store, query string) (n uint64) {
	t.Helper()
	if err := store.Conn().QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// leftovers are tables of replays that are still there.
func leftovers(t testing.TB, store *history.Store) uint64 {
	return count(t, store, "SELECT count() FROM system.tables WHERE database = '"+store.Database()+"' AND name LIKE '%\\_replay%'")
}

func TestVerifyFindsExactlyWhatWasTamperedWith(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	newTickScript(t, producer, 1).write(400)
	live(t, log, store)

	clean := newReplay(t, log, store, schemas.ViewAll, true)
	result := clean.run(t)
	proofs := []string{fmt.Sprintf("(1,'all',true,'done',NULL,NULL,%d,0,0,1)", result.Compared)}
	if result.Differing != 0 || result.Outside != 0 || result.Compared < 1000 {
		t.Fatalf("got %+v %v, want no difference in some thousand rows", result, clean.differences)
	}
	rows := uint64(0)
	for _, table := range replayTables {
		rows += count(t, store, "SELECT count() FROM "+table+" FINAL")
	}
	if rows != uint64(result.Compared) {
		t.Errorf("got %d rows compared, want all %d", result.Compared, rows)
	}

	execSQL(t, store, "INSERT INTO prices SELECT * REPLACE (price * 2 AS price) FROM (SELECT * FROM prices FINAL WHERE coin_id = 'bitcoin' ORDER BY time LIMIT 1 OFFSET 10)")
	execSQL(t, store, "ALTER TABLE prices DELETE WHERE (coin_id, time) IN (SELECT coin_id, time FROM prices FINAL WHERE coin_id = 'solana' ORDER BY time LIMIT 1 OFFSET 20) SETTINGS mutations_sync = 2")
	execSQL(t, store, "INSERT INTO candles_1m SELECT * REPLACE ('zcash' AS coin_id) FROM (SELECT * FROM candles_1m FINAL WHERE coin_id = 'monero' ORDER BY start LIMIT 1 OFFSET 1)")
	tampered := newReplay(t, log, store, schemas.ViewAll, true)
	result = tampered.run(t)
	proofs = append(proofs, fmt.Sprintf("(2,'all',true,'done',NULL,NULL,%d,3,0,1)", result.Compared))
	var got []string
	for _, d := range tampered.differences {
		got = append(got, fmt.Sprint(d.Table, " ", d.Kind, " ", d.Key["coin_id"], " ", d.Columns))
	}
	slices.Sort(got)
	want := []string{"candles_1m extra zcash []", "prices different bitcoin [price]", "prices missing solana []"}
	if result.Differing != 3 || !slices.Equal(got, want) {
		t.Errorf("got %d differences %v, want %v", result.Differing, got, want)
	}
	if n := leftovers(t, store); n != 0 {
		t.Errorf("got %d tables left over", n)
	}
	// Swapping the view in mends it, and reports what was wrong.
	if result = newReplay(t, log, store, schemas.ViewAll, false).run(t); result.Differing != 3 {
		t.Errorf("replaying: got %+v, want the three differences", result)
	}
	proofs = append(proofs, fmt.Sprintf("(3,'all',false,'done',NULL,NULL,%d,3,0,1)", result.Compared))
	if result = newReplay(t, log, store, schemas.ViewAll, true).run(t); result.Differing != 0 {
		t.Errorf("after it: got %+v, want no difference", result)
	}
	proofs = append(proofs, fmt.Sprintf("(4,'all',true,'done',NULL,NULL,%d,0,0,1)", result.Compared))
	var shown []string
	if err := store.Conn().QueryRow(t.Context(), `SELECT groupArray(row) FROM (SELECT toString((replay, view, verify, state, from_time, to_time, rows, differing, outside, seconds > 0)) AS row
		FROM default.v_proofs ORDER BY replay)`).Scan(&shown); err != nil || !slices.Equal(shown, proofs) {
		t.Errorf("v_proofs: got %v and %v, want %v", shown, err, proofs)
	}
}
