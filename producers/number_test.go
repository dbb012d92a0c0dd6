package producers_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

func TestNumbersKeepTheirSpelling(t *testing.T) {
	for in, want := range map[string]producers.Num{
		`1.50`: "1.50", `"1.50"`: "1.50", `9.2E-7`: "9.2E-7", `null`: "", `""`: "", `"a\u0062"`: "ab", `true`: "true", `[1]`: "[1]",
	} {
		var got producers.Num
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestTimesKeepEveryDigit(t *testing.T) {
	for _, c := range []struct {
		n    producers.Num
		unit time.Duration
		want int64
	}{
		{"1557895726.2415", time.Second, 1557895726241500000},
		{"1534614057.321597", time.Second, 1534614057321597000},
		{"1700000000123", time.Millisecond, 1700000000123000000},
		{"1618678151544.799", time.Millisecond, 1618678151544799000},
		{"1700000000123456789", time.Nanosecond, 1700000000123456789},
		{"1.0000000019", time.Second, 1000000001}, // beyond a nanosecond there is nothing
		{"", time.Second, 0},
		{"-1", time.Second, producers.BadTime},
		{"1e9", time.Second, producers.BadTime},
		{"99999999999999999999", time.Nanosecond, producers.BadTime},
		{"9999999999999", time.Second, producers.BadTime},
		{".5", time.Second, producers.BadTime},
		{"1.x", time.Second, producers.BadTime},
	} {
		if got := producers.Unix(c.n, c.unit); got != c.want {
			t.Errorf("Unix(%q, %s): got %d, want %d", c.n, c.unit, got, c.want)
		}
	}
	for in, want := range map[string]int64{
		"2021-04-17T16:43:30.244075Z": 1618677810244075000, "2021-04-17T18:43:30.2440751+02:00": 1618677810244075100,
		"": 0, "0001-01-01T00:00:00.000000Z": 0, "soon": producers.BadTime, "9999-12-31T00:00:00Z": producers.BadTime,
	} {
		if got := producers.RFC3339(in); got != want {
			t.Errorf("RFC3339(%q): got %d, want %d", in, got, want)
		}
	}
}

func TestIntervalsHaveOneSpelling(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Minute: "1m", 5 * time.Minute: "5m", time.Hour: "1h", 4 * time.Hour: "4h", 90 * time.Minute: "90m",
		24 * time.Hour: "1d", 7 * 24 * time.Hour: "1w", 15 * 24 * time.Hour: "15d", time.Second: "1s", 0: "",
	} {
		if got := adapter.Interval(d); got != want {
			t.Errorf("Interval(%s): got %q, want %q", d, got, want)
		}
	}
}

func TestSymbolsSplitIntoBaseAndQuote(t *testing.T) {
	for symbol, want := range map[string]string{
		"BTC-USD": "BTC/USD", "btc_usdt": "BTC/USDT", "XBT/EUR": "XBT/EUR", "BTCUSDT": "BTC/USDT", "ethbtc": "ETH/BTC",
		"USDTUSD": "USDT/USD", "BTCFDUSD": "BTC/FDUSD", "PEPE1000": "", "BTC-USD-220527": "", "BTC-USDT-SWAP": "", "": "",
		"BTCUSD-PERP": "", "BTC-26DEC25": "", "BTCUSDT_240329": "", "ETH_CQ": "", "BTC-USD1": "BTC/USD1", "1INCH-USD": "1INCH/USD", "USDT": "", "T": "",
	} {
		got := ""
		if base, quote, ok := adapter.SplitSymbol(symbol); ok {
			got = base + "/" + quote
		}
		if got != want {
			t.Errorf("SplitSymbol(%q): got %q, want %q", symbol, got, want)
		}
	}
}
