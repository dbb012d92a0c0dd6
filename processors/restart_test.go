package processors_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/candles"
	"github.com/marketlog/marketlog/processors/median"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// dollars is the rate of the only quote asset that has one, at all times.
type dollars float64

func (d dollars) Rate(quoteID string) (resolve.Rate, bool) {
	return resolve.Rate{USD: float64(d), Time: math.MaxInt64 / 2, Offset: 17}, quoteID == "tether"
}

func resolveUnit(corrections ...*eventsv1.CorrectionRecord) processors.Unit {
	return resolve.Unit(schemas.Coins(), schemas.NewSymbolOverrides(), schemas.NewCorrections(corrections...), dollars(0.999), nil)
}

// drawCorrections draws what an operator excludes of a scenario, and perhaps takes back.
func drawCorrections(t *rapid.T) (corrections []*eventsv1.CorrectionRecord) {
	at := func(label string) int64 {
		return scriptStart.Add(time.Duration(rapid.Float64Range(0, 600).Draw(t, label) * float64(time.Second))).UnixNano()
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "exclusions") {
		id := fmt.Sprint("exclusion ", i)
		x := &eventsv1.CorrectionRecord{
			Id: id, Kind: schemas.CorrectionExclude, Time: at(id), From: at(id + " from"), Venue: rapid.SampledFrom([]string{"kraken", "okx", "gemini"}).Draw(t, id+" of"),
		}
		if rapid.Bool().Draw(t, id+" ends") {
			x.To = x.From + int64(rapid.Float64Range(1, 300).Draw(t, id+" for")*float64(time.Second))
		}
		corrections = append(corrections, x)
		if rapid.Bool().Draw(t, id+" is withdrawn") {
			w := &eventsv1.CorrectionRecord{Id: "no " + id, Kind: schemas.CorrectionWithdraw, Withdraws: id, Time: x.Time + int64(rapid.IntRange(1, 200).Draw(t, id+" holds"))*int64(time.Second)}
			corrections = append(corrections, w)
		}
	}
	return corrections
}

// pricesUnit is the chain that folds ticks of coins, out of as many raw partitions as a scenario has.
func pricesUnit(origins int32) processors.Unit {
	return processors.Unit{
		Name:  "prices",
		Input: schemas.TopicTicks,
		Outputs: []processors.Route{
			{Topic: schemas.TopicPrices, SamePartition: true},
			{Topic: schemas.TopicCandles, SamePartition: true},
		},
		New: func(int32) processors.Fold {
			return processors.Chain(median.New(schemas.Coins(), origins), candles.New(origins))
		},
	}
}

// tally reports over all cases of a property whether it was about anything.
type tally struct{ prices, candles, rewinds, excluded int }

func (n *tally) want(t *testing.T) {
	t.Helper()
	t.Logf("over all cases: %+v", *n)
	if n.prices == 0 || n.candles == 0 || n.rewinds == 0 {
		t.Errorf("the property was never put to the test: %+v", *n)
	}
}

// A fold that is killed and continued, any number of times, has the effect of one that never was:
// every reader sees the same records, byte for byte, in the same order. Each output partition may
// have kept another part of what was written, also within the outputs of one input, and what a
// killed writer had on its way may arrive while its successor writes.
func TestRestartedFoldsWriteWhatUninterruptedOnesWrite(t *testing.T) {
	var n tally
	partition, _ := sameTicksPartition(1)
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		var resolved [scenarioPartitions]memoryLog
		corrections := drawCorrections(t)
		for p, input := range s.raw {
			resolved[p] = fold(t, resolveUnit(corrections...), input)
			got := interrupted(t, resolveUnit(corrections...), input, &n)
			wantSameLog(t, "resolve", got, resolved[p], false)
		}
		input := s.ticks(partition, resolved)
		want := fold(t, pricesUnit(scenarioPartitions), input)
		n.excluded += excludedInputs(want)
		n.prices += want.countOf(schemas.TopicPrices)
		n.candles += want.countOf(schemas.TopicCandles)
		got := interrupted(t, pricesUnit(scenarioPartitions), input, &n)
		wantSameLog(t, "prices", got, want, false)
	})
	n.want(t)
	if n.excluded == 0 {
		t.Error("no input of a price was ever excluded")
	}
}

// excludedInputs counts the inputs of prices that corrections left out.
func excludedInputs(log memoryLog) (n int) {
	for at, records := range log {
		if at.topic != schemas.TopicPrices {
			continue
		}
		for _, rec := range records {
			for _, in := range decode(rec).(*eventsv1.PriceRecord).GetPrice().GetInputs() {
				if in.Reason == schemas.InputExcluded {
					n++
				}
			}
		}
	}
	return n
}

