package views

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
)

const (
	// servedFor is how long a price cache remembers which price it gave when.
	servedFor = 15 * time.Minute
	// servedWhole is how many of the newest prices of a coin it remembers whole: what history may not hold yet. Most coins have one
	// a second.
	servedWhole = 10
	// behindLook is how often history is asked again for a price that it does not hold yet, behindLooks times at most: sinks are two or three seconds
	// after what is served, and more where the processors are busy.
	behindLook  = 200 * time.Millisecond
	behindLooks = 30
)

// servedList is what was served from which instant on, in the order of time. Its owner locks it.
type servedList[T any] []servedFrom[T]

type servedFrom[T any] struct {
	from  int64 // by the query's clock, Unix nanoseconds
	value T
}

// at is what was served at an instant; false where that is not remembered.
func (l servedList[T]) at(at time.Time) (value T, remembered bool) {
	i := sort.Search(len(l), func(i int) bool { return l[i].from > at.UnixNano() })
	if i == 0 {
		return value, false
	}
	return l[i-1].value, true
}

// add remembers what is served from an instant on, and forgets what was served longer ago than keep: by quarters, so that each is moved three times.
func (l *servedList[T]) add(from int64, value T, keep time.Duration) {
	list := *l
	if old := sort.Search(len(list), func(i int) bool { return list[i].from >= from-int64(keep) }); old > 1 && old > len(list)/4 {
		list = append(list[:0], list[old-1:]...)
	}
	*l = append(list, servedFrom[T]{from, value})
}

// servedPrices remembers which price of each coin the cache returned at which instant of the query's clock. A price is known
// here only when it has come through the log, and that is later than its second; ServedSteps record how much.
type servedPrices struct {
	mu    sync.Mutex
	clock func() time.Time // nil: nothing is remembered
	coins [][]ServedPrice  // by rank-1, in the order of time
}

// ServedPrice is a price that a price cache gave from an instant on.
type ServedPrice struct {
	// From is that instant by the query's clock, Second the price's own, and Latest that of the record which says why there is no newer
	// price, else the same; all Unix nanoseconds.
	From, Second, Latest int64
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
	if n := len(list); n > 0 && list[n-1].Second == e.Price.Time && list[n-1].Latest == e.Latest.Time {
		list[n-1].Entry = e // the same price again, from the log instead of history
		return
	}
	// Forgotten by quarters, so that each price is moved three times.
	if old := sort.Search(len(list), func(i int) bool { return list[i].From >= now-int64(servedFor) }); old > 1 && old > len(list)/4 {
		list = append(list[:0], list[old-1:]...)
	}
	*slot = append(list, ServedPrice{From: now, Second: e.Price.Time, Latest: e.Latest.Time, Entry: e})
}

// PublishedPrices is where published prices are kept. Marks of its records name what caused them.
type PublishedPrices interface {
	// PricesOfSeconds returns the records of some seconds, as far as they are kept, in no order.
	PricesOfSeconds(ctx context.Context, seconds []PriceSecond) ([]*eventsv1.PriceRecord, error)
	// PricesPublishedAt returns what had been written of coins by an instant of log time, and served, unless that is nil: of each the newest
	// record with a price, and the newest of all if that one has a reason in place of a price, in no order.
	PricesPublishedAt(ctx context.Context, coins []string, at time.Time, served ServedPrices) ([]*eventsv1.PriceRecord, error)
	// PricesServed returns how far prices had been served at an instant; nil where nothing is recorded of it or before.
	PricesServed(ctx context.Context, at time.Time) (ServedPrices, error)
	// ServedWritten is up to when all is kept that was recorded of what was served.
	ServedWritten(ctx context.Context) (time.Time, error)
	// OldestPrice is the second (Unix) from which on all prices are kept at a time of the log.
	OldestPrice(ctx context.Context, at time.Time) (int64, error)
	// Restated returns when a replay last changed, after an instant, rows of tables of some coins, nil for any, and a time in [from, to); zero if none did.
	Restated(ctx context.Context, tables, coins []string, from, to, after time.Time) (time.Time, error)
	// PricesWritten returns up to which log time all prices are kept, by partition of prices.v1; one without any is not among them.
	PricesWritten(ctx context.Context) (map[int32]time.Time, error)
}

