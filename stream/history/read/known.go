package read

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
)

// knownAtOnce bounds the length of a statement.
const knownAtOnce = 2000

// KnownTicks hands to visit those of the events that the table of ticks has, of the day of since or later.
func (r Reader) KnownTicks(ctx context.Context, ids []schemas.EventID, since time.Time, visit func(schemas.EventID)) error {
	for chunk := range slices.Chunk(ids, knownAtOnce) {
		names := make([]string, len(chunk))
		for i, id := range chunk {
			names[i] = "unhex('" + hex.EncodeToString(id[:]) + "')"
		}
		rows, err := r.store.Conn().Query(ctx, "SELECT DISTINCT hex(event_id) FROM ticks WHERE day >= toDate(?) AND event_id IN ("+strings.Join(names, ", ")+")",
			since.UTC().Format(time.DateOnly))
		if err != nil {
			return fmt.Errorf("looking for ticks: %w", history.Unavailable(err))
		}
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				_ = rows.Close()
				return fmt.Errorf("looking for ticks: %w", err)
			}
			var id schemas.EventID
			if _, err := hex.Decode(id[:], []byte(name)); err != nil {
				_ = rows.Close()
				return fmt.Errorf("looking for ticks: %w", err)
			}
			visit(id)
		}
		if err := rows.Err(); err != nil {
			return fmt.Errorf("looking for ticks: %w", history.Unavailable(err))
		}
	}
	return nil
}
