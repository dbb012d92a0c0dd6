package venues

import (
	"cmp"
	"slices"

	"github.com/marketlog/marketlog/producers/simulator/market"
)

// ranked is how far down the coin table venues list, but for what they name themselves.
const ranked = 320

// list gives a venue its markets: all coins of the first ranks and, of the others, those that the venue
// happens to have.
func list(w *market.World, v *Venue) []*market.Market {
	var markets []*market.Market
	listing := w.Seed.Of("listing " + v.Slug)
	for i, q := range v.Quotes {
		quote := w.QuoteAsset(v.Slug, q.Asset)
		if quote == nil {
			continue
		}
		add := func(base string, a *market.Asset, weight float64) {
			// A code that the venue uses for something else, or that the table gives to another coin, is left out.
			if b := w.QuoteAsset(v.Slug, base); a == nil || b != a || a == quote {
				return
			}
			// The larger coin is the quote: ETH in BTC, not BTC in ETH.
			if !quote.Stable && a.Rank < quote.Rank {
				return
			}
			m := w.NewMarket(market.Listing{
				Venue: v.Slug, Base: base, Quote: q.Asset, Symbol: v.Symbol(base, q.Asset), BaseAsset: a, QuoteAsset: quote,
				Decimals: cmp.Or(v.PriceDecimals, 12), DayVolume: a.Volume * v.Share / 16 * weight,
			})
			if m != nil {
				markets = append(markets, m)
			}
		}
		for _, c := range w.Table.All()[:ranked] {
			a := w.Coins[c.ID]
			// What is stable is worth a market against currencies, and against the first quote.
			listed := c.Rank <= q.ToRank && (c.Rank <= 30 || listing.Unit(int64(c.Rank)) < 0.7)
			if listed && (!a.Stable || i == 0 || quote.Rank == 0) {
				base := c.Symbol
				if own, ok := v.Assets[base]; ok {
					base = own
				}
				add(base, a, 1/float64(1+i))
			}
		}
		if i == 0 {
			for _, f := range v.Fiats {
				add(f, w.Fiats[f], 1)
			}
			for _, symbol := range v.Beyond {
				add(symbol, w.QuoteAsset(v.Slug, symbol), 1)
			}
		}
	}
	slices.SortFunc(markets, func(a, b *market.Market) int { return cmp.Compare(a.Symbol, b.Symbol) })
	return markets
}
