// Package sources lists what is polled.
package sources

import (
	"cmp"
	"slices"

	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/producers/reference"
	"github.com/marketlog/marketlog/producers/yields"
)

// List returns every polled source, in alphabetical order.
func List() []poll.Source {
	return slices.SortedFunc(slices.Values(append(reference.List(), yields.List()...)), func(a, b poll.Source) int {
		return cmp.Compare(a.Slug, b.Slug)
	})
}
