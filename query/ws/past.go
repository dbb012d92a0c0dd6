package ws

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/marketlog/marketlog/query"
)

// Past reads the prices that memory holds no longer. All of it may wait, and fail while the store is away.
type Past interface {
	query.ChannelStore
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
	// pageFirst is how many steps of a channel a first read of the store spans; a page with few entries makes the next one
	// twice as long, up to pageLongest.
	pageFirst   = 10
	pageLongest = 3600
	// pageMost bounds the entries of a page, which a reader holds until it was sent them.
	pageMost = 8_192
	// pageNamed is up to how many coins the store is asked for by name.
	pageNamed = 100
	// pagesAll and pagesEach bound how many pages are read and held at a time, by all readers and by those of one budget.
	pagesAll  = 16
	pagesEach = 2
	// ledgerPause is how long the ledger is left alone between two looks.
	ledgerPause = 100 * time.Millisecond
)

// errLagging means that the store has not come to where memory begins.
var errLagging = errors.New("the store has not come to where memory begins")

// page is a part of the past: entries by second, and how far it goes.
type page struct {
	batches []batch
	until   position
	// from is the second from which it could be sent, if what was asked for before it is kept no longer; else 0.
	from int64
	// turn means that one must be given back.
	turn bool
}

// pastReader reads the past after a position, page by page.
type pastReader struct {
	// span is how many steps of the channel the next page spans.
	span int64
	// before is the last price read of each coin, by rank-1; nil where it must be looked for.
	before []float64
}

// awaitStore returns up to where the store holds of each partition what lies after a position: to where memory begins, or
// no further than the position where memory has it all. It waits for the store to come so far, and returns errLagging once
// patience is over.
func (l *line[E]) awaitStore(ctx context.Context, patience time.Time, at position) (until position, err error) {
	ctx, cancel := context.WithDeadline(ctx, patience)
	defer cancel()
	until, pulses := l.ring.floors()
	for {
		var next map[int32]int64
		lacking := -1
		if at.behind(until) {
			next, err = l.store.Materialized(ctx)
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
			return nil, fmt.Errorf("%w: it has partition %d up to offset %d of the topic, want more than %d", errLagging, lacking, next[int32(lacking)], pulses[lacking])
		}
	}
}

// read reads what is wanted of the next page after a position.
func (l *line[E]) read(ctx context.Context, patience time.Time, r *pastReader, at position, of wanted) (page, error) {
	until, err := l.awaitStore(ctx, patience, at)
	if err != nil || !at.behind(until) {
		return page{until: at}, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.hub.cfg.StoreWait)
	defer cancel()
	oldest, err := l.store.Oldest(ctx, time.Unix(until.newest(), 0))
	if err != nil {
		return page{}, fmt.Errorf("finding the oldest entries: %w", err)
	}
	out := page{}
	first := firstLacking(at, until)
	if oldest > first+1 {
		out.from, first = oldest, oldest-1
		at, r.before = at.upTo(first, until), nil
	}
	last := min(first+r.span*l.step, until.newest())
	var seconds []sealed[E]
	rows, most, err := l.scan(ctx, r, first, last, until, of, func(partition int32, e E) {
		second := e.at()
		if int(partition) >= len(at) || second > until[partition] || second <= at[partition] {
			return // memory has what is newer
		}
		if n := len(seconds); n == 0 || seconds[n-1].second != second {
			seconds = append(seconds, sealed[E]{second: second})
		}
		of := &seconds[len(seconds)-1]
		of.entries = append(of.entries, e)
	})
	if err != nil {
		return page{}, fmt.Errorf("reading the past: %w", err)
	}
	switch n := len(seconds); {
	case rows >= most && n > 1:
		// The last second may be a part. The next page begins with it, and looks for what was before it again.
		last, seconds, r.before = seconds[n-1].second-1, seconds[:n-1], nil
		r.span = pageFirst
	case rows < pageMost/4:
		r.span = min(2*r.span, pageLongest)
	}
	for _, s := range seconds {
		sortEntries(s.entries)
		out.batches = append(out.batches, batch{second: s.second, entries: l.batch(s.entries), after: at.upTo(s.second, until)})
	}
	out.until = at.upTo(last, until)
	return out, nil
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
