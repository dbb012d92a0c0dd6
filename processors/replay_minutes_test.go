package processors_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// summedFold is a sumFold that also writes a summary of each minute.
type summedFold struct{ processors.MinuteFold }

func (f summedFold) Close(minute int64, out *processors.Outputs) {
	if out != nil {
		s := &eventsv1.Summary{Time: minute, TotalMarketCap: float64(minute / int64(time.Minute)), Sentiment: []*eventsv1.Sentiment{{Range: "all", Total: 3}, {Range: "1-50"}}}
		out.Emit(schemas.TopicMarkets, 0, "", minute, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{Summary: s}})
	}
	f.MinuteFold.Close(minute, out)
}

// marketTopics are the topics of what the script writes and of what is made of it.
var marketTopics = []string{schemas.TopicMarkets, schemas.TopicCoinMarketsRaw, schemas.TopicReferenceRaw}

func replayedMinutes() *processors.Minutes {
	return &processors.Minutes{Name: "markets", Inputs: minuteInputs, Output: schemas.TopicMarkets, New: func() processors.MinuteFold { return summedFold{newSumFold()} }}
}

// liveMinutes folds minutes and materializes topics.
func liveMinutes(t testing.TB, log stream.Config, store *history.Store, minutes *processors.Minutes, topics ...string) (stop func()) {
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
	minutes.Log, minutes.Logger = log, quiet(t)
	run("folding", minutes.Run)
	for _, topic := range topics {
		run("materializing "+topic, (&processors.Sink{Topic: topic, Log: log, History: store, Logger: quiet(t)}).Run)
	}
	stop = sync.OnceFunc(func() { cancel(); parts.Wait() })
	t.Cleanup(stop)
	return stop
}

// minuteScript writes closed minutes and what sources report.
type minuteScript struct {
	t        testing.TB
	producer *kgo.Client
	at       int64
	offset   int64
}

