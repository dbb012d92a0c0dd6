package stream_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// A tick that is decoded into the memory of the one before holds nothing of it, whatever either holds and whatever kind
// came between.
func TestBorrowedRecordsHoldNothingOfTheOneBefore(t *testing.T) {
	mark := func(offset int64) *eventsv1.Mark {
		return &eventsv1.Mark{LogicVersion: 1, Partition: 3, Offset: offset, Index: uint32(offset % 2)}
	}
	tick := func(resolved *eventsv1.ResolvedTick) *eventsv1.ResolvedRecord_Tick {
		return &eventsv1.ResolvedRecord_Tick{Tick: resolved}
	}
	full := tick(&eventsv1.ResolvedTick{
		Tick: &eventsv1.Tick{Venue: "kraken", Symbol: "XBT/USD", Base: "XBT", Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE, EventId: []byte{1, 2, 3},
			EventTime: 5, IngestTime: 6, Price: "1.5", Size: "2", Side: 1, TradeId: "7", Bid: "1", Ask: "2", Last: "1.5", VolumeBase: "8", VolumeQuote: "9", Snapshot: true, Simulated: true},
		CoinId: "bitcoin", QuoteId: "USD", Rate: 1, RateTime: 2, RateOffset: 3, Flags: 4,
	})
	records := []*eventsv1.ResolvedRecord{
		{Mark: mark(1), Body: full},
		{Mark: mark(2), Body: tick(&eventsv1.ResolvedTick{Tick: &eventsv1.Tick{Venue: "okx"}})},
		{Mark: mark(3), Body: full},
		{Mark: mark(4), Body: &eventsv1.ResolvedRecord_Pulse{Pulse: &eventsv1.Pulse{Now: 9, Watermark: 8}}},
		{Mark: mark(6), Body: &eventsv1.ResolvedRecord_Gap{Gap: &eventsv1.Gap{Venue: "okx"}}},
		{Body: &eventsv1.ResolvedRecord_Control{Control: &eventsv1.Control{View: "ticks", Action: "prepare", Generation: 2}}}, // controls have no mark
		{Mark: &eventsv1.Mark{}, Body: full},
		{Mark: mark(7), Body: tick(&eventsv1.ResolvedTick{Tick: &eventsv1.Tick{Venue: "okx"}, CoinId: "ethereum"})},
	}
	b := stream.NewBorrower(schemas.TopicTicks)
	for i, want := range records {
		value, err := want.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Decode(value)
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got.(*eventsv1.ResolvedRecord), want) {
			t.Errorf("record %d: got %v, want %v", i, got, want)
		}
	}
	unknown, err := (&eventsv1.ResolvedRecord{Mark: mark(8)}).MarshalVT() // of a kind that this reader does not know
	if err != nil {
		t.Fatal(err)
	}
	unmarked, err := (&eventsv1.ResolvedRecord{Body: full}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range [][]byte{{0xff}, nil, unknown, unmarked} {
		if _, err := b.Decode(value); err == nil {
			t.Errorf("%x is no record, and decoded", value)
		}
	}
}

// Whatever a value holds, it is borrowed as it is decoded.
func FuzzBorrowedRecordsAreThoseDecoded(f *testing.F) {
	full := &eventsv1.ResolvedRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Partition: 1, Offset: 2, Index: 3}, Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
		Tick:   &eventsv1.Tick{Venue: "okx", Symbol: "BTC-USDT", EventId: []byte{1}, EventTime: 5, Price: "1.5", Snapshot: true},
		CoinId: "bitcoin", QuoteId: "tether", Rate: 1, RateTime: 2, RateOffset: 3, Flags: 4,
	}}}
	control := &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Control{Control: &eventsv1.Control{View: "ticks", Action: "prepare", Generation: 2}}}
	before, err := full.MarshalVT()
	if err != nil {
		f.Fatal(err)
	}
	controlled, err := control.MarshalVT()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(before)
	f.Add(controlled)
	f.Add(append(slices.Clone(before), controlled...))
	f.Add(append(slices.Clone(before), before...))
	f.Add(before[:len(before)-1])
	f.Fuzz(func(t *testing.T, value []byte) {
		b := stream.NewBorrower(schemas.TopicTicks)
		if _, err := b.Decode(slices.Clone(before)); err != nil {
			t.Fatal(err)
		}
		got, errGot := b.Decode(slices.Clone(value))
		decoded, errWant := schemas.DecodeRecord(schemas.TopicTicks, value)
		if (errGot == nil) != (errWant == nil) {
			t.Fatalf("%x: got error %v, decoded it is %v", value, errGot, errWant)
		}
		if errWant != nil {
			return
		}
		want := decoded.(*eventsv1.ResolvedRecord)
		if tick := want.GetTick(); tick != nil && tick.Tick == nil {
			tick.Tick = &eventsv1.Tick{} // a tick without values: borrowed it is an empty one
		}
		if record := got.(*eventsv1.ResolvedRecord); record.GetTick() != nil && record.GetTick().Tick == nil {
			record.GetTick().Tick = &eventsv1.Tick{}
		}
		if !proto.Equal(got.(*eventsv1.ResolvedRecord), want) {
			t.Errorf("%x: got %v, want %v", value, got, want)
		}
	})
}
