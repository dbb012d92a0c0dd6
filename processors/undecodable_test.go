package processors_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/schemas/schematest"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
)

// litter writes garbage of every kind into partition 0 of a topic and returns what must be in the dead letters of it.
func litter(t testing.TB, producer *kgo.Client, topic string) (letters []string) {
	t.Helper()
	garbage := schematest.Garbage(topic)
	for _, what := range slices.Sorted(maps.Keys(garbage)) {
		rec := &kgo.Record{Topic: topic, Key: []byte("x"), Value: garbage[what], Timestamp: time.Unix(1764000000, 0)}
		if err := producer.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
		letters = append(letters, fmt.Sprintf("%s/0@%d undecodable %x", topic, rec.Offset, garbage[what]))
	}
	return letters
}

func deadLetters(t testing.TB, store *history.Store) []string {
	t.Helper()
	rows, err := store.Conn().Query(t.Context(), "SELECT origin_topic, origin_partition, origin_offset, reason, payload FROM dead_letters WHERE reason = 'undecodable'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var topic, reason, payload string
		var partition int32
		var offset int64
		if err := rows.Scan(&topic, &partition, &offset, &reason, &payload); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s/%d@%d %s %x", topic, partition, offset, reason, payload))
	}
	slices.Sort(got)
	return got
}

// Whatever lies in a topic, its reader goes on: what comes after it has its rows, also after a restart, and each record that
// cannot be decoded is in the dead letters once.
func TestUndecodableRecordsAreDeadLettersOnce(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	var mu sync.Mutex
	counts := map[string]int{}
	run := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var parts sync.WaitGroup
		part := func(what string, f func(context.Context) error) {
			parts.Go(func() {
				if err := f(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		unit := resolve.Unit(schemas.Coins(), schemas.NewSymbolOverrides(), nil, resolve.NewRateTable(), nil)
		part("resolving", (&processors.Runner{Unit: unit, Log: log, Logger: quiet(t)}).Run)
		for _, topic := range schemas.Topics {
			if topic.Name != schemas.TopicTicksRaw {
				part("materializing "+topic.Name, (&processors.Sink{Topic: topic.Name, Log: log, History: store, Logger: quiet(t), Undecodable: func(topic string) {
					mu.Lock()
					counts[topic]++
					mu.Unlock()
				}}).Run)
			}
		}
		return sync.OnceFunc(func() { cancel(); parts.Wait() })
	}
	var want []string
	put := func(n int) {
		for _, topic := range schemas.Topics {
			rec := &kgo.Record{Topic: topic.Name, Key: []byte("x"), Value: schematest.Record(topic.Name, n), Timestamp: time.Unix(1764000000, 0)}
			if err := producer.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The row of the n-th record of each topic whose rows name it.
	rows := func(n int) uint64 {
		name := fmt.Sprintf("coin-%d", n)
		return count(t, store, "SELECT (SELECT count() FROM prices FINAL WHERE coin_id = '"+name+"') + (SELECT count() FROM candles_1m FINAL WHERE coin_id = '"+name+
			"') + (SELECT uniqExact(coin_id) FROM coin_markets FINAL WHERE coin_id = '"+name+"' OR source_id = '"+name+"') + (SELECT uniqExact(topic) FROM dead_letters FINAL WHERE source = '"+name+"')")
	}
	// Letters of what is resolved have the time of the log, and those of long ago are expired.
	for second := range int64(3) {
		clock := &eventsv1.RawRecord{Producer: "kraken", Epoch: 1, Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: 1764000000e9 + second*1e9}}}
		value, err := clock.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: schemas.TopicTicksRaw, Value: value, Timestamp: time.Unix(1764000000, 0)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		put(2*round + 1)
		for _, topic := range schemas.Topics {
			want = append(want, litter(t, producer, topic.Name)...)
		}
		put(2*round + 2)
		stop := run()
		await(t, fmt.Sprintf("round %d: all rows", round), func() bool {
			return rows(2*round+2) == 5 && len(deadLetters(t, store)) >= len(want)
		})
		stop()
	}
	run()() // nothing is left to do
	slices.Sort(want)
	if got := deadLetters(t, store); !slices.Equal(got, want) {
		t.Errorf("the dead letters hold\n%q, want\n%q", got, want)
	}
	for _, topic := range schemas.Topics {
		if got, want := counts[topic.Name], 2*len(schematest.Garbage(topic.Name)); got != want {
			t.Errorf("%s: %d records are counted, want %d", topic.Name, got, want)
		}
	}
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: not %s", what)
		}
	}
}

// Folds of offsets pass over what lies between their inputs and between their outputs, and a replay passes over the same.
func TestFoldsPassOverUndecodableRecords(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	script := newTickScript(t, producer, 1)
	dirty := []string{schemas.TopicTicks, schemas.TopicPrices, schemas.TopicCandles}
	for range 2 {
		for range 2 {
			script.write(100)
			for _, topic := range dirty {
				litter(t, producer, topic)
			}
		}
		script.write(20)
		stop := live(t, log, store)
		verify := newReplay(t, log, store, schemas.ViewAll, true)
		if result := verify.run(t); result.Differing != 0 || result.Outside != 0 || result.Compared < 300 {
			t.Fatalf("got %+v %v, want no difference in some hundred rows", result, verify.differences)
		}
		for _, topic := range dirty {
			litter(t, producer, topic) // the next start finds it at the end
		}
		stop()
	}
}

// Folds of minutes do so too.
func TestMinutesPassOverUndecodableRecords(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	script := &minuteScript{t: t, producer: producer, at: time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC).UnixNano()}
	dirty := append(slices.Clone(minuteInputs), schemas.TopicMarkets)
	for range 2 {
		for range 2 {
			script.write(40)
			for _, topic := range dirty {
				litter(t, producer, topic)
			}
		}
		script.write(3)
		stop := liveMinutes(t, log, store, replayedMinutes(), marketTopics...)
		r := newMinuteReplay(t, log, store, schemas.ViewMarkets, true)
		if result := r.run(t); result.Differing != 0 || result.Compared < 80*3 || len(r.notes) > 0 {
			t.Fatalf("got %+v %v %q, want no difference in at least %d rows", result, r.differences, r.notes, 80*3)
		}
		stop()
		for _, topic := range dirty {
			litter(t, producer, topic)
		}
	}
}

