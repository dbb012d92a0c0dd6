package history

import (
	"maps"
	"slices"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/marketlog/marketlog/stream/history/native"
)

// ledgerRows are rows of ledger.
type ledgerRows struct {
	sink                 native.LowCardinality
	generation           proto.ColUInt32
	partition            proto.ColInt32
	first, next, logTime proto.ColInt64
	ends                 proto.ColUInt64
	markPartitions       proto.ColInt32
	markOffsets          proto.ColInt64
	markIndexes          proto.ColUInt32
	replay               proto.ColUInt32
	closedUntil          proto.ColDateTime
}

func (r *ledgerRows) Table() string { return "ledger" }
func (r *ledgerRows) Len() int      { return len(r.next) }
func (r *ledgerRows) Reset()        { *r = ledgerRows{} }

func (r *ledgerRows) add(p SinkProgress) {
	r.sink.Add(p.Sink)
	r.generation = append(r.generation, p.Generation)
	r.partition = append(r.partition, p.Partition)
	r.first = append(r.first, p.First)
	r.next = append(r.next, p.Next)
	r.logTime = append(r.logTime, p.LogTime)
	for _, origin := range slices.Sorted(maps.Keys(p.Marks)) {
		m := p.Marks[origin]
		r.markPartitions = append(r.markPartitions, origin)
		r.markOffsets = append(r.markOffsets, m.Offset)
		r.markIndexes = append(r.markIndexes, m.Index)
	}
	r.ends = append(r.ends, uint64(len(r.markOffsets)))
	r.replay = append(r.replay, p.Replay)
	r.closedUntil.Data = append(r.closedUntil.Data, native.Second(p.ClosedUntil))
}

func (r *ledgerRows) Columns() []native.Column {
	return []native.Column{
		native.Col("sink", "LowCardinality(String)", &r.sink),
		native.Col("generation", "UInt32", &r.generation),
		native.Col("log_partition", "Int32", &r.partition),
		native.Col("first_offset", "Int64", &r.first),
		native.Col("next_offset", "Int64", &r.next),
		native.Col("log_time", "DateTime64(9, 'UTC')", &r.logTime),
		native.Col("mark_partitions", "Array(Int32)", native.Array(&r.ends, &r.markPartitions)),
		native.Col("mark_offsets", "Array(Int64)", native.Array(&r.ends, &r.markOffsets)),
		native.Col("mark_indexes", "Array(UInt32)", native.Array(&r.ends, &r.markIndexes)),
		native.Col("replay", "UInt32", &r.replay),
		native.Col("closed_until", "DateTime('UTC')", &r.closedUntil),
	}
}
