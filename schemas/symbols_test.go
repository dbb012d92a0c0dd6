package schemas

import (
	"strings"
	"testing"
)

func TestSplitSymbol(t *testing.T) {
	for _, tc := range []struct{ symbol, base, quote string }{
		{"BTC-USD", "BTC", "USD"},
		{"btc_usdt", "BTC", "USDT"},
		{"XBT/EUR", "XBT", "EUR"},
		{"DUSK:USD", "DUSK", "USD"},
		{"1INCH-USDT", "1INCH", "USDT"},
		{"BTC.B-USDC", "BTC.B", "USDC"},
		{"BTCUSDT", "BTC", "USDT"},
		{"ethbtc", "ETH", "BTC"},
		{"BTCFDUSD", "BTC", "FDUSD"},
		{"BTCTUSD", "BTC", "TUSD"},
		{"DOTUSD", "DOT", "USD"},
		{"BATUSD", "BAT", "USD"},
		{"GRTUSD", "GRT", "USD"},
		{"LITUSD", "LIT", "USD"},
		{"GTUSD", "GT", "USD"},
		{"SHIBUSD", "SHIB", "USD"},
		{"BNBBUSD", "BNB", "BUSD"},
		{"BNBUSD", "BNB", "USD"},
		{"OMGUSD", "OMG", "USD"},
		{"LUNAEUR", "LUNA", "EUR"},
		{"ETHAEUR", "ETH", "AEUR"},
		{"BTCBIDR", "BTC", "BIDR"},
		{"NEWCOINTUSD", "NEWCOIN", "TUSD"},
		{"USDTUSD", "USDT", "USD"},
		{"USDCUSDT", "USDC", "USDT"},
		{"USDTTRY", "USDT", "TRY"},
		{"EURUSDT", "EUR", "USDT"},
		{"USTUSD", "UST", "USD"},
		{"WBTCBTC", "WBTC", "BTC"},
		{"STETHETH", "STETH", "ETH"},
		{"1000SATSUSDT", "1000SATS", "USDT"},
		{"NEWCOINUSDT", "NEWCOIN", "USDT"},
		{"XBTUSD", "XBT", "USD"},
		{"XXBTZUSD", "XBT", "USD"},
		{"XETHXXBT", "ETH", "XBT"},
		{"XXDGZEUR", "XDG", "EUR"},
		{"XTZUSD", "XTZ", "USD"},
		{"币安人生USDT", "币安人生", "USDT"},

		{"", "", ""},
		{"USDT", "", ""},
		{"BTC", "", ""},
		{"-USD", "", ""},
		{"BTC-", "", ""},
		{"BTC USD", "", ""},
		{"BTC-USD-220527", "", ""},
		{"BTC-USDT-SWAP", "", ""},
		{"BTC/USDT:USDT", "", ""},
		{"BTC-PERP", "", ""},
		{"BTC_PERPETUAL", "", ""},
		{"BTC-27JUN25", "", ""},
		{"XBTUSDTM", "", ""},
		{strings.Repeat("A", 200) + "USDT", "", ""},
	} {
		base, quote, ok := SplitSymbol(tc.symbol)
		if base != tc.base || quote != tc.quote || ok != (tc.base != "") {
			t.Errorf("SplitSymbol(%q): got %q %q %v, want %q %q", tc.symbol, base, quote, ok, tc.base, tc.quote)
		}
	}
}

func TestQuoteSuffixesAreKnown(t *testing.T) {
	// A quote we can split off but not name could never be priced; these are kept so that a
	// market is not taken for another one.
	retired := map[string]bool{"USDR": true, "USDQ": true, "XUSD": true, "EURQ": true, "BVND": true, "MXNT": true}
	for i, q := range quoteSuffixes {
		if _, ok := Coins().ResolveQuote("", q); !ok && !retired[q] {
			t.Errorf("quote %s is neither a coin of the table nor a fiat currency", q)
		}
		if i > 0 && len(q) > len(quoteSuffixes[i-1]) {
			t.Errorf("quote %s stands behind the shorter %s", q, quoteSuffixes[i-1])
		}
	}
}

func FuzzSplitSymbol(f *testing.F) {
	for _, s := range []string{"BTC-USD", "btcusdt", "XXBTZUSD", "DOTUSD", "BTC-USD-220527", "USDT", "a:b", "\xffUSD", "ıUSDT", " "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, symbol string) {
		base, quote, ok := SplitSymbol(symbol)
		if !ok {
			if base != "" || quote != "" {
				t.Fatalf("%q: refused, yet got %q %q", symbol, base, quote)
			}
			return
		}
		if base == "" || quote == "" || len(base)+len(quote) > len(symbol) {
			t.Fatalf("%q: got %q %q", symbol, base, quote)
		}
		if strings.ContainsAny(base+quote, symbolSeparators) {
			t.Fatalf("%q: a separator stayed in %q %q", symbol, base, quote)
		}
		if b, q, ok := SplitSymbol(upperSymbol(symbol)); !ok || b != base || q != quote {
			t.Fatalf("%q: upper case gives %q %q %v, want %q %q", symbol, b, q, ok, base, quote)
		}
		if len(symbol) == 64 {
			return // with a separator it would be too long
		}
		if b, q, ok := SplitSymbol(base + "-" + quote); !ok || b != base || q != quote {
			t.Fatalf("%q: %s-%s gives %q %q %v", symbol, base, quote, b, q, ok)
		}
	})
}
