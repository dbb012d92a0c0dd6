package ws

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
)

// timeline is what a channel has had, by second of log time: the newest is in memory, what is older in the store, if it has
// one. Safe for concurrent use.
type timeline interface {
	// code stands for the channel in cursors; name is empty for the prices, whose messages bear none.
	code() byte
	name() string
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
