// Package yields translates what is polled for rates, of lending, borrowing and staking: one file a source, in which a
// declaration gives the engine the addresses and the interval and a decoder reads the answers. A decoder keeps the rate as it
// is reported, with its unit and with the compounding that the source's documentation describes, and converts nothing; a rate
// that is missing makes no row.
package yields

import (
	"embed"

	"github.com/marketlog/marketlog/producers/poll"
)

//go:embed testdata/*/format
var formats embed.FS

// List returns every source of rates, in alphabetical order.
func List() []poll.Source {
	list := []poll.Source{
		aave(),
		binanceEarn(),
		wbeth(),
		bitfinexFunding(),
		bybitEarn(),
		bybitMargin(),
		cbeth(),
		defillamaYields(),
		frax(),
		gateLend(),
		jito(),
		kamino(),
		krakenEarn(),
		kucoinEarn(),
		lido(),
		marinade(),
		morpho(),
		okxEarn(),
		rocketpool(),
		swell(),
	}
	for i := range list {
		list[i].Formats = formats
	}
	return list
}
