package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream/history"
)

// CurrenciesSince reads when a source first published a rate of each currency, by code.
func (r Reader) CurrenciesSince(ctx context.Context) (map[string]time.Time, error) {
	type first struct {
		code string
		at   time.Time
	}
	firsts, err := history.Select(ctx, r.store, `SELECT code, min(ingest_time) FROM fiat_rates ARRAY JOIN [base, quote] AS code GROUP BY code`, nil,
		func(rows driver.Rows) (f first, err error) {
			err = rows.Scan(&f.code, &f.at)
			return f, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the first dates of currencies: %w", err)
	}
	since := make(map[string]time.Time, len(firsts))
	for _, f := range firsts {
		since[f.code] = f.at.UTC()
	}
	return since, nil
}
