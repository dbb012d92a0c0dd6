package schemas

import (
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// TickHead is what distinguishes ticks. What it refers to lives in the memory of the value that it was found in.
type TickHead struct {
	Venue, Symbol, Base string
	EventID             []byte
}

// Fields of a RawRecord.
const (
	fieldProducer protowire.Number = 1
	fieldEpoch    protowire.Number = 2
	fieldRawTick  protowire.Number = 3
)

// tickFields are the types on the wire of the fields of a Tick, by number.
var tickFields = func() (types [20]protowire.Type) {
	for number := range types {
		types[number] = protowire.BytesType
	}
	for _, number := range []int{5, 7, 8, 11, 18, 19} { // kind, times, side and flags; the others are texts
		types[number] = protowire.VarintType
	}
	return types
}()

const (
	fieldTickVenue   protowire.Number = 1
	fieldTickSymbol  protowire.Number = 2
	fieldTickBase    protowire.Number = 3
	fieldTickEventID protowire.Number = 6
)

// FindTickHead finds the head of a tick in a value of ticks.raw.v1, without decoding the rest. It is false for another record, for
// one that DecodeRecord refuses, and for one that only decoding can distinguish.
func FindTickHead(value []byte) (head TickHead, ok bool) {
	var tick []byte
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return TickHead{}, false
		}
		length := protowire.ConsumeFieldValue(number, kind, value[n:])
		switch {
		case length < 0:
			return TickHead{}, false
		case number == fieldProducer && kind == protowire.BytesType, number == fieldEpoch && kind == protowire.VarintType:
		case number == fieldRawTick && kind == protowire.BytesType && tick == nil:
			tick, _ = protowire.ConsumeBytes(value[n:])
		default: // another body, or a second one, which decoding would put together
			return TickHead{}, false
		}
		value = value[n+length:]
	}
	if tick == nil {
		return TickHead{}, false
	}
	for len(tick) > 0 {
		number, kind, n := protowire.ConsumeTag(tick)
		if n < 0 || int(number) >= len(tickFields) || kind != tickFields[number] {
			return TickHead{}, false // of a later version, or damaged
		}
		var field []byte
		var length int
		if kind == protowire.VarintType {
			_, length = protowire.ConsumeVarint(tick[n:])
		} else {
			field, length = protowire.ConsumeBytes(tick[n:])
		}
		if length < 0 {
			return TickHead{}, false
		}
		switch number {
		case fieldTickVenue:
			head.Venue = borrow(field)
		case fieldTickSymbol:
			head.Symbol = borrow(field)
		case fieldTickBase:
			head.Base = borrow(field)
		case fieldTickEventID:
			head.EventID = field
		}
		tick = tick[n+length:]
	}
	return head, true
}

// borrow is a string in the memory of bytes that do not change while it lives.
func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
