package processors_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/quotes"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// secondsPartitions is how many partitions the scenarios of this file have.
const secondsPartitions = 3

// secondsLog is the input, by partition.
type secondsLog [secondsPartitions][]*kgo.Record

func (l *secondsLog) add(t interface{ Fatalf(string, ...any) }, partition int, rec *eventsv1.RawRecord) {
	value, err := rec.MarshalVT()
	if err != nil {
		t.Fatalf("encoding: %v", err)
	}
	l[partition] = append(l[partition], &kgo.Record{
		Topic: schemas.TopicTicksRaw, Partition: int32(partition), Offset: int64(len(l[partition])), Value: value,
	})
}

var secondsBegin = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// quoteMarkets are of both levels, and on both sides of the join.
var quoteMarkets = []struct{ venue, symbol, base, quote, price string }{
	{"kraken", "USDT/USD", "USDT", "USD", "0.99"},
	{"coinbase", "USDT-USD", "USDT", "USD", "0.98"},
	{"kraken", "EUR/USD", "EUR", "USD", "1.1"},
	{"kraken", "XBT/USD", "XBT", "USD", "60000"},
	{"okx", "BTC-USDT", "BTC", "USDT", "61000"},
	{"kraken", "ETH/EUR", "ETH", "EUR", "2000"},
	{"okx", "SOL-USDT", "SOL", "USDT", "150"},
}

// dsecondsLog makes minutes of a log: producers that pause and restart, one with a fast clock, ticks that were
// received earlier or later than the log says, and times when nobody writes.
func dsecondsLog(t *rapid.T) *secondsLog {
	l := &secondsLog{}
	now := secondsBegin
	epochs := map[string]int64{"kraken": 1, "coinbase": 1, "okx": 1}
	for range rapid.IntRange(2, 400).Draw(t, "seconds") {
		now = now.Add(time.Second)
		switch rapid.IntRange(0, 200).Draw(t, "event") {
		case 0:
			now = now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "pause")) * time.Second)
		case 1:
			epochs["okx"]++
		}
		odd := rapid.IntRange(0, 20).Draw(t, "odd")
		for i, producer := range []string{"coinbase", "kraken", "okx"} {
			if odd == i {
				continue // silent
			}
			at := now
			if odd == 3+i { // fast
				at = at.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "lead")) * time.Second)
			}
			for p := range secondsPartitions {
				l.add(t, p, &eventsv1.RawRecord{Producer: producer, Epoch: epochs[producer], Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: at.UnixNano()}}})
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "ticks") {
			i := rapid.IntRange(0, len(quoteMarkets)-1).Draw(t, "market")
			m := quoteMarkets[i]
			receivedAt := now
			if odd > 18 {
				receivedAt = receivedAt.Add(time.Duration(rapid.IntRange(-300, 20).Draw(t, "by")) * time.Second)
			}
			l.add(t, i%secondsPartitions, &eventsv1.RawRecord{Producer: m.venue, Epoch: epochs[m.venue], Body: &eventsv1.RawRecord_Tick{Tick: &eventsv1.Tick{
				Venue: m.venue, Symbol: m.symbol, Base: m.base, Quote: m.quote, Kind: eventsv1.TickKind_TICK_KIND_TRADE,
				EventId: fmt.Appendf(nil, "%08d%08d", i, rapid.IntRange(1, 300).Draw(t, "id")),
				Price:   fmt.Sprintf("%s%d", withPoint(m.price), rapid.IntRange(1, 9).Draw(t, "digit")), Size: "1",
				EventTime: receivedAt.UnixNano(), IngestTime: receivedAt.UnixNano(),
			}}})
		}
	}
	return l
}

func withPoint(price string) string {
	if bytes.ContainsRune([]byte(price), '.') {
		return price
	}
	return price + "."
}

// secondsOutput collects the values of quotes.v1.
type secondsOutput struct{ values [][]byte }

func (o *secondsOutput) Produce(_ context.Context, rec *kgo.Record, written func(*kgo.Record, error)) {
	o.values = append(o.values, rec.Value)
	written(rec, nil)
}

func (o *secondsOutput) Flush(context.Context) error { return nil }

// applied is the last mark and checkpoint, as the next member finds them.
func (o *secondsOutput) applied(t fatal) (last *eventsv1.Mark, checkpoint *eventsv1.Checkpoint) {
	for _, value := range o.values {
		rec := &eventsv1.QuoteRecord{}
		if err := rec.UnmarshalVT(value); err != nil {
			t.Fatal(err)
		}
		last = rec.Mark
		if c := rec.GetPulse().GetCheckpoint(); c != nil {
			checkpoint = c
		}
	}
	return last, checkpoint
}

