package rows

import (
	"time"

	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// version is the logic version in the upper and the input offset in the lower 64 bits.
func version(logic uint32, offset int64) proto.UInt128 {
	return proto.UInt128{Low: uint64(offset), High: uint64(logic)}
}

// place is the columns of a row that state what caused it, and which of two rows of one key stays.
type place struct {
	partition proto.ColInt32
	offset    proto.ColInt64
	version   proto.ColUInt128
}

func (c *place) add(logic uint32, partition int32, offset int64) {
	c.partition = append(c.partition, partition)
	c.offset = append(c.offset, offset)
	c.version = append(c.version, version(logic, offset))
}

func (c *place) mark(m *eventsv1.Mark) { c.add(m.LogicVersion, m.Partition, m.Offset) }

func (c *place) reset() { native.Reset(&c.partition, &c.offset, &c.version) }

func (c *place) columns() []native.Column {
	return []native.Column{
		native.Col("log_partition", "Int32", &c.partition),
		native.Col("log_offset", "Int64", &c.offset),
		native.Col("version", "UInt128", &c.version),
	}
}

// date is the day of a time of the log.
func date(ns int64) proto.Date { return proto.Date(ns / int64(24*time.Hour)) }
