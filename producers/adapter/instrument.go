package adapter

import (
	"slices"
	"strings"
)

// Instrument is one spot market of a venue's own list.
type Instrument struct {
	// Symbol is how the WebSocket feed names the market.
	Symbol string
	// Base and Quote are asset codes in upper case, as the venue's list has them.
	Base, Quote string
	// Aliases are other names that the venue gives the same market, in its HTTP answers for example.
	Aliases []string
	// Status is how the list says that the market does not trade now, as in state=suspend; empty if it trades.
	Status string
}

// Instruments finds markets by any of their names.
type Instruments map[string]Instrument

// Index makes a list searchable.
func Index(list []Instrument) Instruments {
	index := make(Instruments, len(list))
	add := func(in Instrument, names ...string) {
		in.Base, in.Quote = strings.ToUpper(in.Base), strings.ToUpper(in.Quote)
		for _, name := range names {
			index[name] = in
		}
	}
	for _, in := range list {
		add(in, in.Aliases...)
	}
	// A symbol wins over an alias of another market.
	for _, in := range list {
		add(in, in.Symbol)
	}
	return index
}

// quotes are the assets that spot markets are quoted in. Suffixes are tried longest first, so
// that BTCUSDT is in USDT and not in T.
var quotes = func() []string {
	list := strings.Fields(`USDT USDC TUSD BUSD FDUSD USDD USDE USDG USD1 USDP PYUSD RLUSD HUSD BIDR BVND IDRT EURC EURT EURR EURI UST DAI
		USD EUR GBP JPY KRW AUD CAD CHF TRY BRL MXN ARS COP ZAR UAH RUB NGN PLN RON CZK IDR SGD HKD INR VND AED
		BTC XBT ETH BNB XRP TRX DOGE SOL DOT TON OKB KCS HT BGB MX CRO GT VAI PAX`)
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}()

// SplitSymbol reads base and quote, in upper case, off a symbol whose instrument is not at hand:
// at its one separator (- / _ :), else before the longest known quote asset. ok is false for a
// symbol that is not of one base and one quote, as those of futures and options. base and quote mean
// nothing then.
func SplitSymbol(symbol string) (base, quote string, ok bool) {
	symbol = strings.ToUpper(symbol)
	parts := strings.FieldsFunc(symbol, func(r rune) bool { return strings.ContainsRune("-/_:", r) })
	switch len(parts) {
	case 2:
		return parts[0], parts[1], !isContract(parts[1])
	case 1:
		for _, q := range quotes {
			rest, found := strings.CutSuffix(symbol, q)
			if !found || rest == "" {
				continue
			}
			base, quote = rest, q
			// USDTUSD is the tether in dollars: only if nothing else fits is the dollar a base.
			if base != "USD" {
				break
			}
		}
		return base, quote, base != ""
	}
	return "", "", false
}

// SplitsOf are the ways to read a base and a quote, in upper case, off a symbol without a separator: the longest quote first, as SplitSymbol
// takes it. ETHUSD is ET in HUSD, or ETH in USD.
func SplitsOf(symbol string) (pairs [][2]string) {
	symbol = strings.ToUpper(symbol)
	for _, q := range quotes {
		if base, found := strings.CutSuffix(symbol, q); found && base != "" {
			pairs = append(pairs, [2]string{base, q})
		}
	}
	return pairs
}

// isContract reports what follows the base in the names of perpetuals, futures and indices from a quote:
// a word, a date, or HTX's this week, next week, this quarter and next quarter.
func isContract(quote string) bool {
	switch quote {
	case "PERP", "PERPETUAL", "SWAP", "INDEX", "CW", "NW", "CQ", "NQ":
		return true
	}
	return quote[0] >= '0' && quote[0] <= '9'
}
