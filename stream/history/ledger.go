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
	// ClosedUntil is the time, in whole minutes, up to which a sink of candles holds every live minute that there
	// will be, Unix nanoseconds; 0 if that is not known.
	ClosedUntil int64
	// Marks are the last applied of each origin: a record at or below them is a duplicate.
	Marks map[int32]*eventsv1.Mark
	// Replay is the generation of the replay whose shadow tables get the rows too; 0 for none.
	Replay uint32
}

// Progress reads the ledger of a sink, by partition.
func (s *Store) Progress(ctx context.Context, sink string, generation uint32) (map[int32]Progress, error) {
	rows, err := s.conn.Query(ctx, `SELECT log_partition, first_offset, next_offset, log_time, mark_partitions, mark_offsets, mark_indexes, replay, closed_until
		FROM ledger FINAL WHERE sink = ? AND generation = ?`, sink, generation)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger of %s: %w", sink, Unavailable(err))
	}
	defer rows.Close()
	progress := map[int32]Progress{}
	for rows.Next() {
		var p Progress
		var logTime, closed time.Time
		var partitions []int32
		var offsets []int64
		var indexes []uint32
		if err := rows.Scan(&p.Partition, &p.First, &p.Next, &logTime, &partitions, &offsets, &indexes, &p.Replay, &closed); err != nil {
			return nil, fmt.Errorf("reading the ledger of %s: %w", sink, err)
		}
		p.LogTime, p.ClosedUntil = logTime.UnixNano(), closed.UnixNano()
		p.Marks = map[int32]*eventsv1.Mark{}
		for i, partition := range partitions {
			p.Marks[partition] = &eventsv1.Mark{Partition: partition, Offset: offsets[i], Index: indexes[i]}
		}
		progress[p.Partition] = p
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading the ledger of %s: %w", sink, Unavailable(err))
	}
	return progress, nil
}

// Kept reads of all sinks, by topic and partition, before which offset the rows are kept.
func (s *Store) Kept(ctx context.Context) (map[string]map[int32]int64, error) {
	rows, err := s.conn.Query(ctx, "SELECT sink, log_partition, next_offset FROM ledger FINAL WHERE generation = 0")
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", Unavailable(err))
	}
	defer rows.Close()
	kept := map[string]map[int32]int64{}
	for rows.Next() {
		var topic string
		var partition int32
		var next int64
		if err := rows.Scan(&topic, &partition, &next); err != nil {
			return nil, fmt.Errorf("reading the ledger: %w", err)
		}
		if kept[topic] == nil {
			kept[topic] = map[int32]int64{}
		}
		kept[topic][partition] = next
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", Unavailable(err))
	}
	return kept, nil
}

// SinkProgress is the progress of one sink.
type SinkProgress struct {
	Sink string // its topic
	// Generation is 0 but for a sink of a replay.
	Generation uint32
	Progress
}

// Record writes what was inserted into the ledger, after the rows themselves. Written twice it is
// the same; of two writers the one that came further counts.
func (s *Store) Record(ctx context.Context, progress []SinkProgress) error {
	rows := &ledgerRows{}
	for _, p := range progress {
		rows.add(p)
	}
	if err := s.Insert(ctx, rows, ""); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}
