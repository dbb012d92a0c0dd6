// Package exchanges translates what exchanges say on their public feeds: one file a venue, in
// which a declaration tells the engine how to connect and a codec reads the frames. A codec
// maps a field only where it means the same; it computes nothing and leaves out what it was not told.
package exchanges

import (
	"github.com/marketlog/marketlog/producers/adapter"
)

// List returns every venue, in alphabetical order.
func List() []adapter.Venue {
	return []adapter.Venue{
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

// Find returns the venue with this slug.
func Find(slug string) (adapter.Venue, bool) {
	for _, v := range List() {
		if v.Slug == slug {
			return v, true
		}
	}
	return adapter.Venue{}, false
}
