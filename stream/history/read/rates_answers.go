package read

import "time"

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
	const answered = ` AND NOT ended AND time >= ? AND time < ? + toIntervalMinute(2) AND heard >= ? AND heard < ?`
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
