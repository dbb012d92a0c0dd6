package imports

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// FuzzLines has lines of both formats never make a candle that cannot be, nor a dead letter without a reason of the list.
func FuzzLines(f *testing.F) {
	f.Add(true, "1704067200000,42283.58,42554.57,42261.02,42475.23,1271.68,1704067259999,53957248.97,47134,682.57,28957416.82,0")
	f.Add(true, "1735689600000000,1,2,1,2,3,1735689659999999,1,1,1,1,0")
	f.Add(true, "1735689600000000,1e999999999,2,1,2,3,1735689659999999,1,1,1,1,0")
	f.Add(true, "1735689600000000,NaN,Inf,-1,,,,,,,,")
	f.Add(false, `"binance","BTC-USDT",2024-01-01 00:00:00,1,2,1,2,3`)
	f.Add(false, `binance,BTCUSDT,9999999999999999999,1,2,1,2,3`)
	f.Add(false, `binance,"BTC""USDT,1704067200,+1.5,2.5E0,1,2,0`)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, kline bool, line string) {
		r := Request{Format: "candles", Interval: "1m"}
		var header []string
		if kline {
			r = Request{Format: "binance-klines", Market: "BTCUSDT", Interval: "1m"}
		} else {
			header = []string{"venue", "symbol", "open_time", "open", "high", "low", "close", "volume"}
		}
		reading, err := newReading(r, &opened{path: "/x/fuzz.csv", name: "fuzz.csv"}, now, nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != nil {
			if _, err := reading.next(1, header, func(completed) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		var m *market
		var c *eventsv1.BackfillCandle
		_, err = reading.next(2, fieldsOf(line), func(of completed) error { m, c = of.market, of.candle; return nil })
		if err != nil {
			s := &survey{}
			if isLine(err) {
				if err := s.refuse(&opened{name: "fuzz.csv"}, 1, line, err); err != nil {
					t.Fatal(err)
				}
				if l := s.letters[0]; !known(l.Reason) || len(l.EventId) != 16 {
					t.Errorf("%q has the letter %v", line, l)
				}
			}
			return
		}
		if c == nil {
			return // a header
		}
		prices := [4]decimal.Decimal{}
		for i, text := range []string{c.Open, c.High, c.Low, c.Close} {
			if strings.ContainsAny(text, "eE+") || !utf8.ValidString(text) {
				t.Errorf("%q has the price %q", line, text)
			}
			if prices[i], err = decimal.NewFromString(text); err != nil || !prices[i].IsPositive() {
				t.Errorf("%q has the price %q, %v", line, text, err)
			}
		}
		if prices[1].LessThan(decimal.Max(prices[0], prices[2:]...)) || prices[2].GreaterThan(decimal.Min(prices[0], prices[1], prices[3])) {
			t.Errorf("%q has the candle %v", line, c)
		}
		if c.Start%int64(time.Minute) != 0 || c.Start < earliest || c.Start > now.UnixNano() || m.coinID == "" {
			t.Errorf("%q has the candle %v of %q", line, c, m.coinID)
		}
		if reason, detail := schemas.CheckCandle(c); reason != "" {
			t.Errorf("%q has the candle %v: %s", line, c, detail)
		}
	})
}

func known(reason string) bool {
	for _, r := range schemas.Reasons {
		if string(r) == reason {
			return true
		}
	}
	return false
}

// FuzzTrades has two lines of any of the formats of trades never make a candle that cannot be.
func FuzzTrades(f *testing.F) {
	f.Add(uint8(0), "1,93000.1,0.5,46500,1735689600000000,True,True", "2,93000.2,0.5,46500,1735689720000000,True,True")
	f.Add(uint8(1), "1,93000.1,0.5,1,1,1735689600000,True,True", "1,1e30,1e-30,1,1,1735689600000,True,True")
	f.Add(uint8(2), "huobi,BTCUSDT,1735689660000000,1,1,buy,93000,0.5", "bitfinex,BTCUSD,1,1,1,sell,NaN,-0")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, format uint8, first, second string) {
		r := Request{Format: []string{"binance-trades", "binance-aggtrades", "tardis-trades"}[format%3]}
		lines := []string{first, second}
		if r.Format == "tardis-trades" {
			lines = append([]string{strings.Join(tardisColumns, ",")}, lines...)
		} else {
			r.Market = "BTCUSDT"
		}
		reading, err := newReading(r, &opened{path: "/x/fuzz.csv", name: "fuzz.csv"}, now, nil)
		if err != nil {
			t.Fatal(err)
		}
		check := func(of completed) error {
			if reason, detail := schemas.CheckCandle(of.candle); reason != "" || of.candle.Start%int64(time.Minute) != 0 || of.candle.Start < earliest || of.candle.Start > now.UnixNano() || of.line == 0 {
				t.Errorf("%q have the candle %v, %s", lines, of.candle, detail)
			}
			return nil
		}
		for i, line := range lines {
			if _, err := reading.next(uint64(i+1), fieldsOf(line), check); err != nil && !isLine(err) {
				return // the file is refused
			}
		}
		if err := reading.finish(check); err != nil && !isLine(err) {
			t.Fatal(err)
		}
	})
}

// FuzzFiles has no file, of whatever bytes, do more than be refused or have candles.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte("PK\x05\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\ufeffvenue,symbol,open_time,open,high,low,close,volume\r\nbinance,BTCUSDT,1704067200,1,2,1,2,3\r\n"))
	f.Add([]byte("venue,symbol,interval,open_time,open,high,low,close,volume\nbinance,BTCUSDT,1h,1704067200,1,2,1,2,3\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "a.csv")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		s, err := newSurvey(context.Background(), Request{Format: "candles"}, file, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), func(int64, int64) error { return nil })
		if err != nil {
			return
		}
		total := uint64(0)
		for _, of := range s.order {
			total += of.rows
			if of.interval == 0 || of.first > of.last {
				t.Errorf("%q has the market %+v", content, of)
			}
		}
		if total != uint64(s.rows) || total == 0 {
			t.Errorf("%q has %d candles, its markets %d", content, s.rows, total)
		}
	})
}
