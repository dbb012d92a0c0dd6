package schemas

import (
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of a RawRecord and of a Tick.
const (
	fieldProducer  protowire.Number = 1
	fieldEpoch     protowire.Number = 2
	fieldRawTick   protowire.Number = 3
	fieldTickVenue protowire.Number = 1
	fieldTickBase  protowire.Number = 3
)

// TickBase finds the venue and the base in a value of ticks.raw.v1 that is a tick, without decoding the rest. It is false for
// another record, and for one that only decoding can distinguish. What it finds lives in the value's memory.
func TickBase(value []byte) (venue, base string, ok bool) {
	var tick []byte
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return "", "", false
		}
		length := protowire.ConsumeFieldValue(number, kind, value[n:])
		switch {
		case length < 0:
			return "", "", false
		case number == fieldProducer, number == fieldEpoch:
		case number == fieldRawTick && kind == protowire.BytesType && tick == nil:
			tick, _ = protowire.ConsumeBytes(value[n:])
		default: // another body, or a second one, which decoding would put together
			return "", "", false
		}
		value = value[n+length:]
	}
	if tick == nil {
		return "", "", false
	}
	var found [2][]byte
	for len(tick) > 0 {
		number, kind, n := protowire.ConsumeTag(tick)
		if n < 0 {
			return "", "", false
		}
		length := protowire.ConsumeFieldValue(number, kind, tick[n:])
		if length < 0 {
			return "", "", false
		}
		if number == fieldTickVenue || number == fieldTickBase {
			if kind != protowire.BytesType {
				return "", "", false
			}
			found[number/fieldTickBase], _ = protowire.ConsumeBytes(tick[n:])
		}
		tick = tick[n+length:]
	}
	return borrow(found[0]), borrow(found[1]), true
}

// borrow is a string in the memory of bytes that do not change while it lives.
func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
