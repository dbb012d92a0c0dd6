package schemas_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// What is found without decoding is what decoding finds; in a value that decoding refuses, or finds no tick in, nothing is found.
func TestTickHeadIsThatOfTheDecodedTick(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		record := &eventsv1.RawRecord{
			Producer: rapid.StringMatching(`[a-z]{0,8}`).Draw(t, "producer"), Epoch: rapid.Int64().Draw(t, "epoch"),
		}
		tick := &eventsv1.Tick{
			Venue: rapid.StringMatching(`[a-z]{0,8}`).Draw(t, "venue"), Symbol: rapid.StringMatching(`[A-Z]{0,4}`).Draw(t, "symbol"), Base: rapid.StringMatching(`[A-Z0-9]{0,8}`).Draw(t, "base"),
			Quote: "USD", Kind: eventsv1.TickKind(rapid.IntRange(0, 3).Draw(t, "of")), EventId: []byte("0123456789abcdef"), EventTime: rapid.Int64().Draw(t, "time"), Price: "1.5", Simulated: rapid.Bool().Draw(t, "simulated"),
		}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			record.Body = &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: 1}}
		case 1: // none
		default:
			record.Body = &eventsv1.RawRecord_Tick{Tick: tick}
		}
		value, err := record.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		switch rapid.IntRange(0, 5).Draw(t, "damage") {
		case 0:
			value = value[:rapid.IntRange(0, len(value)).Draw(t, "length")]
		case 1: // another tick, which decoding puts over the first
			other, _ := (&eventsv1.RawRecord{Body: &eventsv1.RawRecord_Tick{Tick: &eventsv1.Tick{Base: "ELSE"}}}).MarshalVT()
			value = append(value, other...)
		case 2: // the same field once more
			inner, _ := tick.MarshalVT()
			inner = protowire.AppendString(protowire.AppendTag(inner, 3, protowire.BytesType), "LATER")
			value = protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), inner)
		case 3: // bits of it, or of its lengths
			for range rapid.IntRange(1, 3).Draw(t, "bits") {
				if len(value) > 0 {
					value[rapid.IntRange(0, len(value)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
				}
			}
		case 4: // a field of a later version, well made or not
			inner, _ := tick.MarshalVT()
			inner = append(inner, rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "more")...)
			value = protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), inner)
		}
		head, ok := schemas.FindTickHead(value)
		if !ok {
			return
		}
		decoded, err := schemas.DecodeRecord(schemas.TopicTicksRaw, value)
		if err != nil {
			t.Fatalf("got %+v of a value that decoding refuses: %v", head, err)
		}
		got := decoded.(*eventsv1.RawRecord).GetTick()
		if got == nil || got.Venue != head.Venue || got.Symbol != head.Symbol || got.Base != head.Base || !bytes.Equal(got.EventId, head.EventID) {
			t.Fatalf("got %+v without decoding, want that of %v", head, decoded)
		}
		found++
	})
	if found == 0 {
		t.Error("nothing was ever found")
	}
}
