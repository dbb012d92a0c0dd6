package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/native"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// statedCandles is a batch of a venue's minutes of 50 markets, from offset on, with the closing price given.
func statedCandles(offset int64, close string) *rows.Batch {
	const markets, minutes = 50, 1000
	b := &rows.Batch{}
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for market := range int64(markets) {
		base := fmt.Sprintf("COIN%d", market)
		for minute := range int64(minutes) {
			start := at.Add(time.Duration(minute) * time.Minute)
			b.Add(rows.Place{Topic: schemas.TopicBackfillRaw, Offset: offset + market*minutes + minute}, &eventsv1.BackfillRecord{
				Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{Candle: &eventsv1.BackfillCandle{
					Venue: "kraken", Symbol: base + "USD", Base: base, Quote: "USD", Start: start.UnixNano(), Interval: 60,
					Open: "1.5", High: fmt.Sprintf("%d.25", 2+minute), Low: "1", Close: close, Volume: "12.5", IngestTime: start.UnixNano(),
				}},
			})
		}
	}
	return b
}

// BenchmarkStatements shows what it costs to look for restatements in a batch of 50,000 candles, beside inserting it: of candles that are
// new, of those that are there with the same values, and of those that are there with others.
func BenchmarkStatements(b *testing.B) {
	measure := func(name string, before *rows.Batch, run func(*history.Store, *shadow.Statements, *rows.Batch) error) {
		b.Run(name, func(b *testing.B) {
			store := newStore(b)
			if before != nil {
				if err := before.Insert(b.Context(), store, ""); err != nil {
					b.Fatal(err)
				}
			}
			statements := shadow.Of(store).NewStatements()
			batch := statedCandles(1<<20, "1.75")
			for b.Loop() {
				if err := run(store, statements, batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(batch.Len()*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	compare := func(want int) func(*history.Store, *shadow.Statements, *rows.Batch) error {
		return func(_ *history.Store, statements *shadow.Statements, batch *rows.Batch) error {
			return batch.Stated(func(_ schemas.Topic, table schemas.Table, r native.Rows) error {
				restated, err := statements.Restated(b.Context(), r, table.Stated)
				if err == nil && len(restated) != want {
					err = fmt.Errorf("got %d restatements, want %d", len(restated), want)
				}
				return err
			})
		}
	}
	measure("insert", nil, func(store *history.Store, _ *shadow.Statements, batch *rows.Batch) error {
		return batch.Insert(b.Context(), store, "")
	})
	measure("compare/new", nil, compare(0))
	measure("compare/same", statedCandles(0, "1.75"), compare(0))
	measure("compare/other", statedCandles(0, "1.25"), compare(50_000))
}
