package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
)

// GlobalPast is the whole market at a full hour, as far as a source reported that of its largest coins afterwards.
type GlobalPast struct {
	Time   time.Time
	Source string
	// Sums over the coins that were reported, USD, and the shares of bitcoin and ether in the sum of caps, percent.
	TotalMarketCap, TotalVolume24h, BTCDominance, ETHDominance float64
	Coins                                                      int
	// Told is what the source reported last of the same coins' market caps, USD.
	Told float64
	// Coverage is what the same coins hold now of the newest total market cap that was measured, percent; nil without one.
	Coverage *float64
}

// GlobalPast reads the full hours in (from, to], oldest first. Where several sources reported an hour, the one counts that
// covers most.
func (r Reader) GlobalPast(ctx context.Context, from, to time.Time) ([]GlobalPast, error) {
	if err := checkSeries(from, to, time.Hour); err != nil {
		return nil, fmt.Errorf("reading the past of the market: %w", err)
	}
	past, err := history.Select(ctx, r.store, `SELECT time, toString(source), total_market_cap, total_volume_24h, btc_dominance, eth_dominance, coins, told, coverage
		FROM global_past WHERE time > ? AND time <= ? ORDER BY time, told DESC, coins DESC, source LIMIT 1 BY time`, []any{from, to},
		func(rows driver.Rows) (p GlobalPast, err error) {
			var coins uint64
			err = rows.Scan(&p.Time, &p.Source, &p.TotalMarketCap, &p.TotalVolume24h, &p.BTCDominance, &p.ETHDominance, &coins, &p.Told, &p.Coverage)
			p.Time, p.Coins = p.Time.UTC(), int(coins)
			return p, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the past of the market: %w", err)
	}
	return past, nil
}

// DefiPast is what was locked in all of DeFi, as a source reported it afterwards by its own count.
type DefiPast struct {
	Time   time.Time
	Source string
	// TotalTVL is in USD.
	TotalTVL float64
	// Told is the newest total that the source reported, USD.
	Told float64
	// Coverage is the newest total that the source reported as a share of the newest one that was measured, percent, at most 100;
	// nil without one.
	Coverage *float64
}

// DefiPast reads what was locked in (from, to], oldest first, as far as that was before the first minute that was measured: a
// series that changes its count for a while in between would show falls that there were not. Where several sources reported a time,
// the one counts that covers most.
func (r Reader) DefiPast(ctx context.Context, from, to time.Time) ([]DefiPast, error) {
	if err := checkSeries(from, to, day); err != nil {
		return nil, fmt.Errorf("reading the past of DeFi: %w", err)
	}
	past, err := history.Select(ctx, r.store, `SELECT time, toString(source), total_tvl, told, coverage FROM defi_told WHERE time > ? AND time <= ? AND NOT measured
		ORDER BY time, told DESC, source LIMIT 1 BY time`, []any{from, to},
		func(rows driver.Rows) (p DefiPast, err error) {
			err = rows.Scan(&p.Time, &p.Source, &p.TotalTVL, &p.Told, &p.Coverage)
			p.Time = p.Time.UTC()
			return p, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the past of DeFi: %w", err)
	}
	return past, nil
}

// ReportedSince reads when sources were last read, after an instant, to report of the past of coins' markets, or if ofDefi of all of DeFi; zero if they were not. Times are the
// full hours, or the moments of DeFi, in (from, to] of which anything was ever reported, oldest first: what is reported later takes the place of what was before.
func (r Reader) ReportedSince(ctx context.Context, ofDefi bool, from, to, after time.Time) (last time.Time, times []time.Time, err error) {
	table, at := "coin_past", "toStartOfHour(time)"
	if ofDefi {
		table, at = "defi_past", "time"
	}
	var newest *time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT maxOrNull(ingest_time) FROM "+table+" WHERE ingest_time > fromUnixTimestamp64Nano(toInt64(?), 'UTC')", after.UnixNano()).Scan(&newest); err != nil {
		return last, nil, fmt.Errorf("reading when the past was reported: %w", history.Unavailable(err))
	}
	times, err = history.Select(ctx, r.store, "SELECT DISTINCT toDateTime("+at+", 'UTC') AS at FROM "+table+" WHERE at > ? AND at <= ? ORDER BY at", []any{from, to}, func(rows driver.Rows) (at time.Time, err error) {
		err = rows.Scan(&at)
		return at.UTC(), err
	})
	if err != nil {
		return last, nil, fmt.Errorf("reading of when the past was reported: %w", err)
	}
	return orZero(newest), times, nil
}

// ReportedWritten reads up to which log time all is kept that sources reported; the zero time where nothing was ever written.
func (r Reader) ReportedWritten(ctx context.Context) (time.Time, error) {
	progress, err := r.store.Progress(ctx, schemas.TopicReferenceRaw, 0)
	if p, written := progress[0]; err == nil && written {
		return time.Unix(0, p.LogTime).UTC(), nil
	}
	return time.Time{}, err
}

// ReportedPart is a number that a source reported afterwards, with the record of reference.raw.v1 that has it.
type ReportedPart struct {
	// SourceID and CoinID are those of a coin; both are empty of all of DeFi.
	Source, SourceID, CoinID string
	// At is the hour that it counts for, Time the source's own; of DeFi they are the same.
	At, Time time.Time
	// Value is the coin's market cap or what was locked, Volume the coin's volume of 24 hours, USD.
	Value, Volume float64
	Partition     int32
	Offset        int64
}

func partOf(rows driver.Rows) (p ReportedPart, err error) {
	err = rows.Scan(&p.Source, &p.SourceID, &p.CoinID, &p.At, &p.Time, &p.Value, &p.Volume, &p.Partition, &p.Offset)
	p.At, p.Time = p.At.UTC(), p.Time.UTC()
	return p, err
}

// coinParts are what counts of each coin's hours.
const coinParts = `SELECT toString(source) AS source, source_id, argMin(p.coin_id, p.time) AS coin_id, toDateTime(toStartOfHour(p.time), 'UTC') AS at, min(p.time) AS time,
	argMin(assumeNotNull(p.market_cap), p.time) AS value, argMin(ifNull(p.volume_24h, 0), p.time) AS volume, argMin(log_partition, p.time) AS part, argMin(log_offset, p.time) AS place
	FROM coin_past AS p FINAL WHERE p.market_cap > 0 GROUP BY source, source_id, at`

// defiParts are what counts of all of DeFi.
const defiParts = `SELECT toString(source) AS source, '' AS source_id, '' AS coin_id, toDateTime(p.time, 'UTC') AS at, p.time AS time, assumeNotNull(p.total_tvl) AS value, toFloat64(0) AS volume,
	log_partition AS part, log_offset AS place FROM defi_past AS p FINAL WHERE p.total_tvl > 0`

// ReportedParts reads what the values of GlobalPast in (from, to] are made of, by hour, source and the source's id of the coin; if ofDefi those of DefiPast.
func (r Reader) ReportedParts(ctx context.Context, ofDefi bool, from, to time.Time) ([]ReportedPart, error) {
	parts := coinParts
	if ofDefi {
		parts = defiParts
	}
	found, err := history.Select(ctx, r.store, `SELECT source, source_id, coin_id, at, time, value, volume, part, place FROM (`+parts+`) WHERE at > ? AND at <= ? ORDER BY at, source, source_id`, []any{from, to}, partOf)
	if err != nil {
		return nil, fmt.Errorf("reading what was reported of the past: %w", err)
	}
	return found, nil
}

// NewestParts reads the newest that a source reported of each coin that it still reports, or of all of DeFi: what coverage compares with the newest total.
func (r Reader) NewestParts(ctx context.Context, ofDefi bool, source string) ([]ReportedPart, error) {
	parts := coinParts
	if ofDefi {
		parts = defiParts
	}
	found, err := history.Select(ctx, r.store, `SELECT source, source_id, coin_id, at, time, value, volume, part, place FROM (
		SELECT *, max(at) OVER (PARTITION BY source_id) AS told, max(at) OVER () AS newest FROM (`+parts+`) WHERE source = ?
	) WHERE at = told AND told > newest - toIntervalDay(2) ORDER BY source_id`, []any{source}, partOf)
	if err != nil {
		return nil, fmt.Errorf("reading the newest that was reported: %w", err)
	}
	return found, nil
}

// NewestTotal reads the newest total that was measured, USD: of the whole market, or what is locked in all of DeFi; and the end of its minute. The time is zero where there is none.
func (r Reader) NewestTotal(ctx context.Context, ofDefi bool) (at time.Time, total float64, err error) {
	statement := `SELECT time, total_market_cap FROM summaries WHERE total_market_cap > 0 ORDER BY time DESC, version DESC LIMIT 1`
	if ofDefi {
		statement = `SELECT time, total_tvl FROM defi WHERE total_tvl > 0 ORDER BY time DESC, version DESC LIMIT 1`
	}
	_, err = history.Select(ctx, r.store, statement, nil, func(rows driver.Rows) (struct{}, error) { return struct{}{}, rows.Scan(&at, &total) })
	if err != nil {
		return at, 0, fmt.Errorf("reading the newest total: %w", err)
	}
	return at.UTC(), total, nil
}

// ReportedRate is a rate of the past as a source reported it afterwards, with the record of rates.raw.v1 that has it.
type ReportedRate struct {
	// Time is the source's own, Reported when it was read.
	Time, Reported time.Time
	// APR and APY are percent per year.
	APR, APY float64
	// TVL is in USD; nil if it is not known.
	TVL       *float64
	Method    uint32
	Partition int32
	Offset    int64
}

// ReportedRates reads what a source reported afterwards of a pool in a category in [from, to), oldest first. A source that reports no category means that of the
// pool as it is now.
func (r Reader) ReportedRates(ctx context.Context, source, pool, category string, from, to time.Time) ([]ReportedRate, error) {
	found, err := history.Select(ctx, r.store, `SELECT event_time, ingest_time, apr, apy, tvl_usd, method, log_partition, log_offset FROM rates_past FINAL
		WHERE source = ? AND pool = ? AND category IN ('', ?) AND event_time >= ? AND event_time < ? ORDER BY event_time`,
		[]any{source, pool, category, from.UTC(), to.UTC()}, func(rows driver.Rows) (p ReportedRate, err error) {
			err = rows.Scan(&p.Time, &p.Reported, &p.APR, &p.APY, &p.TVL, &p.Method, &p.Partition, &p.Offset)
			p.Time, p.Reported = p.Time.UTC(), p.Reported.UTC()
			return p, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading what %s reported of the past of %s: %w", source, pool, err)
	}
	return found, nil
}
