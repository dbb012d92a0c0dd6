package ws

import (
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// told is one published price as memory holds it, in 32 bytes.
type told struct {
	price, volume float64
	// previous is the coin's price before it in the log; 0 where that is unknown.
	previous float64
	second   uint32
	// rank is the coin's, source a place in the ring's names.
	rank, source uint16
}

const (
	priceBytes = 32
	// secondPrices is what the frame around the prices of a second counts as.
	secondPrices = 2
	// maxSources bounds the names of sources; there are some dozens.
	maxSources = 4096
)

// sealed are the prices of one second in one partition, whose pulse was seen. They never change.
type sealed struct {
	second int64
	prices []told
	// pulse is the offset of the pulse that ended the second.
	pulse int64
}

// ring holds the newest prices of the log in memory, by partition and second, up to a bound; the oldest go first. A second
// is in it only when its pulse was seen: before that it may be a part. Safe for concurrent use; records come from one
// goroutine at a time.
type ring struct {
	mu         sync.RWMutex
	max, held  int // of prices
	partitions []ringPartition
	names      []string
	places     map[string]uint16
	// last is the newest price of each coin, by rank-1; 0 before the first.
	last []float64
}

type ringPartition struct {
	// open are prices whose second has not ended.
	open []told
	// seconds are those with prices, ascending.
	seconds []sealed
	// All prices after floor up to head are held; the store has the others once it has the record at pulse. Both are 0
	// until a pulse was seen: the tail may have begun in the middle of a second.
	floor, head int64
	pulse       int64
}

// newRing holds at most so many bytes of prices.
func newRing(partitions, coins, bytes int) *ring {
	return &ring{
		max: max(1, bytes/priceBytes), partitions: make([]ringPartition, partitions), last: make([]float64, coins),
		names: []string{""}, places: map[string]uint16{"": 0},
	}
}

// apply takes a price of the coin with a rank.
func (r *ring) apply(partition int32, rank int, p *eventsv1.Price) {
	second := p.Time / int64(time.Second)
	if int(partition) >= len(r.partitions) || p.Reason != "" || second <= 0 || second > math.MaxUint32 || rank > math.MaxUint16 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	part := &r.partitions[partition]
	part.open = append(part.open, told{
		price: p.Price, volume: p.Volume24H, previous: r.last[rank-1], second: uint32(second), rank: uint16(rank), source: r.place(p.Source),
	})
	r.last[rank-1] = p.Price
}

// place is where the name of a source is held; that of one too many is lost.
func (r *ring) place(source string) uint16 {
	if at, ok := r.places[source]; ok {
		return at
	}
	if len(r.names) >= maxSources {
		return 0
	}
	at := uint16(len(r.names))
	r.names, r.places[source] = append(r.names, source), at
	return at
}

// pulse ends a second in a partition.
func (r *ring) pulse(partition int32, second, offset int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	part := &r.partitions[partition]
	if second <= part.head {
		return
	}
	if part.head == 0 {
		// What came before the first pulse may be a part of its second.
		part.floor, part.pulse, part.open = second, offset, nil
	}
	part.head = second
	for len(part.open) > 0 && int64(part.open[0].second) <= second {
		of := part.open[0].second
		n := sort.Search(len(part.open), func(i int) bool { return part.open[i].second > of })
		part.seconds = append(part.seconds, sealed{second: int64(of), prices: slices.Clone(part.open[:n]), pulse: offset})
		part.open = append(part.open[:0], part.open[n:]...)
		r.held += n + secondPrices
	}
	for r.held > r.max {
		r.evict()
	}
}

// evict forgets the oldest second of one partition.
func (r *ring) evict() {
	var oldest *ringPartition
	for i := range r.partitions {
		part := &r.partitions[i]
		if len(part.seconds) > 0 && (oldest == nil || part.seconds[0].second < oldest.seconds[0].second) {
			oldest = part
		}
	}
	first := &oldest.seconds[0]
	oldest.floor, oldest.pulse = first.second, first.pulse
	r.held -= len(first.prices) + secondPrices
	*first = sealed{}
	oldest.seconds = oldest.seconds[1:]
}

// heads is the position of all that is held.
func (r *ring) heads() position {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p := make(position, len(r.partitions))
	for i := range p {
		p[i] = r.partitions[i].head
	}
	return p
}

// floors are the positions after which all prices are held, and the offsets of prices.v1 that the store must have come to
// in order to hold all prices up to there.
func (r *ring) floors() (floors position, pulses []int64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	floors, pulses = make(position, len(r.partitions)), make([]int64, len(r.partitions))
	for i := range r.partitions {
		floors[i], pulses[i] = r.partitions[i].floor, r.partitions[i].pulse
	}
	return floors, pulses
}

// holds means that all prices after a position, up to a limit, are in memory.
func (r *ring) holds(after, limit position) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.holdsLocked(after, limit)
}

func (r *ring) holdsLocked(after, limit position) bool {
	for i := range r.partitions {
		if after[i] < limit[i] && after[i] < r.partitions[i].floor {
			return false
		}
	}
	return true
}

// batch is what one frame of delivery all tells: prices of one second, and the position of one who was told them.
type batch struct {
	second int64
	prices []told
	after  position
}

// scanMost bounds how many prices are looked through at a time for those that somebody wants.
const scanMost = 20_000

// next finds the first second after a position, and not after a limit, that has prices of a selection. Without prices the
// batch says how far there are none: to the limit, or as far as was looked. It is false where memory holds them no longer.
func (r *ring) next(at, limit position, of selection) (batch, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.holdsLocked(at, limit) {
		return batch{}, false
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
			return batch{after: at.upTo(second, limit)}, true
		}
		b := batch{second: second}
		for i := range r.partitions {
			s := r.partitions[i].seconds[places[i]:]
			if len(s) == 0 || s[0].second != second || second > limit[i] {
				continue
			}
			places[i]++
			scanned += len(s[0].prices)
			for _, t := range s[0].prices {
				if of.has(int(t.rank)) {
					b.prices = append(b.prices, t)
				}
			}
		}
		if len(b.prices) > 0 || scanned > scanMost {
			b.after = at.upTo(second, limit)
			slices.SortFunc(b.prices, func(a, b told) int { return int(a.rank) - int(b.rank) })
			return b, true
		}
	}
}

// source is the name of a price's source.
func (r *ring) source(place uint16) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.names[place]
}

// nameSource holds the name of a source of prices from the store.
func (r *ring) nameSource(source string) uint16 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.place(source)
}

// prepend puts prices from the store before those in memory: whole seconds of all partitions, ascending, which begin after
// a position. What there is no room for is left out, the oldest first.
func (r *ring) prepend(after position, older [][]sealed, until position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.partitions {
		part := &r.partitions[i]
		if part.floor != until[i] || after[i] >= part.floor {
			continue // it has moved on meanwhile
		}
		for _, s := range older[i] {
			r.held += len(s.prices) + secondPrices
		}
		pulse := part.pulse
		for n := range older[i] {
			older[i][n].pulse = pulse // the store holds it already
		}
		part.seconds = append(older[i], part.seconds...)
		part.floor = after[i]
	}
	for r.held > r.max {
		r.evict()
	}
}
