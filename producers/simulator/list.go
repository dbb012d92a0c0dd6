package simulator

// List returns every venue that can be simulated, in alphabetical order.
func List() []Venue {
	return []Venue{
		bitstamp(),
		coinbase(),
		gate(),
		kraken(),
		kucoin(),
		mexc(),
	}
}
