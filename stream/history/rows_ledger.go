package history

import (
	"maps"
	"slices"

	"github.com/ClickHouse/ch-go/proto"
)

// ledgerRows are rows of ledger.
type ledgerRows struct {
	sink                 lowCardinality
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

func (r *ledgerRows) table() string { return "ledger" }
func (r *ledgerRows) len() int      { return len(r.next) }
func (r *ledgerRows) reset()        { *r = ledgerRows{} }

func (r *ledgerRows) add(sink string, generation uint32, p Progress) {
	r.sink.add(sink)
	r.generation = append(r.generation, generation)
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
	r.closedUntil.Data = append(r.closedUntil.Data, second(p.ClosedUntil))
}

func (r *ledgerRows) columns() []column {
	return []column{
		{"sink", "LowCardinality(String)", &r.sink},
		{"generation", "UInt32", &r.generation},
		{"log_partition", "Int32", &r.partition},
		{"first_offset", "Int64", &r.first},
		{"next_offset", "Int64", &r.next},
		{"log_time", "DateTime64(9, 'UTC')", &r.logTime},
		{"mark_partitions", "Array(Int32)", array{&r.ends, &r.markPartitions}},
		{"mark_offsets", "Array(Int64)", array{&r.ends, &r.markOffsets}},
		{"mark_indexes", "Array(UInt32)", array{&r.ends, &r.markIndexes}},
		{"replay", "UInt32", &r.replay},
		{"closed_until", "DateTime('UTC')", &r.closedUntil},
	}
}
