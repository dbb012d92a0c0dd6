package read

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
)

// RateQuery says which rates are read, and of when. Rates that another source reports itself (shadowed), and those of no coin
// or category, are never among them.
type RateQuery struct {
	// CoinIDs, Categories and Providers are any of which; nil for all.
	CoinIDs, Categories, Providers []string
	// From is included, To is not.
	From, To time.Time
	// Step is 0 for each answer of a source, an hour or a day for what the rates did in one.
	Step time.Duration
	// Limit is how many are read, the newest.
	Limit int
	// Written is the end of the last minute of which what was folded counts; zero for all. Then of hours and days too only those count that had ended.
	// Of prices of exchanges it is up to when they had been published.
	Written time.Time
}

// ended is the end of the steps that count, of hours or days.
func (q RateQuery) ended() time.Time {
	if to := q.Written.Truncate(q.Step); !q.Written.IsZero() && to.Before(q.To) {
		return to
	}
	return q.To
}

// published is up to when prices count, Unix nanoseconds.
func (q RateQuery) published() int64 {
	if q.Written.IsZero() {
		return math.MaxInt64
	}
	return q.Written.UnixNano()
}

// RatePoint is what a rate was, or what it did in an hour or a day. Rates are APYs in percent.
type RatePoint struct {
	Provider, Source, Category, CoinID, Symbol, Pool, ProviderSymbol, Chain string
	// Start is when the answer was read, or when the hour or day begins.
	Start                        time.Time
	Open, High, Low, Close, Mean float64
	// N is of how many answers.
	N uint32
	// APR is of a single answer, without compounding; nil in a roll-up.
	APR       *float64
	TVL       *float64
	Simulated bool
	Origin    schemas.Origin
}

// RateHistory reads single rates, the newest first, of equal times by provider, pool and category. Answers are kept for 30
// days, hours and days for five years. Whatever the step, it is one series: what was read live, and in the hours (in steps of
// a day the days) in which a rate was not read live what its source reported of it afterwards.
func (r Reader) RateHistory(ctx context.Context, q RateQuery) ([]RatePoint, error) {
	var query string
	var args []any
	switch q.Step {
	case 0:
		query, args = q.answers()
	case rateHour, rateDay:
		var where string
		where, args = q.conditions()
		query = `SELECT provider, source, category, coin_id, symbol, pool, provider_symbol, chain, toDateTime64(start, 9, 'UTC'), open, high, low, close, mean, n,
				CAST(NULL AS Nullable(Float64)), tvl_usd, simulated, origin
			FROM ` + rolledRates(q.Step) + ` WHERE ` + where + ` AND start >= ? AND start < ?
			ORDER BY start DESC, provider, pool, category LIMIT ?`
		args = append(args, q.From, q.ended(), q.Limit)
	default:
		return nil, fmt.Errorf("reading rates: a step of %s is neither an answer, nor an hour or a day", q.Step)
	}
	points, err := history.Select(ctx, r.store, query, args, scanRatePoint)
	if err != nil {
		return nil, fmt.Errorf("reading rates: %w", err)
	}
	return points, nil
}

// rolledRates is the view of roll-ups of a length.
func rolledRates(step time.Duration) string {
	if step == rateHour {
		return "rates_rolled_1h"
	}
	return "rates_rolled_1d"
}

func scanRatePoint(rows driver.Rows) (p RatePoint, err error) {
	var origin string
	err = rows.Scan(&p.Provider, &p.Source, &p.Category, &p.CoinID, &p.Symbol, &p.Pool, &p.ProviderSymbol, &p.Chain, &p.Start,
		&p.Open, &p.High, &p.Low, &p.Close, &p.Mean, &p.N, &p.APR, &p.TVL, &p.Simulated, &origin)
	p.Start, p.Origin = p.Start.UTC(), schemas.Origin(origin)
	return p, err
}

// conditions are those of which rates are read.
func (q RateQuery) conditions() (where string, args []any) {
	where, args = q.attached()
	return where + " AND shadowed = ''", args
}

