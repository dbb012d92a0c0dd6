// Package views holds in memory what the reading side answers from: the newest prices, the catalog of coins, yields, exchange
// rates and recent figures of the whole market. Each is filled from topics by Apply, in the order of the log, and read by
// many goroutines through snapshots that do not change. Nothing here knows of HTTP; what was longer ago is read from history.
package views

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// Ages of published values, by the query's own clock.
const (
	// StaleAfter is the age from which a price counts as stale. An unchanged price is published again every
	// schemas.PriceRepeat, so only one that nobody looks after grows as old.
	StaleAfter = 30 * time.Second
	// CriticalAfter is the age from which a value is critically stale.
	CriticalAfter = 2 * time.Hour
)

// PriceCache holds the current price of every coin in memory, as the tail of prices.v1 delivers them. Reads
// take no lock and never wait. Safe for concurrent use.
type PriceCache struct {
	coins *schemas.CoinTable
	// setting is held by who replaces entries.
	setting sync.Mutex
	// entries are at rank-1 of their coin.
	entries []atomic.Pointer[Entry]
	// reasons are what shows, by rank, that a coin has no price of which no price is known, until one is; setting guards them.
	reasons map[int]*Entry
	// nows is the log's now, by partition of prices.v1.
	nows    []atomic.Int64
	version atomic.Uint64
	// staleAfter is the age from which a price is stale.
	staleAfter time.Duration
	served     servedPrices
	steps      *ServedSteps
	log        PriceLog // nil: what a replay has changed cannot be answered as it was
}

// Entry is the current price of a coin. It never changes: a new price is a new entry.
type Entry struct {
	Coin schemas.Coin
	// Price is the last published one, which keeps its own time while Latest has a reason for not
	// being a price.
	Price, Latest *eventsv1.Price
	// Mark is what caused the price, Partition and Offset where it is in prices.v1.
	Mark      *eventsv1.Mark
	Partition int32
	Offset    int64
	// latestOffset is that of Latest.
	latestOffset int64
}

// after reports whether what an entry holds is newer than what is held: by the second that was evaluated, and
// by its place in the log within one. Offsets alone would let a tail that begins before the end replace what
// history returned, which knows no offsets of prices.v1.
func (e *Entry) after(held *Entry) bool {
	if e.Latest.Time != held.Latest.Time {
		return e.Latest.Time > held.Latest.Time
	}
	return e.latestOffset > held.latestOffset
}

// without is the entry of a price that is not one any more, with the reason.
func (e *Entry) without(reason *Entry) *Entry {
	kept := *e
	kept.Latest, kept.latestOffset = reason.Latest, reason.latestOffset
	return &kept
}

// Freshness classifies the age of a value.
type Freshness struct{ Stale, Critical bool }

// TailRecord is one record of a followed topic.
type TailRecord = stream.TailRecord

// NewPriceCache makes an empty cache of the coins of a table.
func NewPriceCache(coins *schemas.CoinTable) *PriceCache {
	partitions := int32(1)
	if topic, err := schemas.TopicNamed(schemas.TopicPrices); err == nil {
		partitions = topic.Partitions
	}
	return &PriceCache{coins: coins, reasons: map[int]*Entry{}, entries: make([]atomic.Pointer[Entry], len(coins.All())), nows: make([]atomic.Int64, partitions), staleAfter: StaleAfter, served: newServedPrices(len(coins.All())), steps: newServedSteps(partitions)}
}

// SetStaleAfter sets the age from which a price is stale, where the clock of the query runs faster than the
// machine's. It must be called before the cache is used.
func (b *PriceCache) SetStaleAfter(age time.Duration) { b.staleAfter = age }

// Coins returns the table that the cache's coins are of.
func (b *PriceCache) Coins() *schemas.CoinTable { return b.coins }

// Quote reports what a market is quoted in, which the log names by coin id or currency code: as pairs write it, the upper-case
// symbol of a coin or code of a currency, and the id where it is a coin.
func (b *PriceCache) Quote(id string) (code, coinID string) {
	if coin, ok := b.coins.ByID(id); ok {
		return coin.Symbol, coin.ID
	}
	return strings.ToUpper(id), ""
}

