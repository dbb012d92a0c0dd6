package past

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
)

// Refolded is a candle of the past of a coin as it is folded now of what is there.
type Refolded struct {
	Candle schemas.Candle
	// Markets are the venues' own candles that it is folded of, by venue, the one that votes first.
	Markets []RefoldedMarket
}

// RefoldedMarket is a venue's own candle of a market, and its record in backfill.raw.v1.
type RefoldedMarket struct {
	schemas.MarketCandle
	Partition int32
	Offset    int64
	// Rate is what one unit of the market's quote cost in USD in the interval; nil if it is not known.
	Rate *schemas.OHLC
}

// Refold folds the candle of a coin of one length (a minute, an hour or a day) that begins at a start once more, of the candles of venues; false where there is
// none.
func Refold(ctx context.Context, store *history.Store, coinID string, length time.Duration, start time.Time) (again Refolded, ok bool, err error) {
	f := &Fold{store: store}
	folded, candles, rates, err := f.refold(ctx, coinID, length, Span{start, start.Add(length)})
	if err != nil || len(folded) != 1 {
		return again, false, err
	}
	places, err := f.places(ctx, coinID, length, start)
	if err != nil {
		return again, false, err
	}
	again.Candle = folded[0]
	for _, c := range candles {
		m := RefoldedMarket{MarketCandle: c}
		if rate, known := rates.Rate(c.QuoteID, start); known {
			m.Rate = &rate
		}
		at := places[[2]string{c.Venue, c.Symbol}]
		m.Partition, m.Offset = at.partition, at.offset
		again.Markets = append(again.Markets, m)
	}
	return again, true, nil
}

// RefoldAll folds all candles of a coin of one length that begin in a span once more, oldest first.
func RefoldAll(ctx context.Context, store *history.Store, coinID string, length time.Duration, within Span) ([]schemas.Candle, error) {
	folded, _, _, err := (&Fold{store: store}).refold(ctx, coinID, length, within)
	return folded, err
}

// refold folds candles of a coin, and returns of what: the candles of venues in the order in which they vote, and what converted them.
func (f *Fold) refold(ctx context.Context, coinID string, length time.Duration, within Span) (folded []schemas.Candle, candles []schemas.MarketCandle, rates converter, err error) {
	spans := []Span{within}
	if candles, err = f.marketCandles(ctx, []string{coinID}, length, spans); err != nil || len(candles) == 0 {
		return nil, nil, rates, err
	}
	if rates, err = f.conversion(ctx, length, candles, spans); err != nil {
		return nil, nil, rates, err
	}
	return schemas.FoldMarkets(candles, length, rates.Rate), candles, rates, nil
}

// recordPlace is where in backfill.raw.v1 a venue's own candle is.
type recordPlace struct {
	venue, symbol string
	partition     int32
	offset        int64
}

// places reads where the venues' own candles of an interval are, by venue and symbol.
func (f *Fold) places(ctx context.Context, coinID string, length time.Duration, start time.Time) (map[[2]string]recordPlace, error) {
	rows, err := history.Select(ctx, f.store, "SELECT venue, symbol, log_partition, log_offset FROM backfill FINAL WHERE coin_id = ? AND seconds = ? AND start = ?",
		[]any{coinID, uint32(length / time.Second), start.UTC()}, func(rows driver.Rows) (p recordPlace, err error) {
			err = rows.Scan(&p.venue, &p.symbol, &p.partition, &p.offset)
			return p, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading where back-filled candles of %s are: %w", coinID, err)
	}
	places := map[[2]string]recordPlace{}
	for _, p := range rows {
		places[[2]string{p.venue, p.symbol}] = p
	}
	return places, nil
}
