package shadow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/marketlog/marketlog/stream/history"
)

// Replay is what the journal holds of a replay or of one of its partitions.
type Replay struct {
	Generation uint32
	// Partition is -1 for the replay itself.
	Partition int32
	// Revision counts the entries; the newest counts.
	Revision uint64
	State    string
	Record   json.RawMessage
}

// Replays reads the journal: of every replay and partition the newest entry, in that order.
func (t Tables) Replays(ctx context.Context) ([]Replay, error) {
	rows, err := t.store.Conn().Query(ctx, "SELECT generation, log_partition, revision, state, record FROM replays FINAL ORDER BY generation, log_partition")
	if err != nil {
		return nil, fmt.Errorf("reading the journal of replays: %w", history.Unavailable(err))
	}
	defer rows.Close()
	var all []Replay
	for rows.Next() {
		var r Replay
		var record string
		if err := rows.Scan(&r.Generation, &r.Partition, &r.Revision, &r.State, &record); err != nil {
			return nil, fmt.Errorf("reading the journal of replays: %w", err)
		}
		r.Record = json.RawMessage(record)
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading the journal of replays: %w", history.Unavailable(err))
	}
	return all, nil
}

// RecordReplay writes an entry of the journal. It is kept when the call returns nil.
func (t Tables) RecordReplay(ctx context.Context, r Replay) error {
	err := t.store.Conn().Exec(ctx, "INSERT INTO replays (generation, log_partition, revision, state, record) VALUES (?, ?, ?, ?, ?)",
		r.Generation, r.Partition, r.Revision, r.State, string(r.Record))
	if err != nil {
		return fmt.Errorf("writing the journal of replays: %w", history.Unavailable(err))
	}
	return nil
}
