package past

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
)

// startsIn is a condition on starts, and its arguments.
func startsIn(spans []Span) (condition string, args []any) {
	var within []string
	up := func(t time.Time) time.Time { return t.Add(time.Second - time.Nanosecond).Truncate(time.Second) } // starts are whole seconds
	for _, s := range spans {
		within = append(within, "start >= ? AND start < ?")
		args = append(args, up(s.From), up(s.To))
	}
	return "(" + strings.Join(within, " OR ") + ")", args
}

// marketCandles reads venues' own candles of coins; of all of them where none is named.
func (f *Fold) marketCandles(ctx context.Context, coinIDs []string, length time.Duration, spans []Span) ([]schemas.MarketCandle, error) {
	starts, args := startsIn(spans)
	of := "coin_id != ''"
	if coinIDs != nil {
		of, args = "coin_id IN (?)", append([]any{coinIDs}, args...)
	}
	candles, err := history.Select(ctx, f.store, `SELECT coin_id, quote_id, venue, symbol, start, toFloat64(open), toFloat64(high), toFloat64(low), toFloat64(close), volume, file != ''
		FROM backfill FINAL WHERE `+of+` AND `+starts+` AND seconds = ? AND NOT withdrawn`, append(args, uint32(length/time.Second)),
		func(rows driver.Rows) (c schemas.MarketCandle, err error) {
			err = rows.Scan(&c.CoinID, &c.QuoteID, &c.Venue, &c.Symbol, &c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.Imported)
			c.Start = c.Start.UTC()
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading back-filled candles of %v: %w", coinIDs, err)
	}
	return candles, nil
}

// converter is what converts the candles of some markets.
type converter struct {
	*schemas.Conversion
	// behind are the stablecoins that markets of each coin of CrossQuote are quoted in: by these it is converted in turn.
	behind map[string][]string
}

// conversion reads what converts the quotes of candles.
func (f *Fold) conversion(ctx context.Context, length time.Duration, candles []schemas.MarketCandle, spans []Span) (converter, error) {
	quotes := quotesOf(candles)
	var markets []schemas.MarketCandle
	var ids []string
	behind := map[string][]string{}
	// What converts a coin may itself be quoted in a stablecoin, which comes after it.
	for _, level := range []int{schemas.CrossQuote, schemas.DirectQuote} {
		var coins []string
		for _, id := range quotes {
			if quoteLevels()[id] == level {
				coins = append(coins, id)
			}
		}
		if len(coins) == 0 {
			continue
		}
		ids = append(ids, coins...)
		more, err := f.marketCandles(ctx, coins, length, spans)
		if err != nil {
			return converter{}, err
		}
		if level == schemas.CrossQuote {
			for _, m := range more {
				if quoteLevels()[m.QuoteID] == schemas.DirectQuote && !slices.Contains(behind[m.CoinID], m.QuoteID) {
					behind[m.CoinID] = append(behind[m.CoinID], m.QuoteID)
				}
			}
		}
		markets = append(markets, more...)
		quotes = quotesOf(more, quotes...)
	}
	live, err := f.quoteCandles(ctx, ids, length, spans)
	if err != nil {
		return converter{}, err
	}
	fixings, err := f.fixings(ctx, quotes, spans[0].From, spans[len(spans)-1].To)
	if err != nil {
		return converter{}, err
	}
	return converter{schemas.NewConversion(schemas.Coins(), length, live, markets, fixings), behind}, nil
}

// quoteLevels are the levels of the coins that convert others.
var quoteLevels = sync.OnceValue(func() map[string]int {
	levels := map[string]int{}
	for _, level := range []int{schemas.DirectQuote, schemas.CrossQuote} {
		for _, id := range quoteCoins(level) {
			levels[id] = level
		}
	}
	return levels
})

// quotesOf are the ids that candles are quoted in, and those given.
func quotesOf(candles []schemas.MarketCandle, ids ...string) []string {
	ids = slices.Clone(ids)
	seen := map[string]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	for _, c := range candles {
		if !seen[c.QuoteID] {
			seen[c.QuoteID] = true
			ids = append(ids, c.QuoteID)
		}
	}
	return ids
}

// quoteCandles reads the live candles of quote assets.
func (f *Fold) quoteCandles(ctx context.Context, coinIDs []string, length time.Duration, spans []Span) ([]schemas.QuoteCandle, error) {
	if len(coinIDs) == 0 {
		return nil, nil
	}
	starts, args := startsIn(spans)
	candles, err := history.Select(ctx, f.store, "SELECT coin_id, start, open, high, low, close, "+history.LiveCandles[length].Minutes+" FROM "+history.LiveCandles[length].Source+
		" WHERE coin_id IN (?) AND "+starts, append([]any{coinIDs}, args...),
		func(rows driver.Rows) (c schemas.QuoteCandle, err error) {
			var minutes uint16
			err = rows.Scan(&c.CoinID, &c.Start, &c.Open, &c.High, &c.Low, &c.Close, &minutes)
			c.Whole = int(minutes) == int(length/time.Minute)
			return c, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading candles of %v: %w", coinIDs, err)
	}
	return candles, nil
}

// fixings reads those of currencies that count in [from, to).
func (f *Fold) fixings(ctx context.Context, currencies []string, from, to time.Time) ([]schemas.Fixing, error) {
	var fiats []string
	for _, id := range currencies {
		if _, ok := schemas.Coins().Fiat(id); ok && id != schemas.USD {
			fiats = append(fiats, id)
		}
	}
	if len(fiats) == 0 {
		return nil, nil
	}
	return DayRates(ctx, f.store, "fixings_usd", fiats, from, to)
}

// DayRates reads from a view of daily rates in USD, fixings_usd or peg_rates with its parameter, those of currencies that count in [from, to).
func DayRates(ctx context.Context, s *history.Store, view string, currencies []string, from, to time.Time) ([]schemas.Fixing, error) {
	rates, err := history.Select(ctx, s,
		"SELECT currency, day, usd FROM "+view+" WHERE currency IN (?) AND day >= ? AND day < ?",
		[]any{
			currencies, from.UTC().AddDate(0, 0, -schemas.FixingDays).Format(time.DateOnly),
			to.UTC().AddDate(0, 0, 1).Format(time.DateOnly),
		},
		func(rows driver.Rows) (f schemas.Fixing, err error) {
			err = rows.Scan(&f.Currency, &f.Day, &f.USD)
			return f, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading daily rates of %v: %w", currencies, err)
	}
	return rates, nil
}

// Candles reads the back-filled candles of coins, of all where none is named, by coin id and oldest first: those of one
// length that start in one of the spans and ended by a time.
func Candles(ctx context.Context, s *history.Store, coinIDs []string, length time.Duration, spans []Span, closed time.Time) (map[string][]schemas.Candle, error) {
	starts, args := startsIn(spans)
	of := ""
	if coinIDs != nil {
		of, args = "coin_id IN (?) AND ", append([]any{coinIDs}, args...)
	}
	args = append(args, uint32(length/time.Second), closed.Add(-length))
	byCoin := map[string][]schemas.Candle{}
	rows, err := s.Conn().Query(ctx, `SELECT coin_id, start, open, high, low, close, volume, volume_usd, imported FROM past_candles FINAL
		WHERE `+of+starts+` AND seconds = ? AND start <= ? AND priced ORDER BY coin_id, start`, args...)
	if err != nil {
		return nil, fmt.Errorf("reading back-filled candles of %v: %w", coinIDs, history.Unavailable(err))
	}
	defer rows.Close()
	for rows.Next() {
		var coin string
		c := schemas.Candle{Minutes: int(length / time.Minute), Origin: schemas.OriginBackfill}
		var imported bool
		if err := rows.Scan(&coin, &c.Start, &c.Open, &c.High, &c.Low, &c.Close, &c.Volume, &c.VolumeUSD, &imported); err != nil {
			return nil, fmt.Errorf("reading back-filled candles of %v: %w", coinIDs, err)
		}
		if imported {
			c.Origin = schemas.OriginImport
		}
		c.Start = c.Start.UTC()
		c.Newest = c.Start.Add(length - time.Minute)
		byCoin[coin] = append(byCoin[coin], c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading back-filled candles of %v: %w", coinIDs, history.Unavailable(err))
	}
	return byCoin, nil
}

// Span is a time: from is in it, to is not.
type Span struct{ From, To time.Time }

// quoteCoins are the ids of the coins of a level of quotes.
func quoteCoins(level int) []string {
	coins := schemas.Coins()
	var ids []string
	for _, c := range coins.All() {
		if schemas.QuoteLevel(coins, schemas.Asset{ID: c.ID}) == level {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
