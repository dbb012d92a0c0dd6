package read

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream/history"
)

// defiMetrics are the figures of DeFi whose past is read, and their columns.
var defiMetrics = map[string]string{
	"defi_tvl": "total_tvl", "lending_tvl": "lending_tvl", "staking_tvl": "staking_tvl", "borrowing_tvl": "borrowing_tvl",
	"lending_apy": "lending_apy", "staking_apy": "staking_apy", "borrow_apy": "borrow_apy",
}

// FigurePoint is a figure as it was at the end of a minute.
type FigurePoint struct {
	Time  time.Time
	Value float64
}

// DefiSeries reads what a metric of DeFi was in (from, to], oldest first: of each step the last value that was known, with
// its own time. TVLs are in USD, APYs in percent.
func (r Reader) DefiSeries(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]FigurePoint, error) {
	column, err := defiColumn(metric)
	if err == nil {
		err = checkSeries(from, to, step)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", metric, err)
	}
	// The end of the last minute of a step is the beginning of the next step.
	points, err := history.Select(ctx, r.store, `SELECT time, assumeNotNull(`+column+`) FROM defi FINAL WHERE time > ? AND time <= ? AND `+column+` IS NOT NULL
		ORDER BY time DESC LIMIT 1 BY intDiv(toUnixTimestamp(time) - 1, ?)`,
		[]any{from, to, int64(step / time.Second)}, func(rows driver.Rows) (p FigurePoint, err error) {
			err = rows.Scan(&p.Time, &p.Value)
			p.Time = p.Time.UTC()
			return p, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", metric, err)
	}
	slices.Reverse(points)
	return points, nil
}

// DefiOHLC reads what a metric of DeFi did in the minutes that ended in (from, to], where from is the beginning of a step, oldest first; a step under way
// as far as it has come, one in which it was not known not at all.
func (r Reader) DefiOHLC(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]SummaryOHLC, error) {
	column, err := defiColumn(metric)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", metric, err)
	}
	return r.figureOHLC(ctx, "defi", column, column+" IS NOT NULL", from, to, step)
}

func defiColumn(metric string) (string, error) {
	column, ok := defiMetrics[metric]
	if !ok {
		return "", fmt.Errorf("there is no metric %q of DeFi", metric)
	}
	return column, nil
}
