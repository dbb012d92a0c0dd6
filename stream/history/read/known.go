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

// DoubtedMarkets hands to visit each market whose ticks were resolved to no coin since a time because it has a coin's symbol and not its
// price, with when its last such tick was received.
func (r Reader) DoubtedMarkets(ctx context.Context, since time.Time, visit func(venue, symbol string, at time.Time)) error {
	rows, err := r.store.Conn().Query(ctx, "SELECT venue, symbol, max(ingest_time) FROM ticks WHERE coin_id = '' AND day >= toDate(?) AND ingest_time > toDateTime64(?, 3, 'UTC') AND bitAnd(flags, ?) != 0 GROUP BY venue, symbol",
		since.UTC().Format(time.DateOnly), since.UTC().Format("2006-01-02 15:04:05.000"), uint32(schemas.Doubtful))
	if err != nil {
		return fmt.Errorf("looking for doubted markets: %w", history.Unavailable(err))
	}
	defer rows.Close()
	for rows.Next() {
		var venue, symbol string
		var at time.Time
		if err := rows.Scan(&venue, &symbol, &at); err != nil {
			return fmt.Errorf("looking for doubted markets: %w", err)
		}
		visit(venue, symbol, at)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("looking for doubted markets: %w", history.Unavailable(err))
	}
	return nil
}