// Whoever follows a topic, or looks at its end, passes over it.
func TestTailsAndEndsPassOverUndecodableRecords(t *testing.T) {
	log, producer := newLog(t)
	for _, topic := range schemas.Topics {
		if !topic.Derived {
			continue
		}
		put := func(n int) {
			if err := producer.ProduceSync(t.Context(), &kgo.Record{Topic: topic.Name, Value: schematest.Record(topic.Name, n)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		put(1)
		bad := len(litter(t, producer, topic.Name))
		put(2)
		litter(t, producer, topic.Name)
		ctx, cancel := context.WithCancel(t.Context())
		tail, got := stream.NewTail(stream.TailConfig{Brokers: log.Brokers, Topic: topic.Name}), 0
		done := make(chan error, 1)
		go func() { done <- tail.Run(ctx, func(stream.TailRecord) error { got++; return nil }) }()
		select {
		case <-tail.CaughtUp():
		case <-time.After(time.Minute):
			t.Fatalf("%s: the tail did not come to the end: %s", topic.Name, tail.Waiting())
		}
		cancel()
		<-done
		if _, undecodable := tail.Dropped(); got != 2 || undecodable != uint64(2*bad) {
			t.Errorf("%s: the tail handed on %d records and passed over %d, want 2 and %d", topic.Name, got, undecodable, 2*bad)
		}
		applied, err := stream.LastApplied(t.Context(), log, topic.Name, []int32{0}, 1)
		if err != nil || len(applied[0]) > 1 {
			t.Errorf("%s: looking at its end: got %v, %v", topic.Name, applied, err)
		}
	}
}