// attached are the conditions of which rates are read, shadowed ones among them.
func (q RateQuery) attached() (where string, args []any) {
	all := []string{"coin_id != '' AND category != ''"}
	for _, c := range []struct {
		column string
		any    []string
	}{{"coin_id", q.CoinIDs}, {"category", q.Categories}, {"provider", q.Providers}} {
		switch {
		case c.any == nil:
		case len(c.any) == 0:
			all = append(all, "false")
		default: // a list that the primary key can be searched by
			all = append(all, c.column+" IN (?)")
			args = append(args, c.any)
		}
	}
	return strings.Join(all, " AND "), args
}

// RateSeries is what a provider's rates of a coin and a category did, oldest first.
type RateSeries struct {
	Provider, CoinID, Symbol, Category string
	Simulated                          bool
	Points                             []RateSeriesPoint
}

// RateSeriesPoint is the mean of a provider's rates in a step, by the TVL of each (all alike where none reports a TVL):
// of their first, greatest, least and last, and of their means. TVL is the sum, nil where none reports one.
type RateSeriesPoint struct {
	Start                        time.Time
	Open, High, Low, Close, Mean float64
	TVL                          *float64
	// Rates is of how many.
	Rates int
}

// RateSeries reads series for charts, by provider, then coin, then category; of each the newest q.Limit points. Within steps
// shorter than an hour a rate that is not reported stays as it was; within hours and days only what was reported counts.
func (r Reader) RateSeries(ctx context.Context, q RateQuery) ([]RateSeries, error) {
	if q.Step < rateHour {
		return r.sampledRates(ctx, q)
	}
	if q.Step != rateHour && q.Step != rateDay {
		return nil, fmt.Errorf("reading series of rates: a step of %s is neither below an hour, nor an hour or a day", q.Step)
	}
	type row struct {
		series RateSeries
		point  RateSeriesPoint
	}
	where, args := q.conditions()
	rows, err := history.Select(ctx, r.store, `SELECT provider, coin_id, any(symbol), category, max(simulated), start,
			`+weighted("open")+`, `+weighted("high")+`, `+weighted("low")+`, `+weighted("close")+`, `+weighted("mean")+`, if(count(tvl_usd) > 0, `+sorted("tvl_usd")+`, NULL), count()
		FROM (SELECT *, ifNull(tvl_usd, 0) AS weight FROM `+rolledRates(q.Step)+` WHERE `+where+` AND start >= ? AND start < ?)
		GROUP BY provider, coin_id, category, start ORDER BY start DESC LIMIT ? BY provider, coin_id, category`,
		append(args, q.From, q.To, q.Limit), func(rows driver.Rows) (r row, err error) {
			var n uint64
			err = rows.Scan(&r.series.Provider, &r.series.CoinID, &r.series.Symbol, &r.series.Category, &r.series.Simulated, &r.point.Start,
				&r.point.Open, &r.point.High, &r.point.Low, &r.point.Close, &r.point.Mean, &r.point.TVL, &n)
			r.point.Start, r.point.Rates = r.point.Start.UTC(), int(n)
			return r, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading series of rates: %w", err)
	}
	b := newSeriesBuilder()
	for _, r := range slices.Backward(rows) {
		b.add(r.series, r.point)
	}
	return b.list(), nil
}

// weighted is the mean of a column by weight, or of all alike where nothing has a weight. A sum of floats depends on its order: it goes from the least on.
func weighted(column string) string {
	return "if(" + sorted("weight") + " > 0, " + sorted(column+" * weight") + " / " + sorted("weight") + ", " + sorted(column) + " / count())"
}

func sorted(of string) string { return "arraySum(arraySort(groupArray(" + of + ")))" }

// seriesBuilder sorts points into series.
type seriesBuilder struct {
	byKey map[[3]string]*RateSeries
}

func newSeriesBuilder() *seriesBuilder { return &seriesBuilder{byKey: map[[3]string]*RateSeries{}} }

func (b *seriesBuilder) add(of RateSeries, p RateSeriesPoint) {
	key := [3]string{of.Provider, of.CoinID, of.Category}
	series := b.byKey[key]
	if series == nil {
		series = &of
		b.byKey[key] = series
	}
	series.Simulated = series.Simulated || of.Simulated
	series.Points = append(series.Points, p)
}

func (b *seriesBuilder) list() []RateSeries {
	all := make([]RateSeries, 0, len(b.byKey))
	for _, series := range b.byKey {
		all = append(all, *series)
	}
	slices.SortFunc(all, func(a, b RateSeries) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.CoinID, b.CoinID), strings.Compare(a.Category, b.Category))
	})
	return all
}

