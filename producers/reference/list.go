// Package reference translates what is polled for reference values: one file a source, in which a
// declaration tells the engine where and how often to ask and a decoder reads the answers. A decoder maps a
// field only where it means the same, keeps every decimal exact, and computes nothing.
package reference

import "github.com/marketlog/marketlog/producers"

// List returns every source, in alphabetical order.
func List() []producers.Source {
	return []producers.Source{
		alternative(),
		coinbasefiat(),
		coingecko(),
		coinpaprika(),
		defillama(),
		ecb(),
		erapi(),
		frankfurter(),
	}
}
