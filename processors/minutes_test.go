package processors_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

var minuteInputs = []string{schemas.TopicCandles, schemas.TopicCoinMarketsRaw}

// joinedInputs are one of each kind: closed minutes, what producers write, and what another fold of minutes does.
var joinedInputs = append(slices.Clone(minuteInputs), schemas.TopicRates)

// sumFold adds up, for ever, what each coin's candles closed at, what observations report and what another fold of minutes wrote: a state that no part of the
// input can show, so that a restart which loses or doubles anything shows.
type sumFold struct {
	coins map[string]*coinSum
	last  int64
}

type coinSum struct {
	sum     float64
	minute  int64 // the last one that is in it
	written float64
}

func newSumFold() processors.MinuteFold { return &sumFold{coins: map[string]*coinSum{}} }

func (f *sumFold) coin(id string) *coinSum {
	if f.coins[id] == nil {
		f.coins[id] = &coinSum{}
	}
	return f.coins[id]
}

func (f *sumFold) Load(rec eventsv1.Marked) {
	r := rec.(*eventsv1.MarketRecord)
	if m := r.GetMarket(); m != nil {
		c := f.coin(m.CoinId)
		c.written = m.Price
		if r.State != nil {
			c.sum, c.minute = r.State.Volume24H, r.State.Minute
		}
	}
	if p := r.GetPulse(); p != nil {
		f.last = p.Now
	}
}

func (f *sumFold) Take(minute int64, _ processors.Input, rec eventsv1.Marked) {
	id, n := "", 0.0
	switch r := rec.(type) {
	case *eventsv1.CandleRecord:
		id, n = r.GetCandle().CoinId, r.GetCandle().Close
	case *eventsv1.ReferenceRecord:
		id, n = r.GetCoinMarket().SourceId, float64(r.GetCoinMarket().Rank)
	case *eventsv1.RateRecord:
		id, n = r.GetEntry().Pool, r.GetEntry().Apy
	}
	if c := f.coin(id); minute > c.minute {
		c.sum += n
	}
}

func (f *sumFold) Close(minute int64, out *processors.Outputs) {
	before := f.last
	f.last = max(f.last, minute)
	for _, id := range slices.Sorted(maps.Keys(f.coins)) {
		c := f.coins[id]
		c.minute = max(c.minute, minute)
		if out == nil {
			continue
		}
		h := fnv.New32a()
		h.Write([]byte(id))
		turn := int64(h.Sum32()%60) * int64(time.Minute)
		due := (minute-turn)/int64(time.Hour) != (before-turn)/int64(time.Hour)
		if c.sum == c.written && !due {
			continue
		}
		c.written = c.sum
		rec := &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{CoinId: id, Time: minute, Price: c.sum}}}
		if due {
			rec.State = &eventsv1.MarketState{Minute: minute, Volume24H: c.sum}
		}
		out.Emit(schemas.TopicMarkets, 0, id, minute, rec)
	}
	if out != nil {
		out.Emit(schemas.TopicMarkets, 0, "", minute, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: minute, Watermark: minute}}})
	}
}

// minuteScenario is some hours of candles and observations, with an outage in them.
func minuteScenario(t *rapid.T) memoryLog {
	log := memoryLog{}
	candles, err := schemas.TopicNamed(schemas.TopicCandles)
	if err != nil {
		t.Fatal(err)
	}
	offsets := make([]int64, candles.Partitions)
	derive := func(p int32, at int64, rec eventsv1.Marked) {
		offsets[p]++
		rec.SetMark(&eventsv1.Mark{LogicVersion: 1, Partition: p, Offset: offsets[p]})
		appendRecord(t, log, schemas.TopicCandles, p, at, rec)
	}
	minutes := rapid.IntRange(70, 200).Draw(t, "minutes")
	outage := rapid.IntRange(5, minutes).Draw(t, "outage at")
	away := int64(rapid.SampledFrom([]int{0, 1, 7, 61, 300}).Draw(t, "minutes away"))
	at := int64(noon)
	for i := range rapid.IntRange(0, 2).Draw(t, "before the first clock") {
		appendRecord(t, log, schemas.TopicCoinMarketsRaw, 0, at, &eventsv1.ReferenceRecord{Producer: "coingecko", Epoch: 1, Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: &eventsv1.CoinMarket{
			SourceId: fmt.Sprintf("coin-%d", i), Rank: 1000}}})
	}
	for i := range minutes {
		if i == outage {
			at += away * int64(time.Minute)
		}
		start := at
		at += int64(time.Minute)
		for second := int64(0); second < 60; second += 10 {
			now := start + second*1e9
			appendRecord(t, log, schemas.TopicCoinMarketsRaw, 0, now, &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: now}}})
			if rapid.IntRange(0, 5).Draw(t, "observation") == 0 {
				appendRecord(t, log, schemas.TopicCoinMarketsRaw, 0, now+1, &eventsv1.ReferenceRecord{Producer: "coingecko", Epoch: 1, Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: &eventsv1.CoinMarket{
					SourceId: fmt.Sprintf("coin-%d", rapid.IntRange(0, 3).Draw(t, "observed")), Rank: uint32(1 + i)}}})
			}
		}
		for p := range candles.Partitions {
			derive(p, at, &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Pulse{Pulse: &eventsv1.Pulse{Now: at, Watermark: at}}})
			if coin := fmt.Sprintf("traded-%d", p%3); p < 6 && rapid.IntRange(0, 3).Draw(t, "traded") > 0 {
				derive(p, at, &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Candle{Candle: &eventsv1.Candle{CoinId: coin, Start: start, Close: float64(1 + i)}}})
			}
			closed := at + int64(schemas.AllowedLateness)
			derive(p, closed, &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Pulse{Pulse: &eventsv1.Pulse{Now: closed, Watermark: closed}}})
		}
		index := uint32(0)
		rate := func(rec *eventsv1.RateRecord) {
			rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: at, Index: index}
			index++
			appendRecord(t, log, schemas.TopicRates, 0, at, rec)
		}
		if rapid.IntRange(0, 3).Draw(t, "rated") == 0 {
			rate(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: &eventsv1.RateEntry{Pool: "rated", Apy: float64(1 + i)}}})
		}
		if rapid.IntRange(0, 30).Draw(t, "replay") == 0 { // no fold wrote it, so it has no mark, and may lie within a minute
			appendRecord(t, log, schemas.TopicRates, 0, at, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Control{Control: &eventsv1.Control{Action: "prepare", Generation: 1, View: schemas.ViewRates}}})
		}
		rate(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Pulse{Pulse: &eventsv1.Pulse{Now: at, Watermark: at}}})
	}
	return log
}

