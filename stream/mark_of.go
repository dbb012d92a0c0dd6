package stream

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// markFields are the numbers of the fields `mark` and `pulse` in the messages of derived topics; 0 where a message has none.
var markFields = func() map[string][2]protowire.Number {
	fields := map[string][2]protowire.Number{}
	for _, t := range schemas.Topics {
		record, ok := t.New().(proto.Message)
		if !ok {
			continue
		}
		of := record.ProtoReflect().Descriptor().Fields()
		var numbers [2]protowire.Number
		for i, name := range [...]string{"mark", "pulse"} {
			for j := range of.Len() {
				if f := of.Get(j); string(f.Name()) == name {
					numbers[i] = f.Number()
				}
			}
		}
		fields[t.Name] = numbers
	}
	return fields
}()

// markOf finds the mark in a value of a derived topic, and whether the value has a pulse, without decoding the rest, which is
// nearly all of it. It is false where there is no mark. That a value has a mark does not make it a record of the topic: see
// schemas.DecodeRecord.
func markOf(topic string, value []byte) (mark *eventsv1.Mark, pulse, ok bool) {
	fields := markFields[topic]
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return nil, false, false
		}
		length := protowire.ConsumeFieldValue(number, kind, value[n:])
		if length < 0 {
			return nil, false, false
		}
		if kind == protowire.BytesType && number == fields[0] {
			if mark == nil {
				mark = &eventsv1.Mark{}
			}
			inner, _ := protowire.ConsumeBytes(value[n:])
			if mark.UnmarshalVT(inner) != nil { // a second one is put together with the first, as decoding does
				return nil, false, false
			}
		}
		pulse = pulse || kind == protowire.BytesType && number == fields[1]
		value = value[n+length:]
	}
	return mark, pulse && mark != nil, mark != nil
}
