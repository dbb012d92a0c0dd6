package imports

import (
	"fmt"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/schemas"
)

// market is a venue's market, with candles of one length.
type market struct {
	venue, symbol string
	interval      time.Duration
	base, quote   string
	// coinID is the coin, quoteID the coin or currency that its prices are in.
	coinID, quoteID string
}

// unknownMarket is why a market is not known here: others of its file may be.
type unknownMarket struct{ error }

// name is that of the market, whatever the length of its candles.
func (m *market) name() string { return m.venue + " " + m.symbol }

func (m *market) String() string { return m.name() }

// findMarket finds what a market trades: base and quote as they are given, else as its symbol says. The error is an unknownMarket where
// the venue is known, and its symbol or an asset is not.
func findMarket(venue, symbol, base, quote string) (*market, error) {
	v, ok := exchanges.Find(venue)
	if !ok {
		names := make([]string, 0, 20)
		for _, known := range exchanges.List() {
			names = append(names, known.Slug)
		}
		return nil, fmt.Errorf("there is no venue %.40q: name one of %s", venue, strings.Join(names, ", "))
	}
	m := &market{venue: venue, symbol: symbol, base: strings.ToUpper(base), quote: strings.ToUpper(quote)}
	if base == "" {
		split := v.Split
		if split == nil {
			split = adapter.SplitSymbol
		}
		var ok bool
		if m.base, m.quote, ok = split(symbol); !ok {
			return nil, unknownMarket{fmt.Errorf("the symbol %.60q of %s does not say what it trades: name its assets with --base and --quote", symbol, venue)}
		}
	}
	err := m.resolve()
	if err != nil && base == "" {
		// A symbol without a separator can be read in several ways: one that names assets which are known is right.
		for _, pair := range adapter.SplitsOf(m.base + m.quote) {
			other := &market{venue: venue, symbol: symbol, base: pair[0], quote: pair[1]}
			if other.resolve() == nil {
				return other, nil
			}
		}
	}
	return m, err
}

// resolve finds the coin and the quote asset of a market by the names that its venue has for them. Its error is an unknownMarket.
func (m *market) resolve() error {
	coins := schemas.Coins()
	coin, _, ok := coins.Resolve(m.venue, m.base)
	if !ok {
		return unknownMarket{fmt.Errorf("no coin is called %.40q at %s (market %.60q): if its symbol was read wrongly, name its assets with --base and --quote; "+
			"`marketlog symbols` shows which coins are known", m.base, m.venue, m.symbol)}
	}
	asset, ok := coins.ResolveQuote(m.venue, m.quote)
	if !ok {
		return unknownMarket{fmt.Errorf("no coin or currency is called %.40q at %s (quote of market %.60q): name its assets with --base and --quote", m.quote, m.venue, m.symbol)}
	}
	m.coinID, m.quoteID = coin.ID, asset.ID
	return nil
}