// Tables whose rows a replay may change.
const (
	tablePrices      = "prices"
	tableCandles     = "candles_1m"
	tableEarn        = "earn_history"
	tableEarnChanges = "earn_changes"
	tableFixings     = "earn_fixings"
)

// ErrHistoryBehind means that a price was served which history does not hold yet.
var ErrHistoryBehind = errors.New("history has not come to the price yet")

// AgedOutError means that an instant lies before the one from which on all is kept that its answer is made of.
type AgedOutError struct {
	// Kept says what is, Since from when on, the zero time where nothing is yet, and Instead what reaches further back.
	Kept    string
	Since   time.Time
	Instead string
}

func (e *AgedOutError) Error() string {
	if e.Since.IsZero() {
		return e.Kept + " from now on, and there is nothing yet"
	}
	return e.Kept + " since " + e.Since.Format(time.RFC3339) + " only"
}

// UnknownReplicaError means that nothing is recorded of what a replica served at an instant, or before.
type UnknownReplicaError struct {
	Replica string
	At      time.Time
}

func (e *UnknownReplicaError) Error() string {
	return fmt.Sprintf("nothing is recorded of what the replica %s served by %s", e.Replica, e.At.UTC().Format(time.RFC3339Nano))
}

// FaultOfParts is why an answer that is made of several pasts cannot be; nil where it can. Of those that have aged out it is the one that
// is kept for the shortest: as of its Since all are.
func FaultOfParts(parts ...error) (fault error) {
	var newest *AgedOutError
	for _, err := range parts {
		var aged *AgedOutError
		switch {
		case errors.As(err, &aged) && (newest == nil || aged.Since.After(newest.Since)):
			fault, newest = err, aged
		case fault == nil:
			fault = err
		}
	}
	return fault
}

// AsOf returns the prices of coins that were served at an instant, by coin id; a coin that had none is not among them. What this
// process remembers to have served counts before how far any had read the log by then, and that, where it is recorded, before what had
// been written. Prices that a replay has changed since are read from the log. It fails with an *AgedOutError where not every price
// is kept any more, and with ErrHistoryBehind where one is not kept yet, after it has waited for it for six seconds. Partition and Offset
// of what was read from history are 0.
func (b *PriceCache) AsOf(ctx context.Context, history PublishedPrices, coins []schemas.Coin, asOf time.Time) (map[string]*Entry, error) {
	return onceKept(ctx, func() (map[string]*Entry, error) { return b.asOf(ctx, history, coins, asOf) })
}

// onceKept reads what history may not hold yet: again, for six seconds, while read fails with ErrHistoryBehind.
func onceKept[T any](ctx context.Context, read func() (T, error)) (T, error) {
	for looks := 1; ; looks++ {
		value, err := read()
		if !errors.Is(err, ErrHistoryBehind) || looks == behindLooks {
			return value, err
		}
		select {
		case <-ctx.Done():
			return value, ErrHistoryBehind
		case <-time.After(behindLook):
		}
	}
}

