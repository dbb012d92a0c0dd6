package schemas

import (
	"cmp"
	"slices"
	"strings"
)

const symbolSeparators = "-/_:"

// quoteSuffixes are the quotes that venues which write markets without a separator use, beside
// the fiat codes: Binance, HTX, Bybit, Bitget, MEXC, Gemini, Bitstamp and Bitfinex. Longest first.
var quoteSuffixes = func() []string {
	quotes := strings.Fields(`
		FDUSD RLUSD PYUSD USDT USDC USDP USDS USDE USDD USDJ USDK USDQ USDR USDG USDF USD1
		TUSD BUSD GUSD HUSD XUSD EURC EURT EURS EURI EURQ AEUR BIDR IDRT BVND CNHT MXNT
		DAI PAX UST VAI BRZ MIM XBT BTC ETH BNB TRX XRP DOT SOL LTC BCH EOS FIL DOGE
		KCS OKB MNT HT MX GT
		AED ARS AUD BRL CAD CHF COP CZK EUR GBP HKD HUF IDR INR JPY KRW KZT MXN NGN NZD PLN RON
		RUB SEK SGD THB TRY UAH USD VND ZAR`)
	slices.SortStableFunc(quotes, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return quotes
}()

// SplitSymbol splits a venue's market symbol by the embedded coin table; see CoinTable.SplitSymbol.
func SplitSymbol(symbol string) (base, quote string, ok bool) { return Coins().SplitSymbol(symbol) }

// SplitSymbol splits a spot market's symbol into base and quote, in upper case, for venues whose
// instrument list is not at hand. One separator of "-/_:" decides; the base is taken to come
// first, so Upbit's KRW-BTC is its adapter's to turn. Without a separator the symbol's end must be
// a known quote: the longest, unless a shorter one leaves a base that the table knows, for USD ends
// many stablecoins (OMGUSD is OMG in USD, not OM in GUSD; BTCTUSD is BTC in TUSD). Kraken's old
// eight letters (XXBTZUSD, XETHXXBT) lose their class letters. Futures, options and perpetuals
// (BTC-USD-220527, BTC-PERP, BTC-27JUN25) are refused.
func (t *CoinTable) SplitSymbol(symbol string) (base, quote string, ok bool) {
	// The longest real symbol is far below; what is longer is not worth a look.
	if len(symbol) > 64 || strings.ContainsFunc(symbol, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", "", false
	}
	symbol = upperSymbol(symbol)
	if i := strings.IndexAny(symbol, symbolSeparators); i >= 0 {
		base, quote = symbol[:i], symbol[i+1:]
		if base == "" || !spotQuote(quote) {
			return "", "", false
		}
		return base, quote, true
	}
	if b, q, found := t.splitKraken(symbol); found {
		return b, q, true
	}
	for _, q := range quoteSuffixes {
		b, found := strings.CutSuffix(symbol, q)
		if !found || b == "" {
			continue
		}
		if !ok || t.canBeBase(b) {
			base, quote, ok = b, q, true
		}
	}
	return base, quote, ok
}

// splitKraken reads the eight letters of Kraken's first API: class X for coins, Z for fiat, each
// before three letters.
func (t *CoinTable) splitKraken(symbol string) (base, quote string, ok bool) {
	if len(symbol) != 8 || symbol[0] != 'X' {
		return "", "", false
	}
	base, quote = symbol[1:4], symbol[5:]
	switch symbol[4] {
	case 'Z':
		_, ok = t.byFiatCode[quote]
	case 'X':
		ok = quote == "XBT" || quote == "ETH"
	}
	return base, quote, ok && t.canBeBase(base)
}

// canBeBase tells whether any venue calls a coin or fiat currency of the table so.
func (t *CoinTable) canBeBase(symbol string) bool {
	if _, ok := t.byFiatCode[symbol]; ok {
		return true
	}
	_, ok := t.bases[symbol]
	return ok
}

// spotQuote refuses what follows the base in the names of derivatives: a second separator, a
// product word, a date.
func spotQuote(quote string) bool {
	if quote == "" || strings.ContainsAny(quote, symbolSeparators) {
		return false
	}
	switch quote {
	case "PERP", "PERPETUAL", "SWAP":
		return false
	}
	return quote[0] < '0' || quote[0] > '9'
}

func upperSymbol(s string) string {
	for i := range len(s) {
		if upperASCII(s[i]) != s[i] {
			b := []byte(s)
			for j := range b {
				b[j] = upperASCII(b[j])
			}
			return string(b)
		}
	}
	return s
}
