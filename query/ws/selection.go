package ws

import (
	"math/bits"
	"strings"

	"github.com/marketlog/marketlog/query/views"
)

// selection is a set of coins, by rank.
type selection []uint64

func newSelection(coins int) selection { return make(selection, (coins+63)/64) }

func (s selection) has(rank int) bool { return s[(rank-1)/64]&(1<<((rank-1)%64)) != 0 }
func (s selection) add(rank int)      { s[(rank-1)/64] |= 1 << ((rank - 1) % 64) }
func (s selection) remove(rank int)   { s[(rank-1)/64] &^= 1 << ((rank - 1) % 64) }

func (s selection) equal(other selection) bool {
	for i := range s {
		if s[i] != other[i] {
			return false
		}
	}
	return true
}

func (s selection) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// ranks lists the coins of a selection.
func (s selection) ranks() (ranks []int) {
	for rank := 1; rank <= 64*len(s); rank++ {
		if s.has(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// everything is the selection of one who did not ask: each symbol's highest ranked coin.
func everything(priceCache *views.PriceCache) selection {
	all := priceCache.Coins().All()
	s := newSelection(len(all))
	for _, coin := range all {
		if priceCache.Leads(coin) {
			s.add(coin.Rank)
		}
	}
	return s
}

// find returns the ranks of the coins that names mean, as in all other operations, and the names that mean no coin which
// venues are read for.
func find(snapshot *views.Snapshot, names []string) (ranks []int, unknown []string) {
	for _, name := range names {
		named, ok := snapshot.Find(strings.TrimSpace(name))
		if !ok || named.Own.Rank == 0 {
			unknown = append(unknown, name)
			continue
		}
		ranks = append(ranks, named.Own.Rank)
	}
	return ranks, unknown
}