// Apply takes one record of prices.v1: from its tail, or a latest one that was kept elsewhere when
// the cache is filled from there. A record that is older than what the cache holds, by the second it
// reports of, is skipped, wherever it comes from: the time of a coin's price never goes back.
func (b *PriceCache) Apply(rec stream.TailRecord) error {
	record, ok := rec.Marked.(*eventsv1.PriceRecord)
	if !ok {
		return nil
	}
	if price := record.GetPrice(); price != nil {
		b.set(&Entry{Price: price, Latest: price, Mark: record.Mark, Partition: rec.Partition, Offset: rec.Offset, latestOffset: rec.Offset})
		b.advance(rec.Partition, price.Time)
	}
	if pulse := record.GetPulse(); pulse != nil {
		b.advance(rec.Partition, pulse.Now)
		b.steps.causeEnded(record.Mark)
	}
	return nil
}

func (b *PriceCache) set(e *Entry) {
	coin, ok := b.coins.ByID(e.Price.CoinId)
	if !ok {
		return // written by a newer version, whose table has more coins
	}
	e.Coin = coin
	b.setting.Lock()
	defer b.setting.Unlock()
	defer b.steps.read(e.Mark)
	slot := &b.entries[coin.Rank-1]
	held := slot.Load()
	if held != nil && !e.after(held) {
		return
	}
	reason := b.reasons[coin.Rank]
	switch {
	case e.Price.Reason == "":
		if delete(b.reasons, coin.Rank); reason != nil && reason.after(e) {
			e = e.without(reason)
		}
	case held != nil:
		e = held.without(e)
	default: // there is no price yet to keep
		if reason == nil || e.after(reason) {
			b.reasons[coin.Rank] = e
		}
		return
	}
	b.served.note(e)
	slot.Store(e)
	b.version.Add(1)
}

func (b *PriceCache) advance(partition int32, now int64) {
	if int(partition) >= len(b.nows) {
		return
	}
	if slot := &b.nows[partition]; now > slot.Load() {
		slot.Store(now)
		b.version.Add(1)
	}
}

// Version changes whenever a price or a now does.
func (b *PriceCache) Version() uint64 { return b.version.Load() }

// Now is the newest clock that the cache folded, Unix nanoseconds; 0 before the first.
func (b *PriceCache) Now() int64 {
	now := int64(0)
	for i := range b.nows {
		now = max(now, b.nows[i].Load())
	}
	return now
}

// Entry returns the current price of a coin; nil before its first, and for a coin that is not in the table, whose Rank is 0.
func (b *PriceCache) Entry(coin schemas.Coin) *Entry {
	if coin.Rank == 0 {
		return nil
	}
	return b.entries[coin.Rank-1].Load()
}

// Priced returns the ids of the coins that have an entry.
func (b *PriceCache) Priced() (ids []string) {
	b.Entries(func(e *Entry) { ids = append(ids, e.Coin.ID) })
	return ids
}

// Entries hands the current prices to visit by rank, the largest coin first.
func (b *PriceCache) Entries(visit func(*Entry)) {
	for i := range b.entries {
		if e := b.entries[i].Load(); e != nil {
			visit(e)
		}
	}
}

// Leads reports whether a coin is the largest of the table's with its symbol.
func (b *PriceCache) Leads(coin schemas.Coin) bool {
	with := b.coins.BySymbol(coin.Symbol)
	return len(with) == 0 || with[0].ID == coin.ID
}

// Freshness classifies an entry at a time of the query's clock, by the price's own second. The log's now
// shows nothing here: it may have gone on without this price, and does not advance when all producers are dead.
// A second so far ahead of the clock that one of them must be wrong counts as stale too.
func (b *PriceCache) Freshness(e *Entry, now time.Time) Freshness {
	age := time.Duration(now.UnixNano() - e.Price.Time)
	return Freshness{
		Stale:    age.Abs() > b.staleAfter || e.Latest.Reason != "",
		Critical: age > CriticalAfter,
	}
}

// Ages are how old the prices of a price cache are.
type Ages struct {
	// Newest, Median, P95 (the age that 95 % of the prices do not exceed) and Oldest are ages of prices; 0 where there is
	// none.
	Newest, Median, P95, Oldest time.Duration
	// Fresh, Stale and Critical count prices; those that are critical are stale too.
	Fresh, Stale, Critical int
}

// Ages takes the ages of all prices at a time of the query's clock.
func (b *PriceCache) Ages(now time.Time) Ages {
	var ages Ages
	var all []time.Duration
	b.Entries(func(e *Entry) {
		fresh := b.Freshness(e, now)
		if fresh.Stale {
			ages.Stale++
		} else {
			ages.Fresh++
		}
		if fresh.Critical {
			ages.Critical++
		}
		all = append(all, time.Duration(now.UnixNano()-e.Price.Time))
	})
	if len(all) == 0 {
		return ages
	}
	slices.Sort(all)
	ages.Newest, ages.Median, ages.P95, ages.Oldest = all[0], all[len(all)/2], all[(len(all)*95-1)/100], all[len(all)-1]
	return ages
}

