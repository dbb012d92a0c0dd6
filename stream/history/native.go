package history

import (
	"encoding/binary"
	"io"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
)

// rows is a batch of one table, column by column.
type rows interface {
	table() string
	columns() []column
	len() int
	reset()
}

// column is one column of a block: its name and type in the table, and its values.
type column struct {
	name, kind string
	values     proto.ColInput
}

// blockReader encodes rows as one block of ClickHouse's Native format
// (https://clickhouse.com/docs/interfaces/formats/Native), one column at a time: so the encoded
// batch is never whole in memory.
type blockReader struct {
	columns []column
	next    int
	buffer  proto.Buffer
	rest    []byte
}

func newBlockReader(r rows) *blockReader {
	b := &blockReader{columns: r.columns()}
	b.buffer.PutInt(len(b.columns))
	b.buffer.PutInt(r.len())
	b.rest = b.buffer.Buf
	return b
}

func (b *blockReader) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.next == len(b.columns) {
			return 0, io.EOF
		}
		c := b.columns[b.next]
		b.next++
		b.buffer.Reset()
		b.buffer.PutString(c.name)
		b.buffer.PutString(c.kind)
		if s, ok := c.values.(proto.StateEncoder); ok {
			s.EncodeState(&b.buffer)
		}
		c.values.EncodeColumn(&b.buffer)
		b.rest = b.buffer.Buf
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// words is a LowCardinality(String) column. It finds a value's place in the dictionary when the
// value is added, so that it holds no record's memory.
type lowCardinality struct {
	index map[string]uint32
	dict  []string
	keys  []uint32
}

func (w *lowCardinality) add(s string) {
	if n := len(w.keys); n > 0 && w.dict[w.keys[n-1]] == s { // as many columns repeat themselves
		w.keys = append(w.keys, w.keys[n-1])
		return
	}
	key, ok := w.index[s]
	if !ok {
		if w.index == nil {
			w.index = map[string]uint32{}
		}
		s = strings.Clone(s)
		key = uint32(len(w.dict))
		w.index[s] = key
		w.dict = append(w.dict, s)
	}
	w.keys = append(w.keys, key)
}

// Reset empties the column.
func (w *lowCardinality) Reset() {
	clear(w.index)
	clear(w.dict)
	w.dict, w.keys = w.dict[:0], w.keys[:0]
}

// Rows, Type, WriteColumn, EncodeState and EncodeColumn make it a column of ch-go.
func (w *lowCardinality) Rows() int                   { return len(w.keys) }
func (w *lowCardinality) Type() proto.ColumnType      { return "LowCardinality(String)" }
func (w *lowCardinality) WriteColumn(p *proto.Writer) { p.ChainBuffer(w.EncodeColumn) }

// EncodeState writes the version of the keys' serialization.
func (w *lowCardinality) EncodeState(b *proto.Buffer) { b.PutInt64(1) }

// EncodeColumn writes the dictionary and a key of the narrowest width for each row.
func (w *lowCardinality) EncodeColumn(b *proto.Buffer) {
	if len(w.keys) == 0 {
		return
	}
	const ownDictionary = 1<<9 | 1<<10 // it comes with the block, and replaces any before
	width := proto.KeyUInt32
	switch {
	case len(w.dict) <= 1<<8:
		width = proto.KeyUInt8
	case len(w.dict) <= 1<<16:
		width = proto.KeyUInt16
	}
	b.PutInt64(ownDictionary | int64(width))
	b.PutInt64(int64(len(w.dict)))
	for _, s := range w.dict {
		b.PutString(s)
	}
	b.PutInt64(int64(len(w.keys)))
	for _, k := range w.keys {
		switch width {
		case proto.KeyUInt8:
			b.Buf = append(b.Buf, byte(k))
		case proto.KeyUInt16:
			b.Buf = binary.LittleEndian.AppendUint16(b.Buf, uint16(k))
		default:
			b.Buf = binary.LittleEndian.AppendUint32(b.Buf, k)
		}
	}
}

// array is a column of arrays whose lengths are those of other arrays too, as in a Nested.
type array struct {
	ends   *proto.ColUInt64
	values proto.ColInput
}

// Rows, Type, WriteColumn, EncodeState and EncodeColumn make it a column of ch-go.
func (a array) Rows() int                   { return a.ends.Rows() }
func (a array) Type() proto.ColumnType      { return a.values.Type().Array() }
func (a array) WriteColumn(p *proto.Writer) { p.ChainBuffer(a.EncodeColumn) }

// EncodeState writes what the values need before the lengths.
func (a array) EncodeState(b *proto.Buffer) {
	if s, ok := a.values.(proto.StateEncoder); ok {
		s.EncodeState(b)
	}
}

// EncodeColumn writes the lengths and the values.
func (a array) EncodeColumn(b *proto.Buffer) {
	a.ends.EncodeColumn(b)
	a.values.EncodeColumn(b)
}
