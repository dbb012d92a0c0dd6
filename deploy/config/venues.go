package config

// venueNames are the venues that have an adapter.
var venueNames = []string{
	"binance", "bitfinex", "bitget", "bitstamp", "bybit", "coinbase", "cryptocom", "gate",
	"gemini", "htx", "kraken", "kucoin", "mexc", "okx", "poloniex", "upbit",
}
