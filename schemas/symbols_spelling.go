package schemas

import (
	"strings"
)

// spelling is a way to read what was given as a symbol.
type spelling struct {
	symbol string
	// units is how many of the coin one unit of the symbol is.
	units float64
	// guessed means that nothing but the letters suggests this reading.
	guessed bool
}

// renamedVenues are names that venues had, or are written by.
var renamedVenues = map[string]string{
	"huobi": "htx", "okex": "okx", "gateio": "gate", "gate.io": "gate", "crypto.com": "cryptocom", "crypto_com": "cryptocom",
	"gdax": "coinbase", "coinbase-pro": "coinbase", "coinbasepro": "coinbase", "coinbase-exchange": "coinbase", "mxc": "mexc",
}

// VenueSlug is our name of a venue or source, in whatever letter case and under whichever former name it is given.
func VenueSlug(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if slug, ok := renamedVenues[name]; ok {
		return slug
	}
	return name
}

// krakenSuffixes mark balances of a coin that are staked or earn rewards
// (https://support.kraken.com/articles/360001206766-bitcoin-currency-code-xbt-vs-btc and the asset list of its API).
var krakenSuffixes = []string{".S", ".M", ".F", ".B", ".P"}

// multiples are the numbers that venues put before a symbol to quote many units of a cheap coin, the longest first.
var multiples = []struct {
	prefix string
	units  float64
}{
	{"1000000", 1e6}, {"100000", 1e5}, {"10000", 1e4}, {"1000", 1e3}, {"1M", 1e6},
}

// pairQuotes are what the symbol of a pair without a separator may end in, longer ones first.
var pairQuotes = []string{"FDUSD", "USDT", "USDC", "BUSD", "TUSD", "ZUSD", "ZEUR", "USD", "EUR", "GBP", "JPY", "KRW", "TRY", "BRL", "BTC", "XBT", "ETH", "BNB"}

// dollarQuotes are those of them that no coin's own symbol ends in as far as is known: ANKRETH and CRVUSD are coins.
var dollarQuotes = []string{"FDUSD", "USDT", "USDC", "BUSD"}

// spellings are the ways to read a symbol, the plainest first; a later one counts only if no coin has an earlier one:
// without the mark of a staked balance at Kraken; the base of a pair, with a separator or, at a venue that knows the
// base, without one, or for no venue where the quote is a dollar's; and without a number of units before three letters
// or more.
func spellings(venue, symbol string, known func(base string) bool) []spelling {
	all := []spelling{{symbol: symbol, units: 1}}
	upper := strings.ToUpper(symbol)
	if isAddress(symbol) {
		return all
	}
	if venue == "kraken" {
		for _, suffix := range krakenSuffixes {
			if base, ok := strings.CutSuffix(upper, suffix); ok && base != "" {
				all = append(all, spelling{symbol: base, units: 1})
			}
		}
	}
	if base, quote, ok := cutPair(upper); ok && base != "" && isQuote(quote) {
		all = append(all, spelling{symbol: base, units: 1})
	} else if venue == "" && !ok {
		for _, quote := range dollarQuotes {
			if base, ends := strings.CutSuffix(upper, quote); ends && len(base) > 1 && known(base) {
				all = append(all, spelling{symbol: base, units: 1, guessed: true})
				break
			}
		}
	} else if !ok {
		if rest, ok := strings.CutPrefix(symbol, "t"); ok && venue == "bitfinex" && rest == strings.ToUpper(rest) {
			upper = rest // its mark of trading pairs
		}
		for _, quote := range pairQuotes {
			if base, ends := strings.CutSuffix(upper, quote); ends && len(base) > 1 && known(base) {
				all = append(all, spelling{symbol: base, units: 1})
				break
			}
		}
	}
	for _, s := range all[:len(all):len(all)] {
		for _, m := range multiples {
			if rest, ok := strings.CutPrefix(strings.ToUpper(s.symbol), m.prefix); ok && startsWithLetters(rest) {
				all = append(all, spelling{rest, m.units, s.guessed})
				break
			}
		}
	}
	return all
}

func cutPair(symbol string) (base, quote string, ok bool) {
	for _, separator := range []string{"/", "-", "_", ":"} {
		if strings.Count(symbol, separator) == 1 {
			base, quote, ok = strings.Cut(symbol, separator)
			return base, quote, ok
		}
	}
	return "", "", strings.ContainsAny(symbol, "/-_:")
}

func isQuote(symbol string) bool {
	for _, q := range pairQuotes {
		if q == symbol {
			return true
		}
	}
	return false
}

func startsWithLetters(s string) bool {
	if len(s) < 3 {
		return false
	}
	for i := range 3 {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}

// isAddress reports whether a text is the address of a contract on a chain of Ethereum's kind, maybe after a platform and a
// colon.
func isAddress(text string) bool {
	_, address := cutPlatform(text, "")
	if len(address) != 42 || !strings.EqualFold(address[:2], "0x") {
		return false
	}
	for i := 2; i < len(address); i++ {
		if c := lowerASCII(address[i]); (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// cutPlatform parts platform:address; without a platform the given one stays.
func cutPlatform(text, given string) (platform, address string) {
	if platform, address, ok := strings.Cut(text, ":"); ok {
		return platform, address
	}
	return given, text
}

// FoldName is a name without what sources spell differently: its letters and digits, in lower case.
func FoldName(name string) string { return squash(name) }
