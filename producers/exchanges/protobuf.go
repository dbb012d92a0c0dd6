package exchanges

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// protoField is one field of a protobuf message: bytes, text or a message, or a number; the other is empty.
type protoField struct {
	id     protowire.Number
	bytes  []byte
	number producers.Num
}

func (f protoField) text() string { return strings.ToValidUTF8(string(f.bytes), "\uFFFD") }

// num is a number, or one that is sent as text.
func (f protoField) num() producers.Num {
	if f.number != "" {
		return f.number
	}
	return producers.Num(f.text())
}

// protoFields visits the fields of a message in the order of the wire.
func protoFields(b []byte, visit func(f protoField) error) error {
	for len(b) > 0 {
		id, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return producers.Unreadable("reading a field: %w", protowire.ParseError(n))
		}
		b = b[n:]
		f := protoField{id: id}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			f.number = producers.Num(strconv.FormatInt(int64(v), 10))
		default:
			n = protowire.ConsumeFieldValue(id, kind, b)
		}
		if n < 0 {
			return producers.Unreadable("reading field %d: %w", id, protowire.ParseError(n))
		}
		b = b[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// proto reads a protobuf message, whose fields the table names by their numbers, into an event like e.
func (r *objects) proto(b []byte, e adapter.Event, out *adapter.Out) error {
	var told parts
	err := protoFields(b, func(f protoField) error {
		if i := slices.Index(r.keys, strconv.Itoa(int(f.id))); i >= 0 {
			told[r.parts[i]] = f.num()
		}
		return nil
	})
	if err == nil {
		r.addParts(&told, e, out)
	}
	return err
}

// protoList reads the messages that are field 1 of one.
func (r *objects) protoList(b []byte, e adapter.Event, out *adapter.Out) error {
	return protoFields(b, func(f protoField) error {
		if f.id != 1 {
			return nil
		}
		return r.proto(f.bytes, e, out)
	})
}
