package read

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
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
// gives nothing.
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

// PricesWithInputs hands over published prices of seconds after one and up to another (Unix) with all their inputs and the mark of
// the record that caused each, of the coins with these ids, oldest second first and by coin within one, at most so many.
func (r Reader) PricesWithInputs(ctx context.Context, after, until int64, coins []string, most int, visit func(*eventsv1.PriceRecord)) error {
	found, err := r.readPrices(ctx, priceQuery+`WHERE time > toDateTime(?, 'UTC') AND time <= toDateTime(?, 'UTC') AND reason = '' AND coin_id IN (?)
		ORDER BY time, coin_id LIMIT ?`, after, until, coins, most)
	if err != nil {
		return fmt.Errorf("reading the inputs of prices from %d to %d: %w", after, until, err)
	}
	for _, rec := range found {
		visit(rec)
	}
	return nil
}

// OldestPrice is the second (Unix) from which on all prices are kept at a time of the log: nothing after the start of the oldest day that is kept was
// dropped, nor anything after the oldest price that is there, but what was for want of room.
func (r Reader) OldestPrice(ctx context.Context, at time.Time) (int64, error) {
	var oldest time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT min(time) FROM prices").Scan(&oldest); err != nil {
		return 0, fmt.Errorf("finding the oldest price: %w", history.Unavailable(err))
	}
	kept, dropped, err := r.store.Expiry(ctx, "prices", at)
	return max(dropped.Unix(), min(oldest.Unix(), kept.Unix())), err
}

// PricesView names the table of prices that is live: another one since a replay has put another in its place.
func (r Reader) PricesView(ctx context.Context) (string, error) {
	return r.store.TableID(ctx, "prices")
}

// RatesBetween hands over rates as they were written, by the seconds that schemas.RateSecond gives them: after one and up to
// another (Unix), of the coins with these ids or of all, oldest second first, at most so many. Those of no coin or category, and
// those that another source reports itself, are not among them.
func (r Reader) RatesBetween(ctx context.Context, after, until int64, coins []string, most int, visit func(second int64, e *eventsv1.RateEntry)) error {
	query, args := `SELECT toInt64(toUnixTimestamp(time)) - toInt64(CRC32(concat(source, '|', category, '|', pool)) % 60) AS second, time,
			coin_id, category, source, pool, provider, provider_name, symbol, provider_symbol, chain, name, apr, apy, method, reward_apy, tvl_usd,
			raw, raw_unit, compounding, term, min_amount, max_amount, lockup_days, notice_days, tiers.from, tiers.to, tiers.raw, served, refused, promo, payout,
			collateral_usd, max_ltv, heard, event_time, interval_ns, ended, simulated
		FROM rates FINAL WHERE time > toDateTime(?, 'UTC') AND time < toDateTime(?, 'UTC') AND second > ? AND second <= ?
			AND coin_id != '' AND category IN (?) AND unattached = '' AND shadowed = ''`,
		[]any{max(0, after), max(0, until+60), after, until, schemas.RateCategories}
	if coins != nil {
		query, args = query+" AND coin_id IN (?)", append(args, coins)
	}
	rows, err := r.store.Conn().Query(ctx, query+" ORDER BY second, source, category, pool LIMIT ?", append(args, most)...)
	if err != nil {
		return fmt.Errorf("reading rates from %d to %d: %w", after, until, history.Unavailable(err))
	}
	defer rows.Close()
	for rows.Next() {
		var second int64
		var at, received, event time.Time
		var least, greatest, collateral, ltv *float64
		var from, to, raw []string
		e, reported := &eventsv1.RateEntry{}, &eventsv1.Rate{}
		if err := rows.Scan(&second, &at, &e.CoinId, &e.Category, &e.Source, &e.Pool, &e.Provider, &e.ProviderName, &e.Symbol, &e.ProviderSymbol, &e.Chain, &e.Name,
			&e.Apr, &e.Apy, &e.Method, &e.RewardApy, &e.TvlUsd, &reported.Raw, &reported.RawUnit, &reported.Compounding, &e.Term, &least, &greatest, &reported.LockupDays, &reported.NoticeDays,
			&from, &to, &raw, &reported.Served, &reported.Refused, &reported.Promo, &reported.Payout, &collateral, &ltv, &received, &event, &reported.Interval, &e.Ended, &e.Simulated); err != nil {
			return fmt.Errorf("reading rates from %d to %d: %w", after, until, err)
		}
		e.Time, e.Heard, e.Said = at.UnixNano(), received.UnixNano(), reported
		if event.Unix() != 0 {
			reported.EventTime = event.UnixNano()
		}
		reported.MinAmount, reported.MaxAmount, reported.CollateralUsd, reported.MaxLtv = decimalOf(least), decimalOf(greatest), decimalOf(collateral), decimalOf(ltv)
		for i := range from {
			reported.Tiers = append(reported.Tiers, &eventsv1.RateTier{From: from[i], To: to[i], Raw: raw[i]})
		}
		visit(second, e)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading rates from %d to %d: %w", after, until, history.Unavailable(err))
	}
	return nil
}

// decimalOf writes a number as the log has it; empty where none is known.
func decimalOf(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', -1, 64)
}

// OldestRate is the second (Unix) from which on all single rates are kept at a time of the log: whole days are dropped.
func (r Reader) OldestRate(ctx context.Context, at time.Time) (int64, error) {
	since, err := r.store.KeptSince(ctx, "rates", at)
	return since.Unix(), err
}

// RatesView names the table of rates that is live: another one since a replay has put another in its place.
func (r Reader) RatesView(ctx context.Context) (string, error) {
	return r.store.TableID(ctx, "rates")
}
