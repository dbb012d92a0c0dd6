package imports

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// binanceTrades reads the trades and aggTrades of https://github.com/binance/binance-public-data, spot. Trades: id, price, size, size in the
// quote asset, time, whether the buyer was the maker, whether it was the best price. Aggregated ones: id, price, size, first and last
// trade, time, and the same two. Times are in milliseconds, and since 2025-01-01 in microseconds.
type binanceTrades struct {
	venue, symbol string
	// columns of a line, and the places of three of them.
	columns, atPrice, atSize, atTime int
	// from and to bound the times, Unix nanoseconds, where the name of the file names a day or month.
	from, to int64
}

func newBinanceTrades(r Request, path string) (tradeDecoder, error) {
	return binanceTradesOf(r, path, "trades", binanceTrades{columns: 7, atPrice: 1, atSize: 2, atTime: 4})
}

func newBinanceAggTrades(r Request, path string) (tradeDecoder, error) {
	return binanceTradesOf(r, path, "aggTrades", binanceTrades{columns: 8, atPrice: 1, atSize: 2, atTime: 5})
}

// binanceTradesName is what the files are called: BTCUSDT-trades-2024-01.zip, BTCUSDT-aggTrades-2024-01-31.csv.
var binanceTradesName = regexp.MustCompile(`^([A-Z0-9]+)-(trades|aggTrades)-(\d{4}-\d{2}(?:-\d{2})?)\.(?:zip|csv)$`)

func binanceTradesOf(r Request, path, kind string, b binanceTrades) (tradeDecoder, error) {
	b.venue, b.symbol = r.Venue, r.Market
	if b.venue == "" {
		b.venue = "binance"
	}
	if err := onlySpot(path); err != nil {
		return nil, err
	}
	if name := binanceTradesName.FindStringSubmatch(filepath.Base(path)); name != nil {
		if name[2] != kind {
			return nil, fmt.Errorf("its name says that it holds %s: import it with --format binance-%s", name[2], strings.ToLower(name[2]))
		}
		if b.symbol == "" {
			b.symbol = name[1]
		}
		var err error
		if b.from, b.to, err = period(name[3]); err != nil {
			return nil, err
		}
	}
	if b.symbol == "" {
		return nil, fmt.Errorf("its name does not say the market, as BTCUSDT-%s-2024-01.zip does: name it with --market", kind)
	}
	return &b, nil
}

// onlySpot refuses a file that lies in a folder of derivatives, whose files are named as those of spot markets.
func onlySpot(path string) error {
	for _, folder := range strings.Split(filepath.ToSlash(filepath.Dir(path)), "/") {
		if folder == "futures" || folder == "option" {
			return fmt.Errorf("it lies in a folder %q: spot markets only are imported", folder)
		}
	}
	return nil
}

// period is the month or day that a file is named after: 2024-01, 2024-01-31.
func period(name string) (from, to int64, err error) {
	layout, days, months := "2006-01", 0, 1
	if strings.Count(name, "-") == 2 {
		layout, days, months = time.DateOnly, 1, 0
	}
	t, err := time.Parse(layout, name)
	if err != nil {
		return 0, 0, fmt.Errorf("its name says no day or month: %w", err)
	}
	return t.UnixNano(), t.AddDate(0, months, days).UnixNano(), nil
}

// milliOrMicro reads a time of Binance.
func milliOrMicro(text string) (int64, error) {
	if !slices.Contains([]int{13, 16}, len(text)) {
		return 0, bad(schemas.Undecodable, "time %.40q is neither of milli- nor of microseconds", text)
	}
	return unix(text)
}

func (b *binanceTrades) header(fields []string) (bool, error) {
	return strings.Trim(fields[0], "0123456789") != "", nil
}

func (b *binanceTrades) trade(fields []string) (trade, error) {
	if len(fields) != b.columns {
		return trade{}, bad(schemas.Undecodable, "it has %d columns and not %d", len(fields), b.columns)
	}
	t := trade{venue: b.venue, symbol: b.symbol, price: fields[b.atPrice], size: fields[b.atSize]}
	var err error
	if t.time, err = milliOrMicro(fields[b.atTime]); err != nil {
		return trade{}, err
	}
	if b.to != 0 && (t.time < b.from || t.time >= b.to) {
		return trade{}, bad(schemas.Absurd, "time %s is not in the time that the file is named after", at(t.time))
	}
	return t, nil
}

var errOtherLength = errors.New("trades become candles of 1m, from which all others are made: leave out --interval")
