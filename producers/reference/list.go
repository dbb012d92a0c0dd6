// Package reference translates what is polled for reference values: one file a source, in which a
// declaration gives the engine the addresses and the interval and a decoder reads the answers. A decoder maps a
// field only where it means the same, keeps every decimal exact, and computes nothing.
package reference

import (
	"embed"

	"github.com/marketlog/marketlog/producers/poll"
)

//go:embed testdata/*/format
var formats embed.FS

// List returns every source of reference values, in alphabetical order.
func List() []poll.Source {
	list := []poll.Source{
		alternative(),
		bankofcanada(),
		coinbasefiat(),
		coingecko(),
		coinpaprika(),
		defillama(),
		ecb(),
		erapi(),
		frankfurter(),
	}
	for i := range list {
		list[i].Formats = formats
	}
	return list
}
