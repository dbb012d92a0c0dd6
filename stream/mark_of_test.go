package stream

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// markSeeds are values of ticks.v1 with a mark and a tick, a pulse, two marks, no mark, and a part of one.
func markSeeds(t testing.TB) [][]byte {
	t.Helper()
	mark := &eventsv1.Mark{LogicVersion: 3, Partition: 5, Offset: 77, Index: 2}
	tick := &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{CoinId: "bitcoin", Tick: &eventsv1.Tick{Venue: "okx", EventId: []byte{1}}}}
	var values [][]byte
	for _, rec := range []*eventsv1.ResolvedRecord{
		{Mark: mark, Body: tick},
		{Mark: mark, Body: &eventsv1.ResolvedRecord_Pulse{Pulse: &eventsv1.Pulse{Now: 9, Checkpoint: &eventsv1.Checkpoint{Offset: 4}}}},
		{Body: tick},
		{Mark: &eventsv1.Mark{Index: 9}},
	} {
		value, err := rec.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	return append(values, slices.Concat(values[0], values[3]), values[0][:len(values[0])-1], nil)
}

func checkMarkOf(t *testing.T, value []byte) {
	t.Helper()
	mark, pulse, ok := markOf(schemas.TopicTicks, value)
	rec, err := schemas.DecodeRecord(schemas.TopicTicks, value)
	if err != nil {
		return // whoever counts a mark decodes its record first
	}
	if want := rec.GetMark(); ok != (want != nil) || ok && !proto.Equal(mark, want) {
		t.Errorf("%x: got mark %v, decoded it is %v", value, mark, want)
	}
	if ok && rec.GetPulse() != nil && !pulse {
		t.Errorf("%x: its pulse was not found", value)
	}
}

func TestMarkOfIsThatOfTheDecodedRecord(t *testing.T) {
	for _, value := range markSeeds(t) {
		checkMarkOf(t, value)
	}
	seeds := markSeeds(t)
	if mark, pulse, ok := markOf(schemas.TopicTicks, seeds[1]); !ok || !pulse || mark.Offset != 77 {
		t.Errorf("got %v, %v, %v of a pulse at 77", mark, pulse, ok)
	}
	if _, _, ok := markOf(schemas.TopicTicks, seeds[2]); ok {
		t.Error("a record without a mark has one")
	}
	for _, topic := range schemas.Topics {
		if !topic.Derived {
			continue
		}
		rec := topic.New()
		rec.SetMark(&eventsv1.Mark{Offset: 7})
		value, err := proto.Marshal(rec.(proto.Message))
		if err != nil {
			t.Fatal(err)
		}
		mark, _, ok := markOf(topic.Name, value)
		if want := rec.GetMark(); ok != (want != nil) || ok && !proto.Equal(mark, want) {
			t.Errorf("%s: got mark %v, want %v", topic.Name, mark, want)
		}
	}
}

func FuzzMarkOfIsThatOfTheDecodedRecord(f *testing.F) {
	for _, value := range markSeeds(f) {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value []byte) { checkMarkOf(t, value) })
}