func appendRecord(t *rapid.T, log memoryLog, topic string, partition int32, at int64, rec eventsv1.Marked) {
	value := make([]byte, rec.SizeVT())
	if _, err := rec.MarshalToSizedBufferVT(value); err != nil {
		t.Fatal(err)
	}
	log.append(&kgo.Record{Topic: topic, Partition: partition, Value: value, Timestamp: time.Unix(0, at)})
}

// A fold of minutes that is killed and continued, any number of times, by whichever batches its input comes, writes what
// one writes that never was.
func TestRestartedMinutesWriteWhatUninterruptedOnesWrite(t *testing.T) {
	checkMinutes(t, newSumFold)
}

func checkMinutes(t *testing.T, newFold func() processors.MinuteFold) {
	restarts, written, early := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		log := minuteScenario(t)
		want := memoryLog{}
		life := newLife()
		mustAdd(t, processors.TakeOverMinutes(newFold(), joinedInputs, nil, life), inOrder(log))
		life.writeTo(want)
		written += len(want[place{schemas.TopicMarkets, 0}])
		for _, rec := range want[place{schemas.TopicMarkets, 0}] {
			if m := decode(rec).(*eventsv1.MarketRecord).GetMarket(); m != nil && m.Price >= 1000 && m.CoinId[0] == 'c' {
				early++
				break
			}
		}

		got := memoryLog{}
		output := place{schemas.TopicMarkets, 0}
		ends := rapid.SliceOfN(rapid.IntRange(0, 100), 1, 4).Draw(t, "percent read in each life")
		slices.Sort(ends)
		for _, percent := range append(ends, 100) {
			life := newLife()
			taken := processors.TakeOverMinutes(newFold(), joinedInputs, got[output], life)
			for _, batch := range batches(t, log, taken, percent) {
				mustAdd(t, taken, batch)
			}
			handed := life.handed[output]
			if percent < 100 && len(handed) > 0 { // killed with some on their way
				handed = handed[:rapid.IntRange(0, len(handed)).Draw(t, "kept")]
				restarts++
			}
			for _, rec := range handed {
				got.append(rec)
			}
		}
		wantSameLog(t, "minutes", got, want, false)
	})
	if t.Logf("%d restarts, %d records, %d times with what came before the first clock", restarts, written, early); restarts == 0 || written == 0 || early == 0 {
		t.Errorf("the property was never put to the test")
	}
}

func mustAdd(t *rapid.T, taken *processors.JoinTakeover, batch []*kgo.Record) {
	if err := taken.Add(context.Background(), batch); err != nil {
		t.Fatal(err)
	}
}

// inOrder is the whole log, partition by partition.
func inOrder(log memoryLog) []*kgo.Record {
	var all []*kgo.Record
	for _, at := range slices.SortedFunc(maps.Keys(log), func(a, b place) int {
		if a.topic != b.topic {
			return int(a.topic[0]) - int(b.topic[0]) + len(a.topic) - len(b.topic)
		}
		return int(a.partition - b.partition)
	}) {
		all = append(all, log[at]...)
	}
	return all
}

// batches reads each partition from where the fold begins to a part of it, side by side in any way.
func batches(t *rapid.T, log memoryLog, taken *processors.JoinTakeover, percent int) [][]*kgo.Record {
	left := map[place][]*kgo.Record{}
	var places []place
	for _, rec := range inOrder(log) {
		at := place{rec.Topic, rec.Partition}
		if left[at] == nil {
			places = append(places, at)
			left[at] = []*kgo.Record{}
		}
		if rec.Offset >= taken.From(rec.Topic, rec.Partition) && rec.Offset < int64(len(log[at])*percent/100) {
			left[at] = append(left[at], rec)
		}
	}
	var all [][]*kgo.Record
	for len(places) > 0 {
		i := rapid.IntRange(0, len(places)-1).Draw(t, "partition")
		rest := left[places[i]]
		n := min(len(rest), rapid.SampledFrom([]int{1, 7, 100, 1000}).Draw(t, "batch"))
		if n > 0 {
			all = append(all, rest[:n])
		}
		if left[places[i]] = rest[n:]; len(rest) == n {
			places = slices.Delete(places, i, i+1)
		}
	}
	return all
}
