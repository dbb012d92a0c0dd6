package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history"
)

const earnVariantColumns = `product_id, variant_id, time, provider, provider_name, segment, coin_id, symbol, category, source, pool, provider_symbol, chain, name, term,
	status, apr, apy, reward_apy, base_apy, max_apy, compounding, tiers.from, tiers.to, tiers.apr, tiers.apy, tvl_usd, min_amount, max_amount, lockup_days, notice_days,
	payout, promo, served, refused, confidence, collection, simulated, interval_ns, heard`

// EarnVariants reads the variants of all earn products as they are, by product and variant; those that are closed or replaced
// only if that was since then.
func (r Reader) EarnVariants(ctx context.Context, since time.Time) ([]*eventsv1.EarnVariant, error) {
	variants, err := history.Select(ctx, r.store, "SELECT "+earnVariantColumns+` FROM earn_products FINAL
		WHERE status IN ('open', 'silent') OR time >= ? ORDER BY product_id, variant_id`, []any{since}, scanEarnVariant)
	if err != nil {
		return nil, fmt.Errorf("reading earn products: %w", err)
	}
	return variants, nil
}

// EarnVariantsAt reads the variants of one product as of a time, by variant: what was made of a minute that ended
// later is not among it. Those that were closed by then are.
func (r Reader) EarnVariantsAt(ctx context.Context, productID string, at time.Time) ([]*eventsv1.EarnVariant, error) {
	variants, err := history.Select(ctx, r.store, "SELECT "+earnVariantColumns+` FROM earn_history FINAL
		WHERE product_id = ? AND time <= ? ORDER BY variant_id, time DESC LIMIT 1 BY variant_id`, []any{productID, at}, scanEarnVariant)
	if err != nil {
		return nil, fmt.Errorf("reading the earn product %s: %w", productID, err)
	}
	return variants, nil
}

// earnRepeated is within what time each variant that is open or silent is written again: an hour, and what a minute may be late.
const earnRepeated = 65 * time.Minute

// EarnVariantsUntil reads the variants of all earn products as the minutes had them that had ended by a time, by product and variant; those that were closed or replaced
// only if that was since another time, before which nothing is looked for.
func (r Reader) EarnVariantsUntil(ctx context.Context, until, since time.Time) ([]*eventsv1.EarnVariant, error) {
	var newest *time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT maxOrNull(time) FROM earn_history WHERE time >= ? AND time <= ?", since, until).Scan(&newest); err != nil {
		return nil, fmt.Errorf("reading up to when there are earn products: %w", history.Unavailable(err))
	}
	if newest == nil {
		return nil, nil
	}
	variants, err := history.Select(ctx, r.store, "SELECT "+earnVariantColumns+` FROM earn_history FINAL
		WHERE time >= ? AND time <= ? AND (time > ? OR status NOT IN ('open', 'silent')) ORDER BY product_id, variant_id, time DESC LIMIT 1 BY product_id, variant_id`,
		[]any{since, until, newest.Add(-earnRepeated)}, scanEarnVariant)
	if err != nil {
		return nil, fmt.Errorf("reading earn products: %w", err)
	}
	return variants, nil
}

// EarnSince reads the end of the first minute that earn products are kept of; zero where none are.
func (r Reader) EarnSince(ctx context.Context) (time.Time, error) {
	var first *time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT minOrNull(time) FROM earn_history").Scan(&first); err != nil {
		return time.Time{}, fmt.Errorf("reading since when there are earn products: %w", history.Unavailable(err))
	}
	return orZero(first), nil
}

func scanEarnVariant(rows driver.Rows) (*eventsv1.EarnVariant, error) {
	v := &eventsv1.EarnVariant{}
	var end, received time.Time
	var from, to []string
	var aprs, apys []float64
	err := rows.Scan(&v.ProductId, &v.VariantId, &end, &v.Provider, &v.ProviderName, &v.Segment, &v.CoinId, &v.Symbol, &v.Category, &v.Source, &v.Pool,
		&v.ProviderSymbol, &v.Chain, &v.Name, &v.Term, &v.Status, &v.Apr, &v.Apy, &v.RewardApy, &v.BaseApy, &v.MaxApy, &v.Compounding, &from, &to, &aprs, &apys,
		&v.TvlUsd, &v.MinAmount, &v.MaxAmount, &v.LockupDays, &v.NoticeDays, &v.Payout, &v.Promo, &v.Served, &v.Refused, &v.Confidence, &v.Collection,
		&v.Simulated, &v.Interval, &received)
	if err != nil {
		return nil, err
	}
	v.Time, v.Heard = end.UnixNano(), received.UnixNano()
	for i := range from {
		v.Tiers = append(v.Tiers, &eventsv1.EarnTier{From: from[i], To: to[i], Apr: aprs[i], Apy: apys[i]})
	}
	return v, nil
}

