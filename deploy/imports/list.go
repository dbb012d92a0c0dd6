package imports

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/stream/history"
)

// ListLine is a market of a file that was imported.
type ListLine struct {
	Name     string    `json:"name"`
	SHA256   string    `json:"sha256"`
	Format   string    `json:"format"`
	Venue    string    `json:"venue"`
	Symbol   string    `json:"symbol"`
	Coin     string    `json:"coin"`
	Interval string    `json:"interval"`
	Rows     uint64    `json:"rows"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	// BadRows are of the whole file.
	BadRows  uint64    `json:"badRows"`
	Imported time.Time `json:"imported"`
	Replaces string    `json:"replaces,omitempty"`
	// Whole means that all markets of the file were imported.
	Whole bool `json:"whole"`
}

// List hands over what the tables have of imported files, the newest last.
func List(ctx context.Context, store *history.Store, emit func(line any) error) error {
	lines, err := history.Select(ctx, store, `SELECT name, file, format, venue, symbol, coin_id, seconds, rows, first_start, last_start, bad_rows, import_time, replaces,
			toBool(count() OVER (PARTITION BY file) >= markets)
		FROM imports FINAL ORDER BY import_time, name, venue, symbol`, nil, func(rows driver.Rows) (l ListLine, err error) {
		var seconds uint32
		err = rows.Scan(&l.Name, &l.SHA256, &l.Format, &l.Venue, &l.Symbol, &l.Coin, &seconds, &l.Rows, &l.First, &l.Last, &l.BadRows, &l.Imported, &l.Replaces, &l.Whole)
		l.First, l.Last, l.Imported, l.Interval = l.First.UTC(), l.Last.UTC(), l.Imported.UTC(), adapter.Interval(time.Duration(seconds)*time.Second)
		return l, err
	})
	if err != nil {
		return fmt.Errorf("reading the imported files: %w", err)
	}
	for _, l := range lines {
		if err := emit(l); err != nil {
			return err
		}
	}
	return nil
}