// CountStale counts the stale prices at a time of the query's clock. While the cache's version is unchanged, answers that
// depend on freshness are the same exactly as long as this number is.
func (b *PriceCache) CountStale(now time.Time) int {
	stale := 0
	b.Entries(func(e *Entry) {
		if b.Freshness(e, now).Stale {
			stale++
		}
	})
	return stale
}

// EntryCache keeps what was last encoded from each coin's entry, so that each change is encoded at most
// once per shape, by its first reader.
type EntryCache[T any] struct {
	slots []atomic.Pointer[cachedValue[T]]
}

type cachedValue[T any] struct {
	entry *Entry
	fresh Freshness
	of    OthersKey
	made  T
}

// NewEntryCache makes an empty one for the coins of a price cache.
func NewEntryCache[T any](b *PriceCache) *EntryCache[T] {
	return &EntryCache[T]{make([]atomic.Pointer[cachedValue[T]], len(b.entries))}
}

// Get returns what make makes of the entry, from memory where neither entry nor freshness changed, nor which other coins are
// published beside it.
func (m *EntryCache[T]) Get(e *Entry, fresh Freshness, of OthersKey, make func() (T, error)) (T, error) {
	slot := &m.slots[e.Coin.Rank-1]
	if held := slot.Load(); held != nil && held.entry == e && held.fresh == fresh && held.of == of {
		return held.made, nil
	}
	made, err := make()
	if err == nil {
		slot.Store(&cachedValue[T]{e, fresh, of, made})
	}
	return made, err
}

// Spot is the current price of a coin, in USD.
type Spot struct {
	Price float64
	// Time is when it was made, or reported by a source's clock; Unix nanoseconds.
	Time int64
	// Source is schemas.PriceSourceMedian for the median over venues, else the slug of the reference source that reports it.
	Source string
	// Entry is what the median was made of; nil for a price that a source reports.
	Entry *Entry
	// Volume24h is in USD; nil where nobody reports it.
	Volume24h *float64
	Freshness
	Simulated bool
}

// Spot returns the price of a coin of a snapshot at a time of the query's clock, which all operations serve alike: the median over
// venues until it is schemas.OwnPriceFor old, then the newest there is, of venues or of a reference source. The coin's row says
// the same as of the minute. It is false where nobody reports a price. A source's price is stale from StatisticsStaleAfter on.
func (b *PriceCache) Spot(snapshot *Snapshot, coin *CatalogCoin, now time.Time) (Spot, bool) {
	e, row := b.Entry(coin.Own), coin.Market
	if e != nil && (row == nil || row.PriceSource == schemas.PriceSourceMedian || row.PriceTime <= e.Price.Time || now.UnixNano()-e.Price.Time <= int64(schemas.OwnPriceFor)) {
		return b.own(e, now), true
	}
	if row == nil {
		return Spot{}, false
	}
	at := cmp.Or(row.PriceTime, row.Time)
	age := now.Sub(time.Unix(0, at))
	return Spot{Price: row.Price, Time: at, Source: row.PriceSource, Volume24h: row.Volume24H,
		Freshness: Freshness{Stale: age.Abs() > StatisticsStaleAfter, Critical: age > CriticalAfter},
		Simulated: row.Simulated || snapshot.Notices[row.PriceSource].GetSimulated()}, true
}

// SpotOf is Spot as of a past instant, of the entry that was served then, nil for none. It is false where a reference source may have
// served the price: rows of coins are not kept as they were served.
func (b *PriceCache) SpotOf(e *Entry, asOf time.Time) (Spot, bool) {
	if e == nil || asOf.UnixNano()-e.Price.Time > int64(schemas.OwnPriceFor) {
		return Spot{}, false
	}
	return b.own(e, asOf), true
}

// own is the price that venues make, at a time of the query's clock.
func (b *PriceCache) own(e *Entry, now time.Time) Spot {
	return Spot{Price: e.Price.Price, Time: e.Price.Time, Source: schemas.PriceSourceMedian, Entry: e, Volume24h: &e.Price.Volume24H,
		Freshness: b.Freshness(e, now), Simulated: e.Price.Simulated}
}
