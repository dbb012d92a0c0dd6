package imports

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
)

const (
	// maxRatio is how far the closes of a file may be from what is known, as the median of their ratios: more is another market,
	// another currency or another unit.
	maxRatio = 1.5
	// neighbouring is how far from a candle's end what is known may lie.
	neighbouring = 7 * 24 * time.Hour
)

// comparison is of a market's closes with what is known.
type comparison struct {
	// compared prices, 0 if nothing is known near to any of them.
	compared int
	// ratio is the median of the file's price to the known one; file and known are the prices that have it, at a time, with what.
	ratio, file, known float64
	at                 int64
	with               string
}

// far reports whether the prices are too far from what is known.
func (c comparison) far() bool { return c.compared > 0 && (c.ratio > maxRatio || c.ratio < 1/maxRatio) }

// String names both numbers.
func (c comparison) String() string {
	return fmt.Sprintf("its closes are %.4g times what is known, as the median of %d: %.8g in the file, %.8g by %s, near %s",
		c.ratio, c.compared, c.file, c.known, c.with, at(c.at*int64(time.Second)))
}

// knownPrices reads what the tables have of prices.
type knownPrices struct{ store *history.Store }

// compare compares the closes of a market with those of the same market that are known, else with the price of its coin in USD.
func (k knownPrices) compare(ctx context.Context, of *surveyed) (comparison, error) {
	from, to := time.Unix(0, of.first).Add(-neighbouring), time.Unix(0, of.last).Add(neighbouring+24*time.Hour)
	same, err := k.market(ctx, of.market, from, to)
	if err != nil {
		return comparison{}, err
	}
	if c := compare(of.closes, same, nil, "its candles in the log"); c.compared > 0 {
		return c, nil
	}
	coin, err := k.asset(ctx, of.coinID, from, to)
	if err != nil || len(coin) == 0 {
		return comparison{}, err
	}
	quote, err := k.quote(ctx, of.quoteID, from, to)
	if err != nil {
		return comparison{}, err
	}
	return compare(of.closes, coin, quote, "the price of "+of.coinID+" in USD"), nil
}

// compare compares prices with the nearest known ones; rates convert the prices, nil does not.
func compare(closes, known, rates []point, with string) comparison {
	var all []comparison
	for _, p := range closes {
		price := p.price
		if rates != nil {
			rate, ok := nearest(rates, p.at)
			if !ok {
				continue
			}
			price *= rate
		}
		if value, ok := nearest(known, p.at); ok && value > 0 {
			all = append(all, comparison{ratio: price / value, file: price, known: value, at: p.at, with: with})
		}
	}
	if len(all) == 0 {
		return comparison{}
	}
	slices.SortFunc(all, func(a, b comparison) int { return cmp.Compare(a.ratio, b.ratio) })
	median := all[len(all)/2]
	median.compared = len(all)
	return median
}

// nearest finds the price that is nearest in time, if it is near.
func nearest(sorted []point, to int64) (float64, bool) {
	i, _ := slices.BinarySearchFunc(sorted, to, func(p point, at int64) int { return cmp.Compare(p.at, at) })
	best, distance := 0.0, int64(math.MaxInt64)
	for _, j := range []int{i - 1, i} {
		if j >= 0 && j < len(sorted) {
			if d := max(sorted[j].at-to, to-sorted[j].at); d < distance {
				best, distance = sorted[j].price, d
			}
		}
	}
	return best, distance <= int64(neighbouring/time.Second)
}

// market reads the closes of a market's candles of the past, the last of each hour.
func (k knownPrices) market(ctx context.Context, m *market, from, to time.Time) ([]point, error) {
	return k.points(ctx, `SELECT max(ends) AS ended, argMax(close, (ends, seconds)) FROM (
			SELECT toInt64(toUnixTimestamp(start)) + seconds AS ends, seconds, toFloat64(close) AS close FROM backfill FINAL
			WHERE coin_id = ? AND venue = ? AND symbol = ? AND start >= toDateTime(?) AND start < toDateTime(?) AND NOT withdrawn)
		GROUP BY intDiv(ends, 3600) ORDER BY ended`, m.coinID, m.venue, m.symbol, from.Unix(), to.Unix())
}

// asset reads the closes of a coin in USD, live or of the past, the last of each hour.
func (k knownPrices) asset(ctx context.Context, coinID string, from, to time.Time) ([]point, error) {
	return k.points(ctx, `SELECT max(ends) AS ended, argMax(close, (ends, seconds)) FROM (
			SELECT toInt64(toUnixTimestamp(start)) + seconds AS ends, seconds, close FROM past_candles FINAL
			WHERE coin_id = ? AND priced AND start >= toDateTime(?) AND start < toDateTime(?)
			UNION ALL
			SELECT toInt64(toUnixTimestamp(start)) + 60, toUInt32(0), close FROM candles_1m FINAL WHERE coin_id = ? AND start >= toDateTime(?) AND start < toDateTime(?))
		GROUP BY intDiv(ends, 3600) ORDER BY ended`, coinID, from.Unix(), to.Unix(), coinID, from.Unix(), to.Unix())
}

// quote reads what a quote asset cost in USD. A stablecoin of the dollar of which nothing is known counts as one.
func (k knownPrices) quote(ctx context.Context, quoteID string, from, to time.Time) ([]point, error) {
	one := []point{{from.Unix(), 1}}
	for at := from; at.Before(to); at = at.Add(neighbouring) {
		one = append(one, point{at.Unix(), 1})
	}
	if quoteID == schemas.USD {
		return one, nil
	}
	if _, fiat := schemas.Coins().Fiat(quoteID); fiat {
		rates, err := past.DayRates(ctx, k.store, "fixings_usd", []string{quoteID}, from, to)
		if err != nil {
			return nil, err
		}
		points := []point{}
		for _, r := range rates {
			points = append(points, point{r.Day.Unix(), r.USD})
		}
		slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
		return points, nil
	}
	points, err := k.asset(ctx, quoteID, from, to)
	if coin, _ := schemas.Coins().ByID(quoteID); len(points) == 0 && coin.Peg == schemas.USD {
		return one, err
	}
	return points, err
}

func (k knownPrices) points(ctx context.Context, query string, args ...any) ([]point, error) {
	points, err := history.Select(ctx, k.store, query, args, func(rows driver.Rows) (p point, err error) {
		err = rows.Scan(&p.at, &p.price)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading known prices: %w", err)
	}
	return points, nil
}