// entryColumns are read by scanEntry.
const entryColumns = `provider, source, category, coin_id, symbol, pool, provider_symbol, chain, name, apr, apy, method, reward_apy, tvl_usd, term,
	raw, raw_unit, compounding, ifNull(toString(min_amount), ''), ifNull(toString(max_amount), ''), lockup_days, notice_days, tiers.from, tiers.to, tiers.raw, served, refused, promo, payout,
	ifNull(toString(collateral_usd), ''), ifNull(toString(max_ltv), ''), tokens, event_time, interval_ns, time, heard, ended, unattached, shadowed, simulated, raw_offset, provider_name`

func scanEntry(rows driver.Rows) (*eventsv1.RateEntry, error) {
	reported := &eventsv1.Rate{}
	e := &eventsv1.RateEntry{Said: reported}
	var from, to, raw []string
	var event, at, received time.Time
	err := rows.Scan(&e.Provider, &e.Source, &e.Category, &e.CoinId, &e.Symbol, &e.Pool, &e.ProviderSymbol, &e.Chain, &e.Name,
		&e.Apr, &e.Apy, &e.Method, &e.RewardApy, &e.TvlUsd, &e.Term,
		&reported.Raw, &reported.RawUnit, &reported.Compounding, &reported.MinAmount, &reported.MaxAmount, &reported.LockupDays, &reported.NoticeDays, &from, &to, &raw, &reported.Served, &reported.Refused, &reported.Promo, &reported.Payout,
		&reported.CollateralUsd, &reported.MaxLtv, &reported.Tokens, &event, &reported.Interval, &at, &received, &e.Ended, &e.Unattached, &e.Shadowed, &e.Simulated, &e.Offset, &e.ProviderName)
	if err != nil {
		return nil, err
	}
	for i := range from {
		reported.Tiers = append(reported.Tiers, &eventsv1.RateTier{From: from[i], To: to[i], Raw: raw[i]})
	}
	e.Time, e.Heard = at.UnixNano(), received.UnixNano()
	reported.Source, reported.Project, reported.Chain, reported.Pool, reported.Symbol, reported.Name, reported.Term = e.Source, e.Provider, e.Chain, e.Pool, e.ProviderSymbol, e.Name, e.Term
	reported.EventTime, reported.IngestTime = event.UnixNano(), e.Heard
	return e, nil
}

// RatesSince is when the oldest rate of a query's coins, categories and providers is of, by its step, whatever its From, and its To unless minutes up to
// one count alone; zero where there is none. Single answers count of the days that are kept at the end of that minute, whole days.
func (r Reader) RatesSince(ctx context.Context, q RateQuery) (time.Time, error) {
	where, args := q.conditions()
	query := "SELECT toDateTime64(minOrNull(start), 9, 'UTC') FROM " + rolledRates(q.Step) + " WHERE " + where
	switch past, more := q.attached(); {
	case q.Step != 0 && q.Written.IsZero():
	case q.Step != 0:
		query, args = query+" AND start < ?", append(args, q.Written.Truncate(q.Step))
	default:
		live := ""
		if !q.Written.IsZero() {
			live = " AND time <= ? AND heard >= ?"
			since, err := r.store.KeptSince(ctx, "rates", q.Written)
			if err != nil {
				return time.Time{}, err
			}
			args = append(args, q.Written, since)
		}
		query = "SELECT minOrNull(first) FROM (SELECT minOrNull(heard) AS first FROM rates WHERE " + where + live +
			" UNION ALL SELECT minOrNull(event_time) FROM rates_past_attached WHERE " + past + ")"
		args = append(args, more...)
	}
	var first *time.Time
	if err := r.store.Conn().QueryRow(ctx, query, args...).Scan(&first); err != nil {
		return time.Time{}, fmt.Errorf("reading since when there are rates: %w", history.Unavailable(err))
	}
	if first == nil {
		return time.Time{}, nil
	}
	return first.UTC(), nil
}

