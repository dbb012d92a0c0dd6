package rows

import (
	"math"
	"strconv"

	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// columnBatch is rows of a table that is declared column by column: what each takes of a T. It costs a call for every value,
// which the tables of ticks and prices are too large for.
type columnBatch[T any] struct {
	name   string
	fields []field[T]
	place  place
}

// field is a column, and how it takes its value.
type field[T any] struct {
	native.Column
	add   func(T)
	reset func()
}

func newColumnBatch[T any](name string, parts ...[]field[T]) columnBatch[T] {
	s := columnBatch[T]{name: name}
	for _, p := range parts {
		s.fields = append(s.fields, p...)
	}
	return s
}

func (s *columnBatch[T]) Table() string { return s.name }
func (s *columnBatch[T]) Len() int      { return len(s.place.version) }

// appendRaw adds a row of what a source reports; the offset orders them.
func (s *columnBatch[T]) appendRaw(p Place, v T) {
	s.take(v)
	s.place.add(0, p.Partition, p.Offset)
}

// appendDerived adds a row that a fold made.
func (s *columnBatch[T]) appendDerived(m *eventsv1.Mark, v T) {
	s.take(v)
	s.place.mark(m)
}

func (s *columnBatch[T]) take(v T) {
	for _, f := range s.fields {
		f.add(v)
	}
}

func (s *columnBatch[T]) Columns() []native.Column {
	all := make([]native.Column, 0, len(s.fields)+3)
	for _, f := range s.fields {
		all = append(all, f.Column)
	}
	return append(all, s.place.columns()...)
}

func (s *columnBatch[T]) Reset() {
	for _, f := range s.fields {
		f.reset()
	}
	s.place.reset()
}

// Kinds of columns.
const (
	kindWord    = "LowCardinality(String)"
	kindText    = "String"
	kindFloat   = "Float64"
	kindInstant = "DateTime64(9, 'UTC')"
)

// lowCardinalityOf is for texts of which there are few, stringOf for all others.
func lowCardinalityOf[T any](name string, of func(T) string) []field[T] {
	values := &native.LowCardinality{}
	return []field[T]{{native.Col(name, kindWord, values), func(v T) { values.Add(of(v)) }, values.Reset}}
}

func stringOf[T any](name string, of func(T) string) []field[T] {
	values := &proto.ColStr{}
	return []field[T]{{native.Col(name, kindText, values), func(v T) { values.Append(of(v)) }, values.Reset}}
}

// instantOf is a time in Unix nanoseconds.
func instantOf[T any](name string, of func(T) int64) []field[T] {
	return plain(name, kindInstant, of, &proto.ColInt64{})
}

// secondOf and dayOf are of a time in Unix nanoseconds.
func secondOf[T any](name string, of func(T) int64) []field[T] {
	values := &proto.ColDateTime{}
	return []field[T]{{native.Col(name, "DateTime('UTC')", values), func(v T) { values.Data = append(values.Data, native.Second(of(v))) }, values.Reset}}
}

func dayOf[T any](name string, of func(T) int64) []field[T] {
	values := &proto.ColDate{}
	return []field[T]{{native.Col(name, "Date", values), func(v T) { *values = append(*values, date(of(v))) }, values.Reset}}
}

func floatOf[T any](name string, of func(T) float64) []field[T] {
	return plain(name, kindFloat, of, &proto.ColFloat64{})
}

func integerOf[T any](name string, of func(T) int64) []field[T] {
	return plain(name, "Int64", of, &proto.ColInt64{})
}

func statusOf[T any](name string, of func(T) int32) []field[T] {
	return plain(name, "Int32", of, &proto.ColInt32{})
}

// digestOf is a number that is only compared.
func digestOf[T any](name string, of func(T) uint64) []field[T] {
	return plain(name, "UInt64", of, &proto.ColUInt64{})
}

func countOf[T any](name string, of func(T) uint32) []field[T] {
	return plain(name, "UInt32", of, &proto.ColUInt32{})
}

// percentOf is a whole number from 0 to 100.
func percentOf[T any](name string, of func(T) uint32) []field[T] {
	return plain(name, "UInt8", func(v T) uint8 { return uint8(min(of(v), 100)) }, &proto.ColUInt8{})
}

func flagOf[T any](name string, of func(T) bool) []field[T] {
	return plain(name, "Bool", of, &proto.ColBool{})
}

// appended is a column of ch-go that one value is added to.
type appended[V any] interface {
	proto.ColInput
	proto.Resettable
	Append(v V)
}

func plain[T, V any](name, kind string, of func(T) V, values appended[V]) []field[T] {
	return []field[T]{{native.Col(name, kind, values), func(v T) { values.Append(of(v)) }, values.Reset}}
}

// numberOf is a decimal as a source wrote it; NULL where it wrote none that a float can hold.
func numberOf[T any](name string, of func(T) string) []field[T] {
	return optionalOf(name, func(v T) *float64 {
		n, err := strconv.ParseFloat(of(v), 64)
		if err != nil {
			return nil
		}
		return &n
	})
}

// optionalOf is NULL for nil, and for what is not a number.
func optionalOf[T any](name string, of func(T) *float64) []field[T] {
	return plain(name, "Nullable(Float64)", func(v T) proto.Nullable[float64] {
		n := of(v)
		if n == nil || math.IsNaN(*n) || math.IsInf(*n, 0) {
			return proto.Null[float64]()
		}
		return proto.NewNullable(*n)
	}, new(proto.ColFloat64).Nullable())
}

// rateOf is an exact decimal of our own making.
func rateOf[T any](name string, of func(T) string) []field[T] {
	return plain(name, "Decimal(38, 18)", func(v T) proto.Decimal128 { return native.Decimal128(of(v)) }, &proto.ColDecimal128{})
}

// nestedOf is a list of E: an array for each of its fields, which end at the same places.
func nestedOf[T, E any](name string, of func(T) []E, parts ...[]field[E]) []field[T] {
	ends := &proto.ColUInt64{}
	var inner []field[E]
	for _, p := range parts {
		inner = append(inner, p...)
	}
	var all []field[T]
	for _, f := range inner {
		f := field[T]{Column: native.Col(name+"."+f.Name, "Array("+f.Kind+")", native.Array(ends, f.Values)), add: func(T) {}, reset: f.reset}
		all = append(all, f)
	}
	all[0].add = func(v T) { // for all of them
		for _, e := range of(v) {
			for _, f := range inner {
				f.add(e)
			}
		}
		ends.Append(uint64(inner[0].Values.Rows()))
	}
	first := inner[0].reset
	all[0].reset = func() { first(); ends.Reset() }
	return all
}

// secondsOf is a list of times in Unix nanoseconds.
func secondsOf[T any](name string, of func(T) []int64) []field[T] {
	list := nestedOf(name, of, secondOf("", func(at int64) int64 { return at }))
	list[0].Name = name
	return list
}

// listOf is a list of words.
func listOf[T any](name string, of func(T) []string) []field[T] {
	list := nestedOf(name, of, lowCardinalityOf("", func(s string) string { return s }))
	list[0].Name = name
	return list
}
