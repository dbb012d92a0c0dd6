package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The columns of a segment, in the order of the file, which is that of their names.
const (
	// columnHeaders holds a record's headers as its digest does; it is null where there are none.
	columnHeaders = iota
	columnKey
	columnOffset
	columnTime
	columnValue
)

var schema = parquet.NewSchema("record", parquet.Group{
	"offset":  parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked),
	"time":    parquet.Encoded(parquet.Timestamp(parquet.Millisecond), &parquet.DeltaBinaryPacked),
	"key":     parquet.Encoded(parquet.Optional(parquet.Leaf(parquet.ByteArrayType)), &parquet.RLEDictionary),
	"value":   parquet.Optional(parquet.Leaf(parquet.ByteArrayType)),
	"headers": parquet.Optional(parquet.Leaf(parquet.ByteArrayType)),
})

const (
	// groupBytes ends a row group: as much of the values is in memory while a segment is written. A reader of one record
	// reads one row group.
	groupBytes = 8 << 20
	groupRows  = 100_000
	batchRows  = 256
)

// writer writes records as Parquet.
type writer struct {
	file  *parquet.GenericWriter[any]
	batch []parquet.Row
	cells []parquet.Value
	bytes int64
	rows  int64
}

func newWriter(w io.Writer) *writer {
	return &writer{file: parquet.NewGenericWriter[any](w, schema,
		parquet.Compression(pages),
		// The bounds of values and keys are not used by anybody, and as large as they.
		parquet.SkipPageBounds("value"), parquet.SkipPageBounds("headers"),
		parquet.CreatedBy("marketlog", root, ""),
		parquet.DataPageStatistics(false),
	)}
}

func (w *writer) write(r *kgo.Record) error {
	at := len(w.cells)
	w.cells = append(w.cells,
		optional(headersOf(r), columnHeaders), optional(r.Key, columnKey),
		parquet.Int64Value(r.Offset).Level(0, 0, columnOffset),
		parquet.Int64Value(r.Timestamp.UnixMilli()).Level(0, 0, columnTime),
		optional(r.Value, columnValue))
	w.batch = append(w.batch, w.cells[at:len(w.cells):len(w.cells)])
	w.bytes += int64(len(r.Value))
	w.rows++
	if len(w.batch) == batchRows {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if w.bytes >= groupBytes || w.rows >= groupRows {
		w.bytes, w.rows = 0, 0
		if err := w.flush(); err != nil {
			return err
		}
		return w.file.Flush()
	}
	return nil
}

func (w *writer) flush() error {
	_, err := w.file.WriteRows(w.batch)
	w.batch, w.cells = w.batch[:0], w.cells[:0]
	return err
}

func (w *writer) close() error { return errors.Join(w.flush(), w.file.Close()) }

func optional(text []byte, column int) parquet.Value {
	if text == nil {
		return parquet.NullValue().Level(0, 0, column)
	}
	return parquet.ByteArrayValue(text).Level(0, 1, column)
}

func headersOf(r *kgo.Record) []byte {
	if len(r.Headers) == 0 {
		return nil
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(r.Headers)))
	for _, h := range r.Headers {
		b = appendText(appendText(b, []byte(h.Key)), h.Value)
	}
	return b
}

// errHeaders means that headers are not as headersOf writes them.
var errHeaders = errors.New("its headers cannot be read")

func readHeaders(b []byte) ([]kgo.RecordHeader, error) {
	if b == nil {
		return nil, nil
	}
	if len(b) < 4 {
		return nil, errHeaders
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[4:]; int64(n) > int64(len(b)/8) { // each has two lengths
		return nil, errHeaders
	}
	headers := make([]kgo.RecordHeader, n)
	for i := range headers {
		key, rest, ok := readText(b)
		value, rest, ok2 := readText(rest)
		if !ok || !ok2 {
			return nil, errHeaders
		}
		headers[i], b = kgo.RecordHeader{Key: string(key), Value: value}, rest
	}
	if len(b) > 0 {
		return nil, errHeaders
	}
	return headers, nil
}

func readText(b []byte) (text, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[4:]; n == null {
		return nil, b, true
	}
	if int64(n) > int64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// readRecords hands the records of a Parquet file at and after the offset from to visit, in order. A record and what it
// holds may be kept.
func readRecords(file io.ReaderAt, size int64, of Segment, from int64, visit func(*kgo.Record) error) (err error) {
	defer func() { // the library's readers panic on some damaged files
		if damage := recover(); damage != nil {
			err = fmt.Errorf("decoding its Parquet: %v", damage)
		}
	}()
	f, err := parquet.OpenFile(file, size, parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	if got := f.Schema().String(); got != schema.String() {
		return fmt.Errorf("its columns are not those of a segment: %s", got)
	}
	if f.NumRows() != of.Next-of.First {
		return fmt.Errorf("it has %d records where its sidecar has %d", f.NumRows(), of.Next-of.First)
	}
	next := of.First
	for _, group := range f.RowGroups() {
		if next+group.NumRows() <= from {
			next += group.NumRows()
			continue
		}
		if err := readGroup(group, of, &next, from, visit); err != nil {
			return err
		}
	}
	if next != of.Next {
		return fmt.Errorf("it ends before %d where its sidecar has %d", next, of.Next)
	}
	return nil
}

func readGroup(group parquet.RowGroup, of Segment, next *int64, from int64, visit func(*kgo.Record) error) error {
	rows := group.Rows()
	defer rows.Close()
	if skip := from - *next; skip > 0 {
		if err := rows.SeekToRow(skip); err != nil {
			return err
		}
		*next = from
	}
	batch := make([]parquet.Row, batchRows)
	for {
		n, err := rows.ReadRows(batch)
		for _, row := range batch[:n] {
			record, err := recordOf(row, of)
			if err != nil {
				return fmt.Errorf("record %d: %w", *next, err)
			}
			if record.Offset != *next {
				return fmt.Errorf("it has record %d where %d belongs", record.Offset, *next)
			}
			*next++
			if err := visit(record); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func recordOf(row parquet.Row, of Segment) (*kgo.Record, error) {
	if len(row) != columnValue+1 {
		return nil, fmt.Errorf("it has %d columns", len(row))
	}
	headers, err := readHeaders(textOf(row[columnHeaders]))
	if err != nil {
		return nil, err
	}
	return &kgo.Record{
		Topic: of.Topic, Partition: of.Partition, Headers: headers,
		Offset:    row[columnOffset].Int64(),
		Timestamp: time.UnixMilli(row[columnTime].Int64()),
		Key:       textOf(row[columnKey]),
		Value:     textOf(row[columnValue]),
	}, nil
}

func textOf(v parquet.Value) []byte {
	if v.IsNull() {
		return nil
	}
	return append([]byte{}, v.ByteArray()...)
}
