package read

import (
	"context"
	"fmt"
	"time"

	"github.com/marketlog/marketlog/stream/history"
)

// SpanPrice is one published price of a span.
type SpanPrice struct {
	CoinID, Source string
	// Price and Volume24h are in USD.
	Price, Volume24h float64
	// Second is the one that was evaluated, Unix.
	Second int64
	// Partition is that of prices.v1, and of ticks.v1 which caused it.
	Partition int32
}

// PricesBetween hands published prices to visit, of seconds after one and up to another (Unix), oldest second first and by
// coin within one, at most so many. Coins bounds them to these ids; nil is all. Of records with a reason in place of a price it
// tells nothing.
func (r Reader) PricesBetween(ctx context.Context, after, until int64, coins []string, most int, visit func(SpanPrice)) error {
	query, args := `SELECT coin_id, toInt64(toUnixTimestamp(time)), price, volume_24h, source, log_partition FROM prices FINAL
		WHERE time > toDateTime(?, 'UTC') AND time <= toDateTime(?, 'UTC') AND reason = ''`, []any{after, until}
	if coins != nil {
		query, args = query+" AND coin_id IN (?)", append(args, coins)
	}
	rows, err := r.store.Conn().Query(ctx, query+" ORDER BY time, coin_id LIMIT ?", append(args, most)...)
	if err != nil {
		return fmt.Errorf("reading prices from %d to %d: %w", after, until, history.Unavailable(err))
	}
	defer rows.Close()
	for rows.Next() {
		var p SpanPrice
		if err := rows.Scan(&p.CoinID, &p.Second, &p.Price, &p.Volume24h, &p.Source, &p.Partition); err != nil {
			return fmt.Errorf("reading prices from %d to %d: %w", after, until, err)
		}
		visit(p)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading prices from %d to %d: %w", after, until, history.Unavailable(err))
	}
	return nil
}

// OldestPrice is the second (Unix) from which on all prices are kept at a time of the log: whole days are dropped, so nothing
// after the start of the oldest day that is kept was, nor anything after the oldest price that is there.
func (r Reader) OldestPrice(ctx context.Context, at time.Time) (int64, error) {
	var oldest time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT min(time) FROM prices").Scan(&oldest); err != nil {
		return 0, fmt.Errorf("finding the oldest price: %w", history.Unavailable(err))
	}
	return min(oldest.Unix(), r.store.KeptSince("prices", at).Unix()), nil
}

// PricesView names the table of prices that is live: another one since a replay has put another in its place.
func (r Reader) PricesView(ctx context.Context) (string, error) {
	return r.store.TableID(ctx, "prices")
}
