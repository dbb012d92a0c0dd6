package ws

import (
	"math"
	"slices"
	"sort"
	"sync"
)

// entry is what a ring holds.
type entry interface {
	// at is the second (Unix) of log time that it belongs to.
	at() int64
	// order is its place among those of one second.
	order() int
	// weight is how many times priceBytes it takes, at least 1.
	weight() int
}

const (
	priceBytes = 32
	// secondPrices is what the frame around the entries of a second counts as.
	secondPrices = 2
)

// sealed are the entries of one second in one partition, whose pulse was seen. They never change.
type sealed[E entry] struct {
	second  int64
	entries []E
	weight  int
	// pulse is the offset of the pulse that ended the second.
	pulse int64
}

func seal[E entry](second int64, entries []E, pulse int64) sealed[E] {
	s := sealed[E]{second: second, entries: entries, weight: secondPrices, pulse: pulse}
	for _, e := range entries {
		s.weight += e.weight()
	}
	return s
}

// ring holds the newest entries of a channel in memory, by partition and second, up to a bound; the oldest go first. A second
// is in it only when its pulse was seen: before that it may be a part. Safe for concurrent use; records come from one
// goroutine at a time.
type ring[E entry] struct {
	mu         sync.RWMutex
	max, held  int // of weights
	partitions []ringPartition[E]
}

type ringPartition[E entry] struct {
	// open are entries whose second has not ended.
	open []E
	// seconds are those with entries, ascending.
	seconds []sealed[E]
	// All entries after floor up to head are held; the store has the others once it has the record at pulse. Both are 0
	// until a pulse was seen: the tail may have begun in the middle of a second.
	floor, head int64
	pulse       int64
}

// newRing holds at most so many bytes.
func newRing[E entry](partitions, bytes int) *ring[E] {
	return &ring[E]{max: max(1, bytes/priceBytes), partitions: make([]ringPartition[E], partitions)}
}

// add takes an entry whose second has not ended. Those of a partition come in the order of their seconds.
func (r *ring[E]) add(partition int32, e E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	part := &r.partitions[partition]
	part.open = append(part.open, e)
}

// pulse ends all seconds of a partition up to one; it is false where they had ended. Partial means that they are not all
// there: memory begins after them.
func (r *ring[E]) pulse(partition int32, second, offset int64, partial bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	part := &r.partitions[partition]
	if second <= part.head {
		return false
	}
	if part.head == 0 || partial {
		// What came before the first pulse may be a part of its second.
		for _, lost := range part.seconds {
			r.held -= lost.weight
		}
		part.floor, part.pulse, part.open, part.seconds = second, offset, nil, nil
	}
	part.head = second
	for len(part.open) > 0 && part.open[0].at() <= second {
		of := part.open[0].at()
		n := sort.Search(len(part.open), func(i int) bool { return part.open[i].at() > of })
		ended := seal(of, slices.Clone(part.open[:n]), offset)
		part.seconds = append(part.seconds, ended)
		part.open = append(part.open[:0], part.open[n:]...)
		r.held += ended.weight
	}
	for r.held > r.max {
		r.evict()
	}
	return true
}

// evict forgets the oldest second of one partition.
func (r *ring[E]) evict() {
	var oldest *ringPartition[E]
	for i := range r.partitions {
		part := &r.partitions[i]
		if len(part.seconds) > 0 && (oldest == nil || part.seconds[0].second < oldest.seconds[0].second) {
			oldest = part
		}
	}
	first := &oldest.seconds[0]
	oldest.floor, oldest.pulse = first.second, first.pulse
	r.held -= first.weight
	*first = sealed[E]{}
	oldest.seconds = oldest.seconds[1:]
}

// heads is the position of all that is held.
func (r *ring[E]) heads() position {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p := make(position, len(r.partitions))
	for i := range p {
		p[i] = r.partitions[i].head
	}
	return p
}

// beforeLast is the position of one who was sent all but the newest second with entries of each partition.
func (r *ring[E]) beforeLast() position {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p := make(position, len(r.partitions))
	for i, part := range r.partitions {
		p[i] = part.head
		if n := len(part.seconds); n > 0 {
			p[i] = part.seconds[n-1].second - 1
		}
	}
	return p
}

// floors are the positions after which all entries are held, and the offsets of the topic that the store must have come to
// in order to hold all entries up to there.
func (r *ring[E]) floors() (floors position, pulses []int64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	floors, pulses = make(position, len(r.partitions)), make([]int64, len(r.partitions))
	for i := range r.partitions {
		floors[i], pulses[i] = r.partitions[i].floor, r.partitions[i].pulse
	}
	return floors, pulses
}

// holds means that all entries after a position, up to a limit, are in memory.
func (r *ring[E]) holds(after, limit position) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.holdsLocked(after, limit)
}

func (r *ring[E]) holdsLocked(after, limit position) bool {
	for i := range r.partitions {
		if after[i] < limit[i] && after[i] < r.partitions[i].floor {
			return false
		}
	}
	return true
}

// scanMost bounds how many entries are looked through at a time for those that somebody wants.
const scanMost = 20_000

// next finds the first second after a position, and not after a limit, that has entries which are wanted, and the position
// after it. Without entries that says how far there are none: to the limit, or as far as was looked. It is false where memory
// holds them no longer.
func (r *ring[E]) next(at, limit position, wants func(E) bool) (second int64, found []E, after position, held bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.holdsLocked(at, limit) {
		return 0, nil, nil, false
	}
	places := make([]int, len(r.partitions))
	for i := range r.partitions {
		seconds := r.partitions[i].seconds
		places[i] = sort.Search(len(seconds), func(n int) bool { return seconds[n].second > at[i] })
	}
	for scanned := 0; ; {
		second := int64(math.MaxInt64)
		for i := range r.partitions {
			if s := r.partitions[i].seconds[places[i]:]; len(s) > 0 && s[0].second <= limit[i] {
				second = min(second, s[0].second)
			}
		}
		if second == math.MaxInt64 {
			return 0, nil, at.upTo(second, limit), true
		}
		for i := range r.partitions {
			s := r.partitions[i].seconds[places[i]:]
			if len(s) == 0 || s[0].second != second || second > limit[i] {
				continue
			}
			places[i]++
			scanned += len(s[0].entries)
			for _, e := range s[0].entries {
				if wants(e) {
					found = append(found, e)
				}
			}
		}
		if len(found) > 0 || scanned > scanMost {
			sortEntries(found)
			return second, found, at.upTo(second, limit), true
		}
	}
}

func sortEntries[E entry](entries []E) {
	slices.SortStableFunc(entries, func(a, b E) int { return a.order() - b.order() })
}

// prepend puts entries from the store before those in memory: whole seconds of all partitions, ascending, which begin after
// a position. What there is no room for is left out, the oldest first.
func (r *ring[E]) prepend(after position, older [][]sealed[E], until position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.partitions {
		part := &r.partitions[i]
		if part.floor != until[i] || after[i] >= part.floor {
			continue // it has moved on meanwhile
		}
		for n := range older[i] {
			older[i][n] = seal(older[i][n].second, older[i][n].entries, part.pulse) // the store holds it already
			r.held += older[i][n].weight
		}
		part.seconds = append(older[i], part.seconds...)
		part.floor = after[i]
	}
	for r.held > r.max {
		r.evict()
	}
}
