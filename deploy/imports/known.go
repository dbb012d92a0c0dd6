package imports

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
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

// comparedAtOnce is how many markets are compared at once: each statement reads their prices of an hour, of the whole time of them all.
const comparedAtOnce = 200

// compare compares the closes of each market with those of the same market that are known, else with the price of its coin in USD.
func (k knownPrices) compare(ctx context.Context, markets []*surveyed) ([]comparison, error) {
	var all []comparison
	for some := range slices.Chunk(markets, comparedAtOnce) {
		compared, err := k.compareSome(ctx, some)
		if err != nil {
			return nil, err
		}
		all = append(all, compared...)
	}
	return all, nil
}

func (k knownPrices) compareSome(ctx context.Context, markets []*surveyed) ([]comparison, error) {
	first, last := markets[0].first, markets[0].last
	for _, of := range markets {
		first, last = min(first, of.first), max(last, of.last)
	}
	from, to := time.Unix(0, first).Add(-neighbouring), time.Unix(0, last).Add(neighbouring+24*time.Hour)
	same, err := k.markets(ctx, markets, from, to)
	if err != nil {
		return nil, err
	}
	all, others := make([]comparison, len(markets)), []string{}
	for i, of := range markets {
		if all[i] = compare(of.closes, same[of.name()], nil, "its candles in the log"); all[i].compared == 0 {
			others = append(others, of.coinID, of.quoteID)
		}
	}
	if len(others) == 0 {
		return all, nil
	}
	assets, err := k.assets(ctx, others, from, to)
	if err != nil {
		return nil, err
	}
	quotes := map[string][]point{}
	for i, of := range markets {
		coin := assets[of.coinID]
		if all[i].compared > 0 || len(coin) == 0 {
			continue
		}
		if quotes[of.quoteID] == nil {
			if quotes[of.quoteID], err = k.quote(ctx, of.quoteID, assets, from, to); err != nil {
				return nil, err
			}
		}
		all[i] = compare(of.closes, coin, quotes[of.quoteID], "the price of "+of.coinID+" in USD")
	}
	return all, nil
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

// markets reads the closes of markets' candles of the past, the last of each hour, by the names of the markets.
func (k knownPrices) markets(ctx context.Context, markets []*surveyed, from, to time.Time) (map[string][]point, error) {
	names, coins, args := make([]string, len(markets)), []string{}, []any{}
	for i, of := range markets {
		names[i], coins, args = "(?, ?)", append(coins, of.coinID), append(args, of.venue, of.symbol)
	}
	return k.points(ctx, `SELECT concat(venue, ' ', symbol) AS name, max(ends) AS ended, argMax(close, (ends, seconds)) FROM (
			SELECT venue, symbol, toInt64(toUnixTimestamp(start)) + seconds AS ends, seconds, toFloat64(close) AS close FROM backfill FINAL
			WHERE coin_id IN (?) AND start >= toDateTime(?) AND start < toDateTime(?) AND NOT withdrawn AND (venue, symbol) IN (`+strings.Join(names, ", ")+`))
		GROUP BY name, intDiv(ends, 3600) ORDER BY ended`, append([]any{coins, from.Unix(), to.Unix()}, args...)...)
}

// assets reads the closes of coins in USD, live or of the past, the last of each hour, by coin id.
func (k knownPrices) assets(ctx context.Context, coins []string, from, to time.Time) (map[string][]point, error) {
	return k.points(ctx, `SELECT coin_id, max(ends) AS ended, argMax(close, (ends, seconds)) FROM (
			SELECT coin_id, toInt64(toUnixTimestamp(start)) + seconds AS ends, seconds, close FROM past_candles FINAL
			WHERE coin_id IN (?) AND priced AND start >= toDateTime(?) AND start < toDateTime(?)
			UNION ALL
			SELECT coin_id, toInt64(toUnixTimestamp(start)) + 60, toUInt32(0), close FROM candles_1m FINAL
			WHERE coin_id IN (?) AND start >= toDateTime(?) AND start < toDateTime(?))
		GROUP BY coin_id, intDiv(ends, 3600) ORDER BY ended`, coins, from.Unix(), to.Unix(), coins, from.Unix(), to.Unix())
}

// quote is what a quote asset cost in USD, never nil. A stablecoin of the dollar about which nothing is known counts as one.
func (k knownPrices) quote(ctx context.Context, quoteID string, assets map[string][]point, from, to time.Time) ([]point, error) {
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
	if coin, _ := schemas.Coins().ByID(quoteID); len(assets[quoteID]) == 0 && coin.Peg == schemas.USD {
		return one, nil
	}
	return append([]point{}, assets[quoteID]...), nil
}

func (k knownPrices) points(ctx context.Context, query string, args ...any) (map[string][]point, error) {
	type named struct {
		name string
		point
	}
	list, err := history.Select(ctx, k.store, query, args, func(rows driver.Rows) (n named, err error) {
		err = rows.Scan(&n.name, &n.at, &n.price)
		return n, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading known prices: %w", err)
	}
	points := map[string][]point{}
	for _, n := range list {
		points[n.name] = append(points[n.name], n.point)
	}
	return points, nil
}