// interrupted folds an input in several lives.
func interrupted(t *rapid.T, unit processors.Unit, input []*kgo.Record, n *tally) memoryLog {
	log := memoryLog{}
	if len(input) == 0 {
		return log
	}
	// Most kills come late: before some minutes are in the log, a restart begins at its beginning.
	kill := rapid.OneOf(rapid.IntRange(0, len(input)-1), rapid.IntRange(len(input)*2/3, len(input)-1))
	kills := rapid.SliceOfN(kill, 1, 4).Draw(t, "kills")
	slices.Sort(kills)
	zombie := newLife()
	for _, kill := range append(kills, len(input)-1) {
		l := newLife()
		w := processors.TakeOver(unit, partitionOf(input), l, log.applied)
		if w.From > 0 {
			n.rewinds++
		}
		for _, rec := range input[w.From:max(w.From, int64(kill)+1)] {
			if err := w.Apply(context.Background(), rec); err != nil {
				t.Fatal(err)
			}
		}
		for _, at := range l.order {
			held := log.applied(at.topic, at.partition)[partitionOf(input)].Mark
			if mark := decode(l.handed[at][0]).GetMark(); !mark.After(held) {
				t.Fatalf("%s/%d holds %v, and is written %v again", at.topic, at.partition, held, mark)
			}
		}
		last := kill == len(input)-1
		next := newLife()
		for _, at := range places(l, zombie) {
			mine, theirs := l.handed[at], zombie.handed[at]
			kept := len(mine)
			if !last {
				kept -= min(kept, rapid.SampledFrom([]int{0, 0, 1, 2, 3, 5, 9, 40, 400}).Draw(t, "lost of "+at.topic))
			}
			for len(theirs) > 0 || kept > 0 {
				if kept == 0 || len(theirs) > 0 && rapid.Bool().Draw(t, "zombie first") {
					log.append(theirs[0])
					theirs = theirs[1:]
					continue
				}
				log.append(mine[0])
				mine, kept = mine[1:], kept-1
			}
			if len(mine) > 0 {
				next.order = append(next.order, at)
				next.handed[at] = mine[:rapid.IntRange(0, len(mine)).Draw(t, "on its way")]
			}
		}
		zombie = next
		if last {
			break
		}
	}
	return log
}

func places(lives ...*life) []place {
	var all []place
	for _, l := range lives {
		for _, at := range l.order {
			if !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all
}

// The same input gives the same bytes, however it is cut into batches and however often it is folded.
func TestOutputsDoNotDependOnBatches(t *testing.T) {
	partition, _ := sameTicksPartition(1)
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		var resolved [scenarioPartitions]memoryLog
		for p, input := range s.raw {
			resolved[p] = fold(t, resolveUnit(), input)
			wantSameBytes(t, batched(t, resolveUnit(), input), resolved[p])
		}
		input := s.ticks(partition, resolved)
		wantSameBytes(t, batched(t, pricesUnit(scenarioPartitions), input), fold(t, pricesUnit(scenarioPartitions), input))
	})
}

func batched(t *rapid.T, unit processors.Unit, input []*kgo.Record) memoryLog {
	var batches [][]*kgo.Record
	for rest := input; len(rest) > 0; {
		size := min(len(rest), rapid.SampledFrom([]int{1, 2, 7, 100, 1000}).Draw(t, "batch"))
		batches, rest = append(batches, rest[:size]), rest[size:]
	}
	log, l := memoryLog{}, newLife()
	w := processors.TakeOver(unit, partitionOf(input), l, log.applied)
	if err := w.Batches(context.Background(), batches); err != nil {
		t.Fatal(err)
	}
	l.writeTo(log)
	return log
}

func wantSameBytes(t *rapid.T, got, want memoryLog) {
	t.Helper()
	wantSameLog(t, "repeated", got, want, false)
	for at := range want {
		for i := range want[at] {
			if !slices.Equal(got[at][i].Value, want[at][i].Value) {
				t.Fatalf("%s/%d, record %d:\ngot  %v\nwant %v", at.topic, at.partition, i, decode(got[at][i]), decode(want[at][i]))
			}
		}
	}
}

// Two writers of one output, one of them given up for dead, see other rates and so write other ticks
// under the same marks. Every reader takes the first; the second changes nothing, wherever it lies.
func TestDuplicatesChangeNothing(t *testing.T) {
	partition, _ := sameTicksPartition(1)
	var n tally
	rapid.Check(t, func(t *rapid.T) {
		s := drawScenario(t)
		var resolved [scenarioPartitions]memoryLog
		for p, input := range s.raw {
			resolved[p] = fold(t, resolveUnit(), input)
		}
		input := s.ticks(partition, resolved)
		log := memoryLog{}
		var waiting []*kgo.Record
		for _, rec := range input {
			log.append(rec)
			if rapid.IntRange(0, 9).Draw(t, "duplicate") == 0 {
				waiting = append(waiting, duplicate(rec))
			}
			for len(waiting) > 0 && rapid.IntRange(0, 3).Draw(t, "duplicate comes") == 0 {
				log.append(waiting[0])
				waiting = waiting[1:]
			}
		}
		want := fold(t, pricesUnit(scenarioPartitions), input)
		// The offsets of the input are others, and so are the marks.
		wantSameLog(t, "beside duplicates", fold(t, pricesUnit(scenarioPartitions), log[place{schemas.TopicTicks, partition}]), want, true)
		got := interrupted(t, pricesUnit(scenarioPartitions), log[place{schemas.TopicTicks, partition}], &n)
		wantSameLog(t, "restarted beside duplicates", got, want, true)
	})
}

// duplicate is the record with the same mark that another writer would have written.
func duplicate(rec *kgo.Record) *kgo.Record {
	other := *rec
	marked := decode(rec).(*eventsv1.ResolvedRecord)
	switch {
	case marked.GetTick() != nil:
		marked.GetTick().Rate *= 1.5
	case marked.GetPulse() != nil:
		marked.GetPulse().Checkpoint = &eventsv1.Checkpoint{Offset: 1}
	}
	value, err := marked.MarshalVT()
	if err != nil {
		panic(err)
	}
	other.Value = value
	return &other
}