func newQuotes() *processors.Seconds {
	fixings := quotes.NewFixings()
	for quote, rate := range map[string]string{"USD": "1.25", "KRW": "2000"} {
		value, _ := (&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{Base: "EUR", Quote: quote, Rate: rate, Date: "2026-01-05", IngestTime: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).UnixNano()}}}).MarshalVT()
		fixings.Apply(value)
	}
	return quotes.Seconds(schemas.Coins(), nil, nil, fixings)
}

// foldSeconds folds a log to its end, its partitions read side by side as drawn.
func foldSeconds(t *rapid.T, l *secondsLog, out *secondsOutput) {
	last, checkpoint := out.applied(t)
	member := processors.TakeOverSeconds(newQuotes(), secondsPartitions, schemas.TopicQuotes, checkpoint, last, out)
	var next [secondsPartitions]int
	for p := range next {
		next[p] = int(member.From(schemas.TopicTicksRaw, int32(p)))
	}
	for {
		var open []int
		for p := range next {
			if next[p] < len(l[p]) {
				open = append(open, p)
			}
		}
		if len(open) == 0 {
			return
		}
		p := rapid.SampledFrom(open).Draw(t, "partition")
		n := min(rapid.SampledFrom([]int{1, 7, 100, 10_000}).Draw(t, "batch"), len(l[p])-next[p])
		if err := member.Add(t.Context(), l[p][next[p]:next[p]+n]); err != nil {
			t.Fatal(err)
		}
		next[p] += n
	}
}

func sameSeconds(t fatal, got, want [][]byte) {
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && bytes.Equal(got[i], want[i]) {
			continue
		}
		// Where to begin again is left out: before its clocks have settled, a fold that was rewound may
		// see a second begin some records later.
		describe := func(values [][]byte) string {
			if i >= len(values) {
				return "none"
			}
			rec := &eventsv1.QuoteRecord{}
			_ = rec.UnmarshalVT(values[i])
			if rec.GetPulse() != nil {
				rec.GetPulse().Checkpoint = nil
			}
			return rec.String()
		}
		if g, w := describe(got), describe(want); g != w {
			t.Fatalf("output %d of %d =\n%s, want\n%s", i, len(want), g, w)
		}
	}
}

// How the partitions were read side by side, and in which batches, makes no difference.
func TestSecondsDoNotDependOnTheOrderOfPartitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := dsecondsLog(t)
		var one, other secondsOutput
		foldSeconds(t, l, &one)
		foldSeconds(t, l, &other)
		sameSeconds(t, other.values, one.values)
	})
}

// A member that follows a killed one writes what that one would have, wherever it was killed.
func TestSecondsContinueAfterAKill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := dsecondsLog(t)
		var whole secondsOutput
		foldSeconds(t, l, &whole)
		if len(whole.values) == 0 {
			t.Skip("no second is whole")
		}
		var killed secondsOutput
		for range 3 {
			foldSeconds(t, l, &killed)
			sameSeconds(t, killed.values, whole.values)
			killed.values = killed.values[:rapid.IntRange(0, len(killed.values)).Draw(t, "durable")]
		}
	})
}