func (s *minuteScript) write(minutes int) {
	var records []*kgo.Record
	put := func(topic string, partition int32, at int64, rec eventsv1.Marked) {
		value := make([]byte, rec.SizeVT())
		if _, err := rec.MarshalToSizedBufferVT(value); err != nil {
			s.t.Fatal(err)
		}
		records = append(records, &kgo.Record{Topic: topic, Partition: partition, Value: value, Timestamp: time.Unix(0, at)})
	}
	write := func(topic string, at int64, rec *eventsv1.ReferenceRecord) {
		rec.Producer, rec.Epoch = "sources", 1
		put(topic, 0, at, rec)
	}
	candles, _ := schemas.TopicNamed(schemas.TopicCandles)
	for range minutes {
		start := s.at
		s.at += int64(time.Minute)
		s.offset++
		write(schemas.TopicCoinMarketsRaw, start, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: start}}})
		for i := range int64(3) {
			id := fmt.Sprintf("observed-%d", i)
			write(schemas.TopicCoinMarketsRaw, start+1, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: &eventsv1.CoinMarket{
				Source: "coingecko", SourceId: id, Rank: uint32(s.offset % (2 + i)), Price: "1.5", IngestTime: start + 1}}})
			write(schemas.TopicReferenceRaw, start+1, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Coin{Coin: &eventsv1.Coin{
				Source: "coingecko", SourceId: id, Part: "list", Name: fmt.Sprint(s.offset / 7), IngestTime: start + 1}}})
			write(schemas.TopicReferenceRaw, start+2, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{
				Source: "er-api", Base: "EUR", Quote: "CHF", Rate: fmt.Sprintf("0.9%d", s.offset), Date: "2026-03-01", EventTime: start + i, IngestTime: start}}})
		}
		write(schemas.TopicReferenceRaw, start+3, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fetch{Fetch: &eventsv1.Fetch{Source: "coingecko", Started: start}}})
		closed := s.at + int64(schemas.AllowedLateness)
		for p := range candles.Partitions {
			derived := func(at int64, i uint32, rec *eventsv1.CandleRecord) {
				rec.Mark = &eventsv1.Mark{LogicVersion: 1, Partition: p, Offset: s.offset, Index: i}
				put(schemas.TopicCandles, p, at, rec)
			}
			if p < 3 && s.offset%int64(p+1) == 0 {
				derived(closed, 0, &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Candle{Candle: &eventsv1.Candle{CoinId: fmt.Sprintf("traded-%d", p), Start: start, Close: float64(s.offset)}}})
			}
			derived(closed, 1, &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Pulse{Pulse: &eventsv1.Pulse{Now: closed, Watermark: closed}}})
		}
	}
	if err := s.producer.ProduceSync(s.t.Context(), records...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

var minuteTables = []string{"markets", "markets_1d", "summaries", "sentiment"}

func minuteDigests(t testing.TB, store *history.Store) (all [][sha256.Size]byte) {
	t.Helper()
	for _, table := range minuteTables {
		d, err := store.Digest(t.Context(), table, "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func newMinuteReplay(t testing.TB, log stream.Config, store *history.Store, view string, verify bool) *replayer {
	r := newReplay(t, log, store, view, verify)
	r.Minutes = []*processors.Minutes{replayedMinutes()}
	return r
}

func TestFoldedMinutesAreReplayed(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	// The last hours of a day, so that midnight lies in the script.
	script := &minuteScript{t: t, producer: producer, at: time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC).UnixNano()}
	script.write(200)
	liveMinutes(t, log, store, replayedMinutes(), marketTopics...)
	equal := func(when string, least int64) processors.ReplayResult {
		t.Helper()
		r := newMinuteReplay(t, log, store, schemas.ViewMarkets, true)
		result := r.run(t)
		if result.Differing != 0 || result.Compared < least || len(r.notes) > 0 {
			t.Fatalf("%s: got %+v %v %q, want no difference in at least %d rows", when, result, r.differences, r.notes, least)
		}
		return result
	}
	equal("at first", 200*3)

	for range 2 { // while live goes on
		script.write(3)
		r := newMinuteReplay(t, log, store, schemas.ViewMarkets, false)
		r.BatchRows = 37
		if result := r.run(t); result.Differing != 0 {
			t.Fatalf("rebuilding: got %+v %v", result, r.differences)
		}
		script.write(3)
	}
	all := equal("rebuilt", 200*3)
	want := minuteDigests(t, store)

	middle := time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC)
	bounded := newMinuteReplay(t, log, store, schemas.ViewMarkets, true)
	bounded.From, bounded.To = middle, middle.Add(time.Hour)
	if result := bounded.run(t); result.Differing != 0 || result.Compared < 60*3 || result.Compared > 70*3 || result.Compared+result.Outside != all.Compared {
		t.Errorf("an hour: got %+v %v, want some 180 of %d rows", result, bounded.differences, all.Compared)
	}

	// What is wrong is found, by its key.
	for _, statement := range []string{
		"INSERT INTO summaries SELECT * REPLACE (total_market_cap + 1 AS total_market_cap) FROM summaries FINAL WHERE time = '2026-03-01 23:00:00'",
		"DELETE FROM markets WHERE coin_id = 'traded-1'",
		"INSERT INTO sentiment SELECT * REPLACE ('51-100' AS range) FROM sentiment AS s FINAL WHERE s.time = '2026-03-01 23:00:00' AND s.range = 'all'",
	} {
		if err := store.Conn().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	wrong := newMinuteReplay(t, log, store, schemas.ViewMarkets, true)
	wrong.run(t)
	var got []string
	for _, d := range wrong.differences {
		got = append(got, fmt.Sprint(d.Table, " ", d.Kind, " ", d.Key, " ", d.Columns))
	}
	slices.Sort(got)
	if want := []string{
		"markets missing map[coin_id:traded-1] []", "sentiment extra map[range:51-100 time:2026-03-01 23:00:00] []", "summaries different map[time:2026-03-01 23:00:00] [total_market_cap]",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	newMinuteReplay(t, log, store, schemas.ViewMarkets, false).run(t)
	if got := minuteDigests(t, store); !slices.Equal(got, want) {
		t.Errorf("repaired: got digests %x, want %x", got, want)
	}

	// Where the log has lost its beginning, the fold begins again at a checkpoint.
	admin := kadm.NewClient(producer)
	ends, err := admin.ListEndOffsets(t.Context(), append(minuteInputs, schemas.TopicMarkets)...)
	if err != nil {
		t.Fatal(err)
	}
	cut := kadm.Offsets{}
	ends.Each(func(o kadm.ListedOffset) { cut.AddOffset(o.Topic, o.Partition, o.Offset*2/7, -1) })
	if _, err := admin.DeleteRecords(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	for _, verify := range []bool{true, false, true} {
		r := newMinuteReplay(t, log, store, schemas.ViewMarkets, verify)
		if result := r.run(t); result.Differing != 0 || result.Compared < 60*3 || result.Outside < 60*3 || result.Compared+result.Outside != all.Compared {
			t.Errorf("cut, verify %v: got %+v %v, want rows of both kinds, %d in all", verify, result, r.differences, all.Compared)
		}
		if got := minuteDigests(t, store); !slices.Equal(got, want) {
			t.Errorf("cut, verify %v: got digests %x, want %x", verify, got, want)
		}
	}
	if n := leftovers(t, store); n != 0 {
		t.Errorf("got %d tables left over", n)
	}
}

func TestRowsOfSourcesAreComparedWithTheirRecords(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	script := &minuteScript{t: t, producer: producer, at: time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC).UnixNano()}
	script.write(50)
	liveMinutes(t, log, store, replayedMinutes(), marketTopics...)
	replay := newMinuteReplay(t, log, store, schemas.ViewReference, true)
	// 3 coins, 150 events of them, as many rates, statements of these and observations, a fixing and 50 requests.
	if result := replay.run(t); result.Differing != 0 || result.Compared != 3+150+150+150+150+1+50 {
		t.Errorf("got %+v %v, want 654 equal rows", result, replay.differences)
	}
	if err := store.Conn().Exec(t.Context(), "DELETE FROM coin_markets WHERE source_id = 'observed-1' AND ingest_time < '2026-03-01 22:01:00'"); err != nil {
		t.Fatal(err)
	}
	again := newMinuteReplay(t, log, store, schemas.ViewReference, true)
	if result := again.run(t); result.Differing != 1 || again.differences[0].Table != "coin_markets" || again.differences[0].Kind != shadow.DiffMissing {
		t.Errorf("with a row lost: got %+v %v, want it missing", result, again.differences)
	}
	if _, err := newMinuteReplay(t, log, store, schemas.ViewReference, false).Run(t.Context()); err == nil {
		t.Error("rebuilding what is not derived: got no error")
	}
}
