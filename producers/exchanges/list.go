// Package exchanges translates what exchanges say on their public feeds: one file a venue, in
// which a declaration tells the engine how to connect and a codec reads the frames. A codec
// maps a field only where it means the same; it computes nothing and leaves out what was not reported.
package exchanges

import (
	"github.com/marketlog/marketlog/producers/adapter"
)

// List returns every venue, in alphabetical order. This is the only list of them: what else is kept by venue is looked up by its slug.
func List() []adapter.Venue {
	venues := []adapter.Venue{
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
	for i := range venues {
		v := &venues[i]
		v.Countries, v.Evidence = countriesOf[v.Slug], evidenceOf[v.Slug]
	}
	return venues
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