// A member that follows a killed one knows of the trades that were read again what that one knew: what it took for
// news would make a rate, and by this another one, minutes later.
func TestSecondsRememberTradesThatAreReadAgain(t *testing.T) {
	l := &secondsLog{}
	trade := func(venue, base, quote, id string, second int) {
		at := secondsBegin.Add(time.Duration(second) * time.Second).UnixNano()
		l.add(t, 0, &eventsv1.RawRecord{Producer: venue, Epoch: 1, Body: &eventsv1.RawRecord_Tick{Tick: &eventsv1.Tick{
			Venue: venue, Symbol: base + quote, Base: base, Quote: quote, Kind: eventsv1.TickKind_TICK_KIND_TRADE,
			EventId: fmt.Appendf(nil, "%16s", id), Price: "2", Size: "1", IngestTime: at,
		}}})
	}
	for second := range 413 {
		for p := range secondsPartitions {
			for _, producer := range []string{"kraken", "okx"} {
				l.add(t, p, &eventsv1.RawRecord{Producer: producer, Epoch: 1, Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{
					Time: secondsBegin.Add(time.Duration(second) * time.Second).UnixNano(),
				}}})
			}
		}
		switch second {
		case 10, 190:
			trade("kraken", "USDT", "USD", "dollars", second)
		case 309:
			trade("okx", "BTC", "USDT", "coins", second)
		}
	}
	fold := func(out *secondsOutput, last *eventsv1.Mark, checkpoint *eventsv1.Checkpoint) {
		member := processors.TakeOverSeconds(newQuotes(), secondsPartitions, schemas.TopicQuotes, checkpoint, last, out)
		var batch []*kgo.Record
		for p := range l {
			batch = append(batch, l[p][member.From(schemas.TopicTicksRaw, int32(p)):]...)
		}
		if err := member.Add(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	var whole, killed secondsOutput
	fold(&whole, nil, nil)
	killed.values = slices.Clone(whole.values[:len(whole.values)-6])
	last, checkpoint := killed.applied(t)
	fold(&killed, last, checkpoint)
	sameSeconds(t, killed.values, whole.values)
}

// Two members of the group: the second folds on when the first leaves, and nothing is written twice.
func TestSecondsAreHandedOver(t *testing.T) {
	cfg := stream.Config{Brokers: []string{streamtest.Kfake(t)}}
	client, err := cfg.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	raw, err := schemas.TopicNamed(schemas.TopicTicksRaw)
	if err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(t.Context(), raw.Partitions, 1, nil, raw.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, schemas.TopicQuotes); err != nil {
		t.Fatal(err)
	}
	second := 0
	write := func(seconds int) {
		var records []*kgo.Record
		for range seconds {
			second++
			at := secondsBegin.Add(time.Duration(second) * time.Second).UnixNano()
			for p := range raw.Partitions {
				clock, _ := (&eventsv1.RawRecord{Producer: "kraken", Epoch: 1, Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: at}}}).MarshalVT()
				records = append(records, &kgo.Record{Topic: raw.Name, Partition: p, Value: clock})
			}
			tick, _ := (&eventsv1.RawRecord{Producer: "kraken", Epoch: 1, Body: &eventsv1.RawRecord_Tick{Tick: &eventsv1.Tick{
				Venue: "kraken", Symbol: "USDT/USD", Base: "USDT", Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
				EventId: fmt.Appendf(nil, "%016d", second),
				Price:   fmt.Sprintf("0.9%03d", second), Size: "1", EventTime: at, IngestTime: at,
			}}}).MarshalVT()
			records = append(records, &kgo.Record{Topic: raw.Name, Partition: int32(second) % raw.Partitions, Value: tick})
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	member := func() (stop func()) {
		s := quotes.Seconds(schemas.Coins(), nil, nil, quotes.NewFixings())
		s.Log, s.Logger = cfg, slog.New(slog.DiscardHandler)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("a member ended with %v", err)
			}
		}
	}
	// rates are what the topic holds, by second.
	rates := func() map[int64]float64 {
		ends, err := admin.ListEndOffsets(t.Context(), schemas.TopicQuotes)
		if err != nil {
			t.Fatal(err)
		}
		end, _ := ends.Lookup(schemas.TopicQuotes, 0)
		found := map[int64]float64{}
		var last *eventsv1.Mark
		err = stream.ReadRange(t.Context(), cfg, schemas.TopicQuotes, 0, 0, end.Offset, func(r *kgo.Record) error {
			rec := &eventsv1.QuoteRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				return err
			}
			if !rec.Mark.After(last) {
				t.Errorf("the record at %d repeats or goes back: %v after %v", r.Offset, rec.Mark, last)
			}
			last = rec.Mark
			if rate := rec.GetRate(); rate != nil {
				found[rate.Time/int64(time.Second)-secondsBegin.Unix()] = rate.Rate
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	reached := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); len(rates()) < want; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d rates after a minute, want %d", len(rates()), want)
			}
		}
	}
	write(20)
	stopFirst := member()
	reached(17) // the first two seconds cannot be distinguished from a fast clock's, and the last is not whole
	stopSecond := member()
	write(20)
	reached(37)
	stopFirst()
	write(20)
	reached(57)
	stopSecond()
	got := rates()
	for s := int64(3); s < 60; s++ {
		if want := 0.9 + float64(s)/1e4; got[s] < want-1e-9 || got[s] > want+1e-9 {
			t.Errorf("rate of second %d = %v, want %v", s, got[s], want)
		}
	}
}
