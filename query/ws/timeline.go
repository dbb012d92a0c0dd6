package ws

import (
	"context"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
)

// timeline is what a channel has had, by second of log time or by offset: the newest is in memory, what is older in the store, if
// it has one. Safe for concurrent use.
type timeline interface {
	memory
	// code is the channel's number in cursors; name is empty for the prices, whose messages have none.
	code() byte
	name() string
	// encode writes a message of a batch.
	encode(b batch) []byte
}

// wanted is what a subscriber chose. Everything means that it did not.
type wanted struct {
	coins      selection
	everything bool
}

// batch is what one frame holds: the entries of one second, and the position of one who was sent them.
type batch struct {
	second  int64
	entries entries
	after   position
}

// entries are what a frame is written from; nil are none.
type entries interface {
	count() int
	// append writes them as JSON, with commas between.
	append(b []byte) []byte
}

// count is how many entries a batch has.
func (b batch) count() int {
	if b.entries == nil {
		return 0
	}
	return b.entries.count()
}

// line is the timeline of entries of one kind.
type line[E entry] struct {
	hub  *Hub
	ring *ring[E]
	id   atomic.Pointer[identity]
	// step is about how many seconds lie between two that have entries.
	step int64
	// store is nil where memory is all there is.
	store query.ChannelStore
	// filled is closed once memory holds what it is filled with.
	filled chan struct{}
	wants  func(of wanted, e E) bool
	// scan hands over what is wanted of the store from after one second up to another, oldest second first, but nothing after a
	// position. It returns how many rows it read and how many it may read: as many mean that the last second may be a part.
	scan  func(ctx context.Context, r *pastReader, first, last int64, until position, of wanted, visit func(partition int32, e E)) (rows, most int, err error)
	batch func(found []E) entries
}

func (l *line[E]) identity() identity               { return *l.id.Load() }
func (l *line[E]) partitions() int                  { return len(l.ring.partitions) }
func (l *line[E]) heads() position                  { return l.ring.heads() }
func (l *line[E]) holds(after, limit position) bool { return l.ring.holds(after, limit) }
func (l *line[E]) stored() bool                     { return l.store != nil }

func (l *line[E]) floors() position {
	floors, _ := l.ring.floors()
	return floors
}

func (l *line[E]) next(at, limit position, of wanted) (batch, bool) {
	second, found, after, held := l.ring.next(at, limit, func(e E) bool { return l.wants(of, e) })
	b := batch{second: second, after: after}
	if len(found) > 0 {
		b.entries = l.batch(found)
	}
	return b, held
}

