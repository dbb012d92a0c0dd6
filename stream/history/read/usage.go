package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream/history"
)

// DayUsage is what a budget used on a day (UTC).
type DayUsage struct {
	Day time.Time
	// Requests are all that were counted, Charts those of them for charts.
	Requests, Charts uint64
}

// Usage reads what a budget used on each day from one to another, both included; a day without use is left out.
func (r Reader) Usage(ctx context.Context, budget string, from, to time.Time) ([]DayUsage, error) {
	days, err := history.Select(ctx, r.store, `SELECT day, sum(requests), sum(charts) FROM usage FINAL
		WHERE budget = ? AND day >= toDate(?) AND day <= toDate(?) GROUP BY day ORDER BY day`,
		[]any{budget, from.UTC().Format(time.DateOnly), to.UTC().Format(time.DateOnly)},
		func(rows driver.Rows) (d DayUsage, err error) {
			err = rows.Scan(&d.Day, &d.Requests, &d.Charts)
			return d, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the usage of %s: %w", budget, err)
	}
	return days, nil
}
