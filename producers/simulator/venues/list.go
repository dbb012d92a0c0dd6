package venues

// List returns every venue that can be simulated, in alphabetical order.
func List() []Venue {
	return []Venue{
		binance(),
		bitfinex(),
		bitget(),
		bitstamp(),
		bybit(),
		coinbase(),
		cryptocom(),
		gate(),
		gemini(),
		htx(),
		kraken(),
		kucoin(),
		mexc(),
		okx(),
		poloniex(),
		upbit(),
	}
}
