// Package diskbudget keeps what an instance has on its disk within one number of bytes: the log, its archive and the tables. Where they take more,
// what is oldest is dropped, of the archive and of the tables alike: ticks first, then prices to the second, what is kept longer last.
package diskbudget

import (
	"slices"
	"time"
)

// Kind is what is dropped in the same turn.
type Kind int

// The kinds, in the order in which they are dropped.
const (
	// Ticks are those of venues, resolved.
	Ticks Kind = iota
	// Prices are those to the second, with what belongs to them.
	Prices
	// Kept is what stays where there is room for it, whatever its age.
	Kept
)

// Unit is what is dropped at once: an hour or a day of a table, or a segment of the archive.
type Unit struct {
	Kind Kind
	// Until is when the newest of it is of.
	Until time.Time
	Bytes int64
	// Of is what the one who holds it knows it by.
	Of any

	part int // the index of the one who holds it
}

// What ticks, and what prices, are left of the budget before what is dropped after them is touched: a tenth and a quarter.
const (
	ticksShare  = 10
	pricesShare = 4
)

// recent is how much older than the newest of a kind a unit is at least that is dropped of it: of an hour's table two are left, of a day's two.
func (k Kind) recent() time.Duration {
	if k == Kept {
		return 24 * time.Hour
	}
	return time.Hour
}

// plan chooses what to drop so that at least excess bytes become free, the first to be dropped first, and returns how many bytes that lacks:
// ticks, oldest first, down to their share of the limit, then prices likewise; then what is kept; then the rest of ticks and prices. The
// newest of each kind are not among them; what is of later than can be now is not that newest, and stays: it is a mistake of who wrote it, and all that is
// true would be older.
func plan(units []Unit, excess, limit int64, now time.Time) (drop []Unit, lacking int64) {
	byKind := map[Kind][]Unit{}
	held := map[Kind]int64{}
	newest := map[Kind]time.Time{}
	for _, u := range units {
		byKind[u.Kind] = append(byKind[u.Kind], u)
		held[u.Kind] += u.Bytes
		// What is whole hours or days ends up to one of them after now.
		if u.Until.After(newest[u.Kind]) && !u.Until.After(now.Add(u.Kind.recent())) {
			newest[u.Kind] = u.Until
		}
	}
	for _, of := range byKind {
		slices.SortStableFunc(of, func(a, b Unit) int { return a.Until.Compare(b.Until) })
	}
	for _, turn := range []struct {
		kind  Kind
		least int64
	}{{Ticks, limit / ticksShare}, {Prices, limit / pricesShare}, {Kept, 0}, {Ticks, 0}, {Prices, 0}} {
		for excess > 0 && len(byKind[turn.kind]) > 0 {
			oldest := byKind[turn.kind][0]
			if held[turn.kind]-oldest.Bytes < turn.least || !oldest.Until.Before(newest[turn.kind].Add(-turn.kind.recent())) {
				break
			}
			drop = append(drop, oldest)
			excess -= oldest.Bytes
			held[turn.kind] -= oldest.Bytes
			byKind[turn.kind] = byKind[turn.kind][1:]
		}
	}
	return drop, max(0, excess)
}