// awaitFilled waits, as long as for the store.
func (l *line[E]) awaitFilled(ctx context.Context) error {
	timer := time.NewTimer(l.hub.cfg.StoreWait)
	defer timer.Stop()
	select {
	case <-l.filled:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
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

// memory is what a channel is served from.
type memory interface {
	// identity is of the log and of the view of it that cursors are of.
	identity() identity
	partitions() int
	// heads is the position of one who was sent all of it, floors that after which memory holds all of it.
	heads() position
	floors() position
	holds(after, limit position) bool
	next(at, limit position, of wanted) (batch, bool)
	// stored means that there is a store, and read reads the next page of it.
	stored() bool
	read(ctx context.Context, patience time.Time, r *pastReader, at position, of wanted) (page, error)
	// awaitFilled waits until memory holds what it is filled with at the start.
	awaitFilled(ctx context.Context) error
	// after is where one goes on whose place memory holds no longer, and no store does.
	after(at, offered position) position
	// second is that (Unix) of log time of a position, 0 where that is not known; oldest that of its oldest partition.
	second(at position) int64
	oldest(at position) int64
	// ahead means that a position lies further ahead than another replica may have read.
	ahead(at position) bool
	// begin is where one begins whose cursor is of another past; nil means no cursor.
	begin(cursor, present position) position
}

func (l *line[E]) after(at, offered position) position {
	return at.upTo(l.floors().newest(), offered)
}

func (l *line[E]) second(at position) int64 { return at.newest() }
func (l *line[E]) oldest(at position) int64 { return at.oldest() }
func (l *line[E]) ahead(at position) bool   { return at.newest() > l.heads().newest()+aheadMost }

// begin is at the present, or after the cursor where another replica has read and sent more: seconds are the same in every view of a
// log, so that one whose view was replaced is sent nothing twice.
func (l *line[E]) begin(cursor, present position) position {
	if cursor == nil || l.ahead(cursor) {
		return present
	}
	return present.max(cursor)
}

const (
	// offsetsFor is how long records are held, offsetsBatch how many are sent in a message.
	offsetsFor   = 60
	offsetsBatch = 500
	// offsetsAhead is how many records another replica may have read more of a partition.
	offsetsAhead = 1 << 20
)

// offsetLine is the memory of a channel whose elements come faster than seconds: a position in it is, by partition, the offset
// before which everything was sent. It holds records for a minute at most, and there is no store behind it. Safe for concurrent
// use; records come from one goroutine at a time.
type offsetLine struct {
	id    identity
	wants func(of wanted, e item) bool
	// bytes bounds what a partition holds.
	bytes int

	mu    sync.RWMutex
	parts []offsetPart
}

// offsetPart is a partition: the records from floor on, and before head, that have elements.
type offsetPart struct {
	items       []offsetItem
	floor, head int64
	held        int
	// before is the second of the newest record that is held no longer.
	before int64
}

type offsetItem struct {
	offset, at int64
	item
	// encoded is made for the first who is sent it.
	encoded func() []byte
}

func newOffsetLine(id identity, partitions, bytes int, wants func(of wanted, e item) bool) *offsetLine {
	return &offsetLine{id: id, wants: wants, bytes: bytes / partitions, parts: make([]offsetPart, partitions)}
}

// add takes a record with its elements. Fresh means that those of its partition before are no longer wanted, or were not read;
// head moves only where settled.
func (l *offsetLine) add(partition int32, offset int64, elements []item, fresh, settled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &l.parts[partition]
	if fresh {
		*p = offsetPart{floor: offset, head: offset}
	}
	now := int64(0)
	for _, e := range elements {
		now = e.second
		p.items = append(p.items, offsetItem{offset: offset, at: e.second, item: e, encoded: sync.OnceValue(e.encode)})
		p.held += e.size + itemFrame
	}
	if settled {
		p.head = offset + 1
	}
	for len(p.items) > 0 && (p.held > l.bytes || now > p.items[0].at+offsetsFor) {
		p.held -= p.items[0].size + itemFrame
		p.floor, p.before = p.items[0].offset+1, p.items[0].at
		p.items[0] = offsetItem{}
		p.items = p.items[1:]
	}
}

func (l *offsetLine) each(of func(p *offsetPart) int64) position {
	l.mu.RLock()
	defer l.mu.RUnlock()
	at := make(position, len(l.parts))
	for i := range at {
		at[i] = of(&l.parts[i])
	}
	return at
}

func (l *offsetLine) identity() identity { return l.id }
func (l *offsetLine) partitions() int    { return len(l.parts) }
func (l *offsetLine) heads() position    { return l.each(func(p *offsetPart) int64 { return p.head }) }
func (l *offsetLine) floors() position   { return l.each(func(p *offsetPart) int64 { return p.floor }) }
func (l *offsetLine) stored() bool       { return false }

func (l *offsetLine) awaitFilled(context.Context) error { return nil }

func (l *offsetLine) read(_ context.Context, _ time.Time, _ *pastReader, at position, _ wanted) (page, error) {
	return page{until: at}, nil
}

func (l *offsetLine) holds(after, limit position) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.holdsLocked(after, limit)
}

func (l *offsetLine) holdsLocked(after, limit position) bool {
	for i := range l.parts {
		if after[i] < limit[i] && after[i] < l.parts[i].floor {
			return false
		}
	}
	return true
}

func (l *offsetLine) after(at, _ position) position {
	return l.floors().max(at)
}

func (l *offsetLine) ahead(at position) bool {
	for i, head := range l.heads() {
		if at[i] > head+offsetsAhead {
			return true
		}
	}
	return false
}

// begin is at the present: offsets of another log say nothing about those of this one.
func (l *offsetLine) begin(_, present position) position { return present }

func (l *offsetLine) oldest(position) int64 { return 0 }

// second is that of the newest record before a position that is known.
func (l *offsetLine) second(at position) (second int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for i := range l.parts {
		p := &l.parts[i]
		second = max(second, p.before)
		if n := sort.Search(len(p.items), func(n int) bool { return p.items[n].offset >= at[i] }); n > 0 {
			second = max(second, p.items[n-1].at)
		}
	}
	return second
}

func (l *offsetLine) next(at, limit position, of wanted) (batch, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.holdsLocked(at, limit) {
		return batch{}, false
	}
	b := batch{after: slices.Clone(at)}
	var found items
	for i := range l.parts {
		all := l.parts[i].items
		n := sort.Search(len(all), func(n int) bool { return all[n].offset >= at[i] })
		for ; n < len(all) && all[n].offset < limit[i] && len(found) < offsetsBatch; n++ {
			if l.wants(of, all[n].item) {
				e := all[n].item
				e.encode = all[n].encoded
				found = append(found, e)
				b.second = max(b.second, all[n].at)
			}
			b.after[i] = all[n].offset + 1
		}
		if n == len(all) || all[n].offset >= limit[i] {
			b.after[i] = max(at[i], limit[i])
		}
	}
	if len(found) > 0 {
		b.entries = found
	}
	return b, true
}
