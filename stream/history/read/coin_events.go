package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream/history"
)

// FirstPriced reads the beginning of the first minute with a published price of each coin, by coin id. It looks through all
// minutes of all coins: ask rarely.
func (r Reader) FirstPriced(ctx context.Context) (map[string]time.Time, error) {
	first := map[string]time.Time{}
	_, err := history.Select(ctx, r.store, "SELECT toString(coin_id), min(start) FROM candles_1m GROUP BY coin_id", nil,
		func(rows driver.Rows) (struct{}, error) {
			var id string
			var start time.Time
			err := rows.Scan(&id, &start)
			first[id] = start.UTC()
			return struct{}{}, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading when coins were first priced: %w", err)
	}
	return first, nil
}

// CoinEvent is a change of what a source reports about a coin.
type CoinEvent struct {
	Source, SourceID, Part string
	// Time is when it was read.
	Time time.Time
	// Changed names what differs from the source's report before; it is empty for its first report.
	Changed      []string
	Symbol, Name string
	Rank         uint32
	Inactive     bool
}

// CoinEvents reads the newest changes of what sources report about a coin, the newest first, at most limit of them.
func (r Reader) CoinEvents(ctx context.Context, coinID string, limit int) ([]CoinEvent, error) {
	// Events of all that a source ever called this coin: what it was before its table knew it too.
	events, err := history.Select(ctx, r.store, `SELECT source, source_id, part, time, changed, symbol, name, rank, inactive
		FROM coin_changes WHERE coin_id = ? ORDER BY time DESC, source, part LIMIT ?`, []any{coinID, limit},
		func(rows driver.Rows) (e CoinEvent, err error) {
			err = rows.Scan(&e.Source, &e.SourceID, &e.Part, &e.Time, &e.Changed, &e.Symbol, &e.Name, &e.Rank, &e.Inactive)
			e.Time = e.Time.UTC()
			return e, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading what changed of %s: %w", coinID, err)
	}
	return events, nil
}
