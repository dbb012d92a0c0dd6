package schemas

import "slices"

// Levels of quote assets: how their USD rate is found.
const (
	// NoQuote cannot be converted.
	NoQuote = iota
	// DirectQuote is a stablecoin or a currency: converted by its own USD markets, or a fixing.
	DirectQuote
	// CrossQuote is a coin that markets are quoted in: converted by USD markets and by those in
	// direct quotes.
	CrossQuote
)

// crossQuotes are the coins that markets of several venues are quoted in, beside stablecoins.
var crossQuotes = []string{"bitcoin", "ethereum", "binancecoin"}

// QuoteLevel reports how an asset is converted to USD, if it can be.
func QuoteLevel(coins *CoinTable, a Asset) int {
	if a.Fiat {
		return DirectQuote
	}
	if slices.Contains(crossQuotes, a.ID) {
		return CrossQuote
	}
	if coin, ok := coins.ByID(a.ID); ok && coin.Kind == KindStablecoin {
		return DirectQuote
	}
	return NoQuote
}

// Convertible reports whether prices in an asset can be converted to USD.
func Convertible(coins *CoinTable, a Asset) bool { return QuoteLevel(coins, a) != NoQuote }
