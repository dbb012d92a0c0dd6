package market

import (
	"cmp"
	"slices"
	"time"
)

// Of a venue with outliers, Outliers markets are far off at times, of coins down to OutlierRank, so that other venues have
// the same ones.
const (
	Outliers    = 8
	OutlierRank = 60
)

// Spell is how long a strange market stays as it is: it is off in half of its spells, so that there is both to see within
// minutes.
const Spell = 10 * time.Minute

const (
	spell     = int64(Spell)
	offFactor = 2.4
)

// off is how far the market's price is from that of others.
func (m *Market) off(t int64) float64 {
	if m.strange == 0 || m.strange.At(FloorDiv(t, spell))&1 == 0 {
		return 1
	}
	return offFactor
}

// Estrange picks those of a venue's markets that are far off all others in some of their time: of well-known coins, in
// one quote asset.
func Estrange(markets []*Market, quote string, s Seed) {
	var known []*Market
	for _, m := range markets {
		if m.Quote == quote && m.BaseAsset.Parent == nil && m.BaseAsset.Rank <= OutlierRank {
			known = append(known, m)
		}
	}
	slices.SortFunc(known, func(a, b *Market) int { return cmp.Compare(s.Of(a.Symbol), s.Of(b.Symbol)) })
	for _, m := range known[:min(Outliers, len(known))] {
		m.strange = s.Of(m.Symbol)
	}
}