// OldestYield is from when on what the rates did in steps of a length is kept at a time of the log, of single answers with step 0; zero where nothing was
// dropped yet.
func (r Reader) OldestYield(ctx context.Context, step time.Duration, at time.Time) (time.Time, error) {
	table, column := "rates", "time"
	switch step {
	case rateHour:
		table, column = "rates_1h", "start"
	case rateDay:
		table, column = "rates_1d", "start"
	}
	kept, err := r.store.KeptSince(ctx, table, at)
	if err != nil {
		return time.Time{}, err
	}
	var first *time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT minOrNull("+column+") FROM "+table).Scan(&first); err != nil {
		return time.Time{}, fmt.Errorf("reading from when on rates are kept: %w", history.Unavailable(err))
	}
	if first == nil || first.After(kept.Add(rateDay)) {
		return time.Time{}, nil
	}
	return kept, nil
}

// attachedWithin is how long before and after a minute what rates are attached to must be what it is now, so that it certainly was in that minute, and when
// it was read.
const attachedWithin = 5 * time.Minute

// ToldSince reads what keeps what a source told of the past from being what it was when no more had been written than is named, of the coins, categories and
// providers of a query, and of its time: the offset of the last record that told more, -1 for none; and from when on the rates were attached to what they are
// now, by which what was told is attached, zero where they were then.
func (r Reader) ToldSince(ctx context.Context, q RateQuery, of ServedSeries, now time.Time) (told int64, attached time.Time, err error) {
	scope, args := q.told(time.Unix(0, of.Written).UTC())
	var rows uint64
	var last *int64
	if err := r.store.Conn().QueryRow(ctx, "SELECT count(), maxOrNull(log_offset) FROM rates_past WHERE "+scope, args...).Scan(&rows, &last); err != nil {
		return -1, attached, fmt.Errorf("reading what was told of the past of rates: %w", history.Unavailable(err))
	}
	if rows == 0 {
		return -1, attached, nil
	}
	if last != nil && *last > of.Past {
		return *last, attached, nil
	}
	if attached, err = r.attachedSince(ctx, scope, args, of, time.Unix(0, of.Written).UTC().Add(attachedWithin)); err == nil && !attached.IsZero() {
		attached, err = r.attachedSince(ctx, scope, args, of, now)
	}
	return -1, attached, err
}

// told are the conditions of what was told of the past in the time of a query, of pools that are, or were about a minute, of its coins, categories and providers.
func (q RateQuery) told(minute time.Time) (where string, args []any) {
	of, more := q.attached()
	args = slices.Concat([]any{q.From, q.To}, more, more, []any{minute.Add(-rateRepeats), minute.Add(attachedWithin)}, more)
	return `event_time >= ? AND event_time < ? AND (source, pool) IN (SELECT source, pool FROM rates_past WHERE ` + of + ` UNION ALL SELECT source, pool FROM rates_now WHERE ` + of + `
		UNION ALL SELECT source, pool FROM rates WHERE time > ? AND time <= ? AND ` + of + ")", args
}

