package views

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// toldFor is how long a price cache remembers which price it gave when.
	servedFor = 15 * time.Minute
	// toldWhole is how many of the newest prices of a coin it remembers whole: what history may not hold yet.
	servedWhole = 5
)

// servedPrices remembers which price of each coin the cache returned at which instant of the query's clock. A price is known
// here only when it has come through the log, and that is later than its second, by a time that no record holds.
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

// PublishedPrices is where published prices are kept.
type PublishedPrices interface {
	// PriceAt returns the newest published price of a coin (its reason is empty) whose time is at
	// or before an instant, with its mark; nil if none is kept.
	PriceAt(ctx context.Context, coinID string, at time.Time) (*eventsv1.PriceRecord, error)
	// PricePublishedAt is PriceAt of what had been written by an instant of log time.
	PricePublishedAt(ctx context.Context, coinID string, at time.Time) (*eventsv1.PriceRecord, error)
}

// ErrHistoryBehind means that a price was given which history does not hold yet.
var ErrHistoryBehind = errors.New("history has not come to the price yet")

// AsOf returns the price of a coin that was served at an instant, with its mark; nil if none is kept. What this process remembers to have
// given counts before what had been written by then.
func (b *PriceCache) AsOf(ctx context.Context, history PublishedPrices, coin schemas.Coin, asOf time.Time) (rec *eventsv1.PriceRecord, err error) {
	served, known := b.ServedAt(coin, asOf)
	switch {
	case known && served.Entry != nil:
		return &eventsv1.PriceRecord{Mark: served.Entry.Mark, Body: &eventsv1.PriceRecord_Price{Price: served.Entry.Price}}, nil
	case known:
		rec, err = history.PriceAt(ctx, coin.ID, time.Unix(0, served.Second))
	default:
		rec, err = history.PricePublishedAt(ctx, coin.ID, asOf)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the price of %s as of %s: %w", coin.ID, asOf.Format(time.RFC3339Nano), err)
	}
	if known && rec.GetPrice().GetTime() != served.Second {
		return nil, ErrHistoryBehind
	}
	return rec, nil
}