// asOf is AsOf without waiting.
func (b *PriceCache) asOf(ctx context.Context, history PublishedPrices, coins []schemas.Coin, asOf time.Time) (map[string]*Entry, error) {
	entries := make(map[string]*Entry, len(coins))
	remembered, seconds := map[string]ServedPrice{}, []PriceSecond{}
	byID, unknown := map[string]schemas.Coin{}, []string{}
	mine := b.steps.mine(ctx)
	for _, coin := range coins {
		if coin.Rank == 0 {
			continue // none of the table's: venues make no price of it
		}
		byID[coin.ID] = coin
		switch served, known := b.ServedAt(coin, asOf); {
		case !mine:
			unknown = append(unknown, coin.ID)
		case known && served.Entry != nil:
			entries[coin.ID] = served.Entry
		case known:
			remembered[coin.ID] = served
			seconds = append(seconds, PriceSecond{CoinID: coin.ID, Second: served.Second / int64(time.Second)})
			if served.Latest != served.Second {
				seconds = append(seconds, PriceSecond{CoinID: coin.ID, Second: served.Latest / int64(time.Second)})
			}
		default:
			unknown = append(unknown, coin.ID)
		}
	}
	fault := func(err error) error {
		return fmt.Errorf("reading prices as of %s: %w", asOf.Format(time.RFC3339Nano), err)
	}
	if len(seconds) > 0 {
		records, err := history.PricesOfSeconds(ctx, seconds)
		if err != nil {
			return nil, fault(err)
		}
		oldest := asOf
		for _, served := range remembered {
			oldest = earlier(oldest, time.Unix(0, served.Second))
		}
		records, err = b.asPublished(ctx, history, records, slices.Collect(maps.Keys(remembered)), asOf, oldest, func(p *eventsv1.Price, _ *eventsv1.Mark) (counts, later bool) {
			served := remembered[p.CoinId]
			return p.Time == served.Second || p.Time == served.Latest, p.Time > max(served.Second, served.Latest)
		})
		if err != nil {
			return nil, err
		}
		join(entries, records, byID)
		for id, served := range remembered {
			if e := entries[id]; e == nil || e.Price.Time != served.Second || e.Latest.Time != served.Latest {
				return nil, ErrHistoryBehind
			}
		}
	}
	if len(unknown) == 0 {
		return entries, nil
	}
	if err := b.kept(ctx, history, unknown, asOf); err != nil {
		return nil, err
	}
	served, err := history.PricesServed(ctx, asOf)
	if err != nil {
		return nil, fault(err)
	}
	if replica := read.ReplicaOf(ctx); replica != "" && served == nil {
		return nil, fault(&UnknownReplicaError{replica, asOf})
	}
	records, err := history.PricesPublishedAt(ctx, unknown, asOf, served)
	if err != nil {
		return nil, fault(err)
	}
	records, err = b.asPublished(ctx, history, records, unknown, asOf, asOf.Add(-schemas.PriceRepeat), func(p *eventsv1.Price, mark *eventsv1.Mark) (counts, later bool) {
		later = max(p.Time, p.Published) > asOf.UnixNano()
		return !later && served.Had(mark), later
	})
	if err != nil {
		return nil, err
	}
	join(entries, records, byID)
	return entries, nil
}

// kept fails where history does not have all prices around an instant: not any more, or not yet.
func (b *PriceCache) kept(ctx context.Context, history PublishedPrices, coins []string, asOf time.Time) error {
	oldest, err := history.OldestPrice(ctx, time.Unix(0, b.Now()))
	if err != nil {
		return err
	}
	if since := time.Unix(oldest, 0).UTC(); asOf.Before(since) {
		return &AgedOutError{Kept: "every second's price is kept", Since: since,
			Instead: "candles reach further back: /api/v1/charts/{coinId}, and explanations of candle/{coin}/1m/{start}"}
	}
	recorded, err := history.ServedWritten(ctx)
	if err != nil {
		return err
	}
	// What others served before this process did is recorded before its own steps.
	if _, answers := b.steps.began(); answers && recorded.Before(b.steps.recordedBy(ctx, asOf.UnixNano())) {
		return ErrHistoryBehind
	}
	written, err := history.PricesWritten(ctx)
	if err != nil {
		return err
	}
	for _, id := range coins {
		partition := PartitionOf(id, int32(len(b.nows)))
		// The log's own now, as far as this process has read it, ends what there is to be written.
		until := logged(min(asOf.UnixNano(), b.nows[partition].Load()))
		if at, known := written[partition]; known && at.Before(until) {
			return ErrHistoryBehind
		}
	}
	return nil
}

// logged is a time, Unix nanoseconds, as records of the log have theirs: in milliseconds.
func logged(at int64) time.Time { return time.UnixMilli(at / int64(time.Millisecond)) }

// join makes entries of records of coins: of the newest price of each, and of the record that says why there is no newer one.
func join(entries map[string]*Entry, records []*eventsv1.PriceRecord, coins map[string]schemas.Coin) {
	for _, rec := range records {
		if p := rec.GetPrice(); p.GetReason() == "" {
			entries[p.CoinId] = &Entry{Coin: coins[p.CoinId], Price: p, Latest: p, Mark: rec.Mark}
		}
	}
	for _, rec := range records {
		if p := rec.GetPrice(); p.GetReason() != "" && entries[p.CoinId] != nil {
			entries[p.CoinId].Latest = p
		}
	}
}
