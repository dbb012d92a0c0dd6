package imports

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// klines reads the files of https://github.com/binance/binance-public-data: open time, open, high, low, close, volume, close time,
// volume in the quote, trades, volumes of takers, and a column to be ignored. Times of spot markets are in milliseconds, and
// since 2025-01-01 in microseconds.
type klines struct {
	venue, symbol string
	interval      time.Duration
	// from and to bound the starts, Unix nanoseconds, where the name of the file has a day or month.
	from, to int64
}

const klineColumns = 12

// klinesName is what the files are called: BTCUSDT-1m-2024-01.zip, BTCUSDT-1d-2024-01-31.csv.
var klinesName = regexp.MustCompile(`^([A-Z0-9]+)-([0-9a-z]+)-(\d{4}-\d{2})(-\d{2})?\.(?:zip|csv)$`)

func newKlines(r Request, path string) (decoder, error) {
	k := &klines{venue: r.Venue, symbol: r.Market}
	if k.venue == "" {
		k.venue = "binance"
	}
	if err := onlySpot(path); err != nil {
		return nil, err
	}
	interval := r.Interval
	if name := klinesName.FindStringSubmatch(filepath.Base(path)); name != nil {
		if k.symbol == "" {
			k.symbol = name[1]
		}
		if interval == "" {
			interval = name[2]
		}
		var err error
		if k.from, k.to, err = period(name[3] + name[4]); err != nil {
			return nil, err
		}
	}
	if k.symbol == "" {
		return nil, errors.New("its name does not say the market, as BTCUSDT-1m-2024-01.zip does: name it with --market")
	}
	if interval == "" {
		return nil, errors.New("its name does not say the length of the candles: name it with --interval")
	}
	var err error
	k.interval, err = intervalNamed(interval)
	if err != nil {
		return nil, fmt.Errorf("interval %w", err)
	}
	return k, nil
}

func (k *klines) header(fields []string) (bool, error) {
	return strings.Trim(fields[0], "0123456789") != "", nil
}

func (k *klines) row(fields []string) (row, error) {
	if len(fields) != klineColumns {
		return row{}, bad(schemas.Undecodable, "it has %d columns and not %d", len(fields), klineColumns)
	}
	r := row{venue: k.venue, symbol: k.symbol, interval: k.interval, open: fields[1], high: fields[2], low: fields[3], close: fields[4], volume: fields[5]}
	for _, f := range [...]struct {
		text string
		at   *int64
	}{{fields[0], &r.start}, {fields[6], &r.ends}} {
		var err error
		if *f.at, err = milliOrMicro(f.text); err != nil {
			return row{}, err
		}
	}
	if k.to != 0 && (r.start < k.from || r.start >= k.to) {
		return row{}, bad(schemas.Absurd, "open time %s is not in the time that the file is named after", at(r.start))
	}
	return r, nil
}
