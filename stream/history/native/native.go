// Package native encodes rows of a table column by column, as blocks of ClickHouse's Native format: the columns are those of ch-go, and what
// these lack. It knows no table of ours and opens no connection.
package native

import (
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/ch-go/proto"
)

// Rows are rows of one table, column by column.
type Rows interface {
	Table() string
	Columns() []Column
	Len() int
	// reset empties them.
	Reset()
}

// Column is one column of a block: its name and type in the table, and its values.
type Column struct {
	Name, Kind string
	Values     proto.ColInput
}

// Col is a column of a name and a type of ClickHouse.
func Col(name, kind string, values proto.ColInput) Column {
	return Column{Name: name, Kind: kind, Values: values}
}

type blockReader struct {
	columns []Column
	next    int
	buffer  proto.Buffer
	rest    []byte
}

// Block encodes rows as one block of ClickHouse's Native format (https://clickhouse.com/docs/interfaces/formats/Native), one column at
// a time as it is read: so the encoded batch is never whole in memory.
func Block(r Rows) io.Reader {
	b := &blockReader{columns: r.Columns()}
	if kept, ok := columnBuffers.Get().(*[]byte); ok {
		b.buffer.Buf = (*kept)[:0]
	}
	b.buffer.PutInt(len(b.columns))
	b.buffer.PutInt(r.Len())
	b.rest = b.buffer.Buf
	return b
}

// columnBuffers are those of blocks that were read to their end, of at most keptColumn bytes: a column of a batch has some hundred
// kilobytes, and there are some blocks a second.
var columnBuffers sync.Pool

const keptColumn = 4 << 20

func (b *blockReader) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.next == len(b.columns) {
			if kept := b.buffer.Buf; cap(kept) > 0 && cap(kept) <= keptColumn {
				columnBuffers.Put(&kept)
			}
			b.rest, b.buffer.Buf = nil, nil
			return 0, io.EOF
		}
		c := b.columns[b.next]
		b.next++
		b.buffer.Reset()
		b.buffer.PutString(c.Name)
		b.buffer.PutString(c.Kind)
		if s, ok := c.Values.(proto.StateEncoder); ok {
			s.EncodeState(&b.buffer)
		}
		c.Values.EncodeColumn(&b.buffer)
		b.rest = b.buffer.Buf
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// LowCardinality is a LowCardinality(String) column. It finds a value's place in the dictionary when the
// value is added, so that it holds no record's memory.
type LowCardinality struct {
	index map[string]uint32
	dict  []string
	keys  []uint32
}

// Add adds a value, whose memory it does not keep.
func (w *LowCardinality) Add(s string) {
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
func (w *LowCardinality) Reset() {
	clear(w.index)
	clear(w.dict)
	w.dict, w.keys = w.dict[:0], w.keys[:0]
}

// Rows returns the number of rows.
func (w *LowCardinality) Rows() int { return len(w.keys) }

// Type is the type of ClickHouse.
func (w *LowCardinality) Type() proto.ColumnType { return "LowCardinality(String)" }

// WriteColumn writes what EncodeColumn does.
func (w *LowCardinality) WriteColumn(p *proto.Writer) { p.ChainBuffer(w.EncodeColumn) }

// EncodeState writes the version of the keys' serialization.
func (w *LowCardinality) EncodeState(b *proto.Buffer) { b.PutInt64(1) }

// EncodeColumn writes the dictionary and a key of the narrowest width for each row.
func (w *LowCardinality) EncodeColumn(b *proto.Buffer) {
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

// Array is a column of arrays: where in values each of them ends, which other columns may share, as in a Nested.
func Array(ends *proto.ColUInt64, values proto.ColInput) proto.ColInput {
	return array{ends, values}
}

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

// Reset empties columns and keeps their memory.
func Reset(columns ...proto.Resettable) {
	for _, c := range columns {
		c.Reset()
	}
}

// Second is a time of the log as a DateTime: whole seconds, 1970 to 2106.
func Second(ns int64) proto.DateTime { return proto.DateTime(ns / int64(time.Second)) }
