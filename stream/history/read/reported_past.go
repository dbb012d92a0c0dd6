package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream/history"
)

// GlobalPast is the whole market at a full hour, as far as a source reported that of its largest coins afterwards.
type GlobalPast struct {
	Time time.Time
	// Sums over the coins that were reported, USD, and the shares of bitcoin and ether in the sum of caps, percent.
	TotalMarketCap, TotalVolume24h, BTCDominance, ETHDominance float64
	Coins                                                      int
	// Coverage is what the same coins hold now of the newest total market cap that was measured, percent; nil without one.
	Coverage *float64
}

// GlobalPast reads the full hours in (from, to], oldest first. Where several sources reported an hour, the one counts that
// covers most.
func (r Reader) GlobalPast(ctx context.Context, from, to time.Time) ([]GlobalPast, error) {
	if err := checkSeries(from, to, time.Hour); err != nil {
		return nil, fmt.Errorf("reading the past of the market: %w", err)
	}
	past, err := history.Select(ctx, r.store, `SELECT time, total_market_cap, total_volume_24h, btc_dominance, eth_dominance, coins, coverage
		FROM global_past WHERE time > ? AND time <= ? ORDER BY time, coverage DESC, coins DESC, source LIMIT 1 BY time`, []any{from, to},
		func(rows driver.Rows) (p GlobalPast, err error) {
			var coins uint64
			err = rows.Scan(&p.Time, &p.TotalMarketCap, &p.TotalVolume24h, &p.BTCDominance, &p.ETHDominance, &coins, &p.Coverage)
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
	Time time.Time
	// TotalTVL is in USD.
	TotalTVL float64
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
	past, err := history.Select(ctx, r.store, `SELECT time, total_tvl, coverage FROM defi_told WHERE time > ? AND time <= ? AND NOT measured
		ORDER BY time, coverage DESC, source LIMIT 1 BY time`, []any{from, to},
		func(rows driver.Rows) (p DefiPast, err error) {
			err = rows.Scan(&p.Time, &p.TotalTVL, &p.Coverage)
			p.Time = p.Time.UTC()
			return p, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the past of DeFi: %w", err)
	}
	return past, nil
}
