package markets

import (
	"cmp"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/schemas"
)

// ranked is a coin with a market cap, the numbers of its row, and the rank that it has published, 0 for none yet. The list of all
// holds them side by side, so that the coins themselves are not looked at where nothing changed.
type ranked struct {
	schemas.Standing
	coin *coin
	rank uint32
}

// move takes a coin with a new row off the list of the last minute. Only these can have another place in the next.
func (f *fold) move(c *coin) {
	if c.rank > 0 {
		f.ranked[c.rank-1].coin = nil
	}
	if s := schemas.NewStanding(c.row, c.known); s.Ranked() {
		f.moved = append(f.moved, ranked{s, c, c.rank})
	} else {
		c.rank, c.row.Rank = 0, 0
	}
}

// rank numbers the coins by market cap, those of the same by id. A coin whose rank alone changed gets a new row too.
func (f *fold) rank(minute int64) {
	stayed := slices.DeleteFunc(f.ranked, func(r ranked) bool { return r.coin == nil })
	slices.SortFunc(f.moved, byCap)
	f.ranked = merge(stayed, f.moved)
	clear(f.moved)
	f.moved = f.moved[:0]
	for i := range f.ranked {
		r, rank := &f.ranked[i], uint32(i+1)
		if r.rank == rank {
			continue
		}
		r.rank, r.coin.rank = rank, rank
		if w := &f.watched[r.coin.place]; !w.fresh {
			f.evaluate(w, minute)
			r.Standing = schemas.NewStanding(r.coin.row, r.coin.known)
		}
		r.coin.row.Rank = rank
	}
}

// merge adds coins to others, both in the order of byCap.
func merge(list, added []ranked) []ranked {
	i, n := len(list)-1, len(added)
	list = slices.Grow(list, n)[:len(list)+n]
	for to := len(list) - 1; n > 0; to-- {
		if i >= 0 && byCap(list[i], added[n-1]) > 0 {
			list[to] = list[i]
			i--
		} else {
			list[to] = added[n-1]
			n--
		}
	}
	return list
}

func byCap(a, b ranked) int {
	if c := cmp.Compare(b.MarketCap, a.MarketCap); c != 0 {
		return c
	}
	return strings.Compare(a.coin.id, b.coin.id)
}

// standings are those of the list.
func (f *fold) standings() []schemas.Standing {
	list := make([]schemas.Standing, len(f.ranked))
	for i := range f.ranked {
		list[i] = f.ranked[i].Standing
	}
	return list
}
