package history

import (
	"context"
	"fmt"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Progress is how far one sink has come in one partition: all rows of [First, Next) are kept.
type Progress struct {
	Partition   int32
	First, Next int64
	// LogTime is the log time of the newest of them, Unix nanoseconds.
	LogTime int64
	// Marks are the last applied of each origin: a record at or below them is a twin.
	Marks map[int32]*eventsv1.Mark
}

// Progress reads the ledger of a sink, by partition.
func (s *Store) Progress(ctx context.Context, sink string, generation uint32) (map[int32]Progress, error) {
	rows, err := s.conn.Query(ctx, `SELECT log_partition, first_offset, next_offset, log_time, mark_partitions, mark_offsets, mark_indexes
		FROM ledger FINAL WHERE sink = ? AND generation = ?`, sink, generation)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger of %s: %w", sink, unavailable(err))
	}
	defer rows.Close()
	progress := map[int32]Progress{}
	for rows.Next() {
		var p Progress
		var logTime time.Time
		var partitions []int32
		var offsets []int64
		var indexes []uint32
		if err := rows.Scan(&p.Partition, &p.First, &p.Next, &logTime, &partitions, &offsets, &indexes); err != nil {
			return nil, fmt.Errorf("reading the ledger of %s: %w", sink, err)
		}
		p.LogTime = logTime.UnixNano()
		p.Marks = map[int32]*eventsv1.Mark{}
		for i, partition := range partitions {
			p.Marks[partition] = &eventsv1.Mark{Partition: partition, Offset: offsets[i], Index: indexes[i]}
		}
		progress[p.Partition] = p
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading the ledger of %s: %w", sink, unavailable(err))
	}
	return progress, nil
}

// Record writes what was inserted into the ledger, after the rows themselves.
func (s *Store) Record(ctx context.Context, sink string, generation uint32, progress []Progress) error {
	batch, err := s.conn.PrepareBatch(ctx, "INSERT INTO ledger (sink, generation, log_partition, first_offset, next_offset, log_time, mark_partitions, mark_offsets, mark_indexes)")
	if err != nil {
		return fmt.Errorf("writing the ledger of %s: %w", sink, unavailable(err))
	}
	for _, p := range progress {
		partitions, offsets, indexes := make([]int32, 0, len(p.Marks)), make([]int64, 0, len(p.Marks)), make([]uint32, 0, len(p.Marks))
		for partition, m := range p.Marks {
			partitions, offsets, indexes = append(partitions, partition), append(offsets, m.Offset), append(indexes, m.Index)
		}
		if err := batch.Append(sink, generation, p.Partition, p.First, p.Next, at(p.LogTime), partitions, offsets, indexes); err != nil {
			return fmt.Errorf("writing the ledger of %s: %w", sink, err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("writing the ledger of %s: %w", sink, unavailable(err))
	}
	return nil
}