// attachedSince reads from when on all rates of the pools of a scope were attached to what they are now, by the rows of a minute and of before, and those until
// a time; zero where they were all along.
func (r Reader) attachedSince(ctx context.Context, scope string, args []any, of ServedSeries, until time.Time) (time.Time, error) {
	minute := time.Unix(0, of.Written).UTC()
	const attachment = "(coin_id, symbol, provider, provider_symbol, chain, simulated, ended)"
	var since *time.Time
	err := r.store.Conn().QueryRow(ctx, `WITH (SELECT groupUniqArray((source, pool)) FROM rates_past WHERE `+scope+`) AS pools
		SELECT maxOrNull(since) FROM (
			SELECT n.source, n.pool, n.category, countIf(r.source != '' AND r.time <= ?) AS early, countIf(r.source != '' AND r.time <= ? AND r.attached != n.attached) AS other,
				greatest(maxIf(r.time, r.source != '' AND r.attached != n.attached) + toIntervalSecond(?), minIf(r.time, r.source != '')) AS since
			FROM (SELECT source, pool, category, `+attachment+` AS attached, log_offset FROM rates_now FINAL WHERE has(pools, (source, pool))) AS n
			LEFT JOIN (SELECT source, pool, category, `+attachment+` AS attached, time FROM rates FINAL WHERE has(pools, (source, pool)) AND time > ? AND time <= ?) AS r
				ON n.source = r.source AND n.pool = r.pool AND n.category = r.category
			GROUP BY n.source, n.pool, n.category HAVING other > 0 OR early = 0 AND max(n.log_offset) > ?)`,
		slices.Concat(args, []any{minute.Add(attachedWithin), minute.Add(attachedWithin), int64((rateRepeats + 2*time.Minute) / time.Second), minute.Add(-rateRepeats), until, of.Written})...).Scan(&since)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading what rates were attached to: %w", history.Unavailable(err))
	}
	return orZero(since), nil
}

// answers is the statement that reads single rates, the newest first, and its arguments.
func (q RateQuery) answers() (statement string, args []any) {
	// Whether a rate was read live in an hour is judged by the whole hour and by all that was read of it, also by what another
	// source reports itself: so the borders of a query change nothing between them, and steps of an hour agree.
	first, next := q.From.Truncate(rateHour), q.To.Add(rateHour-1).Truncate(rateHour)
	live, liveArgs := q.conditions()
	past, pastArgs := q.attached()
	read, readArgs := RateQuery{CoinIDs: q.CoinIDs, Categories: q.Categories}.attached()
	// An entry is written again after it was reported: the first row of an answer is its own. It is written within the
	// minute that the answer came in, or the next.
	answered := ` AND NOT ended AND time >= ? AND time < ? + toIntervalMinute(2) AND heard >= ? AND heard < ?`
	if !q.Written.IsZero() {
		answered += fmt.Sprintf(" AND time <= toDateTime(%d, 'UTC')", q.Written.Unix())
	}
	statement = `SELECT * FROM (
			SELECT provider, source, category, coin_id, symbol, pool, provider_symbol, chain, heard AS at, apy AS open, apy AS high, apy AS low, apy AS close, apy AS mean, toUInt32(1) AS n,
				toNullable(apr) AS yearly, tvl_usd, simulated, 'live' AS origin
			FROM (SELECT * FROM rates FINAL WHERE ` + live + answered + ` ORDER BY time LIMIT 1 BY source, category, pool, heard)
			UNION ALL
			SELECT provider, source, category, coin_id, symbol, pool, provider_symbol, chain, event_time, apy, apy, apy, apy, apy, toUInt32(1), toNullable(apr), tvl_usd, simulated, 'backfill'
			FROM rates_past_attached WHERE ` + past + ` AND event_time >= ? AND event_time < ?
				AND (source, category, pool, toStartOfHour(event_time)) NOT IN (SELECT source, category, pool, toStartOfHour(heard) FROM rates FINAL WHERE ` + read + answered + `)
		) ORDER BY at DESC, provider, pool, category, source LIMIT ?`
	for _, more := range [][]any{liveArgs, {q.From, q.To, q.From, q.To}, pastArgs, {q.From, q.To}, readArgs, {first, next, first, next}, {q.Limit}} {
		args = append(args, more...)
	}
	return statement, args
}

// rateHour and rateDay are the steps of roll-ups.
const (
	rateHour = time.Hour
	rateDay  = day
)
