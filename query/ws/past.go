package ws

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// Past reads the prices that memory holds no longer. All of it may wait, and fail while the store is away.
type Past interface {
	// Identity names the log and the view of it that is read: another one where either is another.
	Identity(ctx context.Context) (string, error)
	// Materialized is, by partition of prices.v1, the offset before which all records are in the store.
	Materialized(ctx context.Context) (map[int32]int64, error)
	// Oldest is the second (Unix) from which on the store has all prices, at a time of the log; 0 if none was ever dropped.
	Oldest(ctx context.Context, at time.Time) (int64, error)
	// Prices hands over the prices of seconds after one and up to another, of the coins with these ids or of all, oldest
	// second first, at most so many.
	Prices(ctx context.Context, after, until int64, coins []string, most int, visit func(PastPrice)) error
}

// PastPrice is one published price, of a second (Unix) and a partition of prices.v1.
type PastPrice struct {
	CoinID, Source string
	Price, Volume  float64
	Second         int64
	Partition      int32
}

const (
	// pageFirst is how many seconds of log time a first read of the store spans; a page with few prices makes the next one
	// twice as long, up to pageLongest.
	pageFirst   = 10
	pageLongest = 3600
	// pageMost bounds the prices of a page, which a reader holds until it was sent them.
	pageMost = 8_192
	// pageNamed is up to how many coins the store is asked for by name.
	pageNamed = 100
	// seedSeconds is how long before a page the price before it is looked for: one that stands is published anew within it.
	seedSeconds = int64(schemas.PriceRepeat/time.Second) + 1
	// pagesAll and pagesEach bound how many pages are read and held at a time, by all readers and by those of one budget.
	pagesAll  = 16
	pagesEach = 2
	// ledgerPause is how long the ledger is left alone between two looks.
	ledgerPause = 100 * time.Millisecond
)

// errLagging means that the store has not come to where memory begins.
var errLagging = errors.New("the store has not come to where memory begins")

// page is a part of the past: prices by second, and how far it goes.
type page struct {
	batches []batch
	until   position
	// from is the second from which it could be told, if what was asked for before it is kept no longer; else 0.
	from int64
	// turn means that one must be given back.
	turn bool
}

// pastReader reads the past after a position, page by page.
type pastReader struct {
	// span is how many seconds of log time the next page spans.
	span int64
	// before is the last price read of each coin, by rank-1; nil where it must be looked for.
	before []float64
}

// awaitStore returns up to where the store tells of each partition what lies after a position: to where memory begins, or
// no further than the position where memory has it all. It waits for the store to come so far, and returns errLagging once
// patience is over.
func (h *Hub) awaitStore(ctx context.Context, patience time.Time, at position) (until position, err error) {
	ctx, cancel := context.WithDeadline(ctx, patience)
	defer cancel()
	until, pulses := h.ring.floors()
	for {
		var next map[int32]int64
		lacking := -1
		if at.behind(until) {
			next, err = h.deps.Past.Materialized(ctx)
		}
		for i := range until {
			if at[i] < until[i] && next[int32(i)] <= pulses[i] {
				lacking = i
			}
		}
		if err == nil && lacking < 0 {
			for i := range until {
				until[i] = max(until[i], at[i])
			}
			return until, nil
		}
		timer := time.NewTimer(ledgerPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if err != nil {
				return nil, fmt.Errorf("%w: reading its ledger: %w", errLagging, err)
			}
			return nil, fmt.Errorf("%w: it has partition %d up to offset %d of prices.v1, want more than %d", errLagging, lacking, next[int32(lacking)], pulses[lacking])
		}
	}
}

// read reads the prices of a selection in the next page after a position.
func (r *pastReader) read(ctx context.Context, h *Hub, patience time.Time, at position, of selection) (page, error) {
	until, err := h.awaitStore(ctx, patience, at)
	if err != nil || !at.behind(until) {
		return page{until: at}, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.StoreWait)
	defer cancel()
	oldest, err := h.deps.Past.Oldest(ctx, time.Unix(until.newest(), 0))
	if err != nil {
		return page{}, fmt.Errorf("finding the oldest prices: %w", err)
	}
	out := page{}
	first := firstLacking(at, until)
	if oldest > first+1 {
		out.from, first = oldest, oldest-1
		at, r.before = at.upTo(first, until), nil
	}
	last := min(first+r.span, until.newest())
	from, most := first, pageMost
	if r.before == nil {
		r.before = make([]float64, len(h.known))
		from, most = first-seedSeconds, most+int(seedSeconds)*len(h.known)
	}
	rows := 0
	err = h.deps.Past.Prices(ctx, from, last, h.named(of), most, func(p PastPrice) {
		rows++
		coin, known := h.deps.Prices.Coins().ByID(p.CoinID)
		if !known || !of.has(coin.Rank) || int(p.Partition) >= len(at) || p.Second > until[p.Partition] {
			return // memory tells what is newer
		}
		previous := r.before[coin.Rank-1]
		r.before[coin.Rank-1] = p.Price
		if p.Second <= at[p.Partition] {
			return
		}
		if n := len(out.batches); n == 0 || out.batches[n-1].second != p.Second {
			out.batches = append(out.batches, batch{second: p.Second})
		}
		b := &out.batches[len(out.batches)-1]
		b.prices = append(b.prices, told{
			price: p.Price, volume: p.Volume, previous: previous, second: uint32(p.Second), rank: uint16(coin.Rank), source: h.ring.nameSource(p.Source),
		})
	})
	if err != nil {
		return page{}, fmt.Errorf("reading prices: %w", err)
	}
	switch n := len(out.batches); {
	case rows >= most && n > 1:
		// The last second may be a part. The next page begins with it, and looks for the prices before it anew.
		last, out.batches, r.before = out.batches[n-1].second-1, out.batches[:n-1], nil
		r.span = pageFirst
	case rows < pageMost/4:
		r.span = min(2*r.span, pageLongest)
	}
	for i := range out.batches {
		b := &out.batches[i]
		slices.SortFunc(b.prices, func(a, b told) int { return int(a.rank) - int(b.rank) })
		b.after = at.upTo(b.second, until)
	}
	out.until = at.upTo(last, until)
	return out, nil
}

// firstLacking is the oldest second of a position among those that lie before another's.
func firstLacking(at, until position) int64 {
	first := int64(math.MaxInt64)
	for i := range at {
		if at[i] < until[i] {
			first = min(first, at[i])
		}
	}
	return first
}

// named are the ids of a small selection; nil of a large one, which is read whole and sifted.
func (h *Hub) named(of selection) (ids []string) {
	for _, coin := range h.deps.Prices.Coins().All() {
		if !of.has(coin.Rank) {
			continue
		}
		if len(ids) == pageNamed {
			return nil
		}
		ids = append(ids, coin.ID)
	}
	return ids
}

// turns bound how many readers of the past there are at a time. Safe for concurrent use.
type turns struct {
	mu      sync.Mutex
	taken   int
	each    map[string]int
	changed chan struct{}
}

func newTurns() *turns { return &turns{each: map[string]int{}, changed: make(chan struct{})} }

// take waits for a turn of a budget; give ends it.
func (t *turns) take(ctx context.Context, budget string) error {
	for {
		t.mu.Lock()
		if t.taken < pagesAll && t.each[budget] < pagesEach {
			t.taken++
			t.each[budget]++
			t.mu.Unlock()
			return nil
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *turns) give(budget string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	if t.each[budget]--; t.each[budget] == 0 {
		delete(t.each, budget)
	}
	close(t.changed)
	t.changed = make(chan struct{})
}