// EarnFilter narrows changes of earn products; what is empty does not.
type EarnFilter struct {
	CoinID, Provider string
	// Since and Until bound the time of a change; both are included.
	Since, Until time.Time
}

// EarnChanges reads the newest changes of the terms of earn products, the newest first, at most limit of them.
func (r Reader) EarnChanges(ctx context.Context, filter EarnFilter, limit int) ([]*eventsv1.EarnChange, error) {
	changes, err := history.Select(ctx, r.store, `SELECT product_id, variant_id, field, time, provider, coin_id, symbol, category, before, after, simulated FROM earn_changes FINAL
		WHERE time >= ? AND time <= fromUnixTimestamp64Nano(toInt64(?), 'UTC') AND (? = '' OR coin_id = ?) AND (? = '' OR provider = ?)
		ORDER BY time DESC, product_id, variant_id, field LIMIT ?`,
		[]any{filter.Since, orEnd(filter.Until).UnixNano(), filter.CoinID, filter.CoinID, filter.Provider, filter.Provider, limit},
		func(rows driver.Rows) (*eventsv1.EarnChange, error) {
			c := &eventsv1.EarnChange{}
			var end time.Time
			err := rows.Scan(&c.ProductId, &c.VariantId, &c.Field, &end, &c.Provider, &c.CoinId, &c.Symbol, &c.Category, &c.Before, &c.After, &c.Simulated)
			c.Time = end.UnixNano()
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading changes of earn products: %w", err)
	}
	return changes, nil
}

const earnFixingRows = "(SELECT * FROM earn_fixings FINAL UNION ALL SELECT * FROM earn_corrections FINAL)"

// EarnFixings reads the fixings of all segments of the days from one on, by date, segment and revision: corrections follow what
// they take the place of. They come without the quotes of providers.
func (r Reader) EarnFixings(ctx context.Context, from time.Time) ([]*eventsv1.EarnFixing, error) {
	fixings, err := history.Select(ctx, r.store, "SELECT "+earnFixingColumns+" FROM "+earnFixingRows+" WHERE day >= ? ORDER BY day, segment, revision",
		[]any{from.UTC().Format(time.DateOnly)}, func(rows driver.Rows) (*eventsv1.EarnFixing, error) { return scanEarnFixing(rows) })
	if err != nil {
		return nil, fmt.Errorf("reading fixings of the earn benchmark: %w", err)
	}
	return fixings, nil
}

// EarnFixingsOf reads the fixings of a day with the quotes of providers, by segment and revision.
func (r Reader) EarnFixingsOf(ctx context.Context, date time.Time) ([]*eventsv1.EarnFixing, error) {
	fixings, err := history.Select(ctx, r.store, "SELECT "+earnFixingColumns+", quotes.provider, quotes.segment, quotes.apy, quotes.tvl_usd, quotes.variants FROM "+earnFixingRows+
		" WHERE day = ? ORDER BY segment, revision", []any{date.UTC().Format(time.DateOnly)},
		func(rows driver.Rows) (*eventsv1.EarnFixing, error) {
			var providers, segments []string
			var apys, tvls []float64
			var variants []uint32
			f, err := scanEarnFixing(rows, &providers, &segments, &apys, &tvls, &variants)
			for i := range providers {
				f.Quotes = append(f.Quotes, &eventsv1.EarnQuote{Provider: providers[i], Segment: segments[i], Apy: apys[i], TvlUsd: tvls[i], Variants: variants[i]})
			}
			return f, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the fixings of the earn benchmark of %s: %w", date.Format(time.DateOnly), err)
	}
	return fixings, nil
}

const earnFixingColumns = "day, segment, revision, time, median, tvl_weighted, provider_count, tvl_usd, methodology_version, supersedes, reason, simulated"

// scanEarnFixing scans the columns of a fixing, and those after them into more.
func scanEarnFixing(rows driver.Rows, more ...any) (*eventsv1.EarnFixing, error) {
	f := &eventsv1.EarnFixing{}
	var date, end time.Time
	err := rows.Scan(append([]any{&date, &f.Segment, &f.Revision, &end, &f.Median, &f.TvlWeighted, &f.ProviderCount, &f.TvlUsd,
		&f.MethodologyVersion, &f.Supersedes, &f.Reason, &f.Simulated}, more...)...)
	f.Date, f.Time = date.Format(time.DateOnly), end.UnixNano()
	return f, err
}
