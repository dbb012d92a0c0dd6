package oracle

// coin is what an asset is called in the coin table: CoinGecko's slug.
type coin struct{ id, symbol string }

// coins are the assets of the scripted venues, by the name that the venues' lists give.
var coins = map[string]coin{
	"BTC": {"bitcoin", "BTC"}, "ETH": {"ethereum", "ETH"}, "SOL": {"solana", "SOL"}, "XRP": {"ripple", "XRP"},
	"ADA": {"cardano", "ADA"}, "DOGE": {"dogecoin", "DOGE"}, "LTC": {"litecoin", "LTC"}, "LINK": {"chainlink", "LINK"},
	"DOT": {"polkadot", "DOT"}, "UNI": {"uniswap", "UNI"}, "AAVE": {"aave", "AAVE"}, "USDT": {"tether", "USDT"},
	"USDC": {"usd-coin", "USDC"}, "XLM": {"stellar", "XLM"}, "SHIB": {"shiba-inu", "SHIB"}, "AVAX": {"avalanche-2", "AVAX"},
}

// symbolOf is the symbol of a coin id.
func symbolOf(id string) string {
	for _, c := range coins {
		if c.id == id {
			return c.symbol
		}
	}
	return ""
}

// quoteID is the id of what a market is quoted in; the dollar is itself.
func quoteID(quote string) string {
	if quote == "USD" {
		return quote
	}
	return coins[quote].id
}

// preference is the order in which a provider's markets are taken: fewest conversions first.
var preference = []string{"USD", "tether", "usd-coin", "EUR", "GBP", "bitcoin", "ethereum"}
