package views

import (
	"sort"
	"sync"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

const (
	// toldFor is how long a price cache remembers which price it gave when.
	servedFor = 15 * time.Minute
	// toldWhole is how many of the newest prices of a coin it remembers whole: what history may not hold yet.
	servedWhole = 5
)

// servedPrices remembers which price of each coin the cache returned at which instant of the query's clock. A price is known
// here only when it has come through the log, and that is later than its second, by a time that no record tells.
type servedPrices struct {
	mu    sync.Mutex
	clock func() time.Time // nil: nothing is remembered
	coins [][]ServedPrice  // by rank-1, in the order of time
}

// ServedPrice is a price that a price cache gave from an instant on.
type ServedPrice struct {
	// From is that instant by the query's clock, Second the price's own; both Unix nanoseconds.
	From, Second int64
	// Entry is nil where history must be asked for the price.
	Entry *Entry
}

func newServedPrices(coins int) servedPrices {
	return servedPrices{coins: make([][]ServedPrice, coins)}
}

// RememberBy makes the price cache remember from when on it gave each price, by a clock. It must be called before the
// price cache is filled.
func (b *PriceCache) RememberBy(clock func() time.Time) { b.served.clock = clock }

// ServedAt returns the price of a coin that the cache gave at an instant; false where it does not remember so far
// back, or gave none yet.
func (b *PriceCache) ServedAt(coin schemas.Coin, at time.Time) (ServedPrice, bool) {
	if coin.Rank == 0 {
		return ServedPrice{}, false // none of the table's
	}
	t := &b.served
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.coins[coin.Rank-1]
	i := sort.Search(len(list), func(i int) bool { return list[i].From > at.UnixNano() })
	if i == 0 {
		return ServedPrice{}, false
	}
	return list[i-1], true
}

// note remembers a price, before any reader gets it.
func (t *servedPrices) note(e *Entry) {
	if t.clock == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock().UnixNano()
	slot := &t.coins[e.Coin.Rank-1]
	list := *slot
	if n := len(list) - servedWhole; n >= 0 {
		list[n].Entry = nil
	}
	if n := len(list); n > 0 && list[n-1].Second == e.Price.Time {
		list[n-1].Entry = e // the same price again, from the log instead of history
		return
	}
	// Forgotten by halves, so that each price is moved once.
	if old := sort.Search(len(list), func(i int) bool { return list[i].From >= now-int64(servedFor) }); old > 1 && old > len(list)/2 {
		list = append(list[:0], list[old-1:]...)
	}
	*slot = append(list, ServedPrice{From: now, Second: e.Price.Time, Entry: e})
}
