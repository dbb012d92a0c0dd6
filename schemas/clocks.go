package schemas

import (
	"slices"
	"time"
)

// Bounds of the two clocks of a partition.
const (
	// MaxLead is how far one producer's clock may run ahead of all others that still write
	// before it is taken for wrong.
	MaxLead = 10 * time.Second
	// maxLag is how far behind now a producer may be and still hold back the watermark.
	maxLag = 30 * time.Second
	// forgetAfter is how much log time may pass without a clock record before its producer is
	// forgotten. With leadWindow it bounds what these clocks remember to two minutes, so that a
	// fold which was rewound knows the same producers.
	forgetAfter = 60 * time.Second
	// leadWindow is how many of a fast producer's own last clock records are looked back over
	// for another producer that still writes.
	leadWindow = 3
)

// Clocks derives the two clocks of one partition of a raw topic from the clock records in it.
//
// Now is the greatest clock of the live producers: it paces publication and judges freshness, so
// one dead producer delays nothing. The watermark is the least: it closes windows. Both depend
// on the records and their order only, and neither goes back. A producer that nobody has been
// seen writing beside yet moves now from its third record on: the first record that a new or a
// rewound fold meets may be that of a fast clock, and what it moved could never be undone.
//
// The zero value is ready for use; it is not safe for concurrent use.
type Clocks struct {
	// producers is a list, since each clock record compares all of them, some twenty, with one another.
	producers []*producerClock
	records   int64
	now       int64
	watermark int64
}

type producerID struct {
	name  string
	epoch int64
}

type producerClock struct {
	id   producerID
	time int64
	// seen is the log time at which its newest clock record came; 0 before the first.
	seen int64
	// records counts its clock records up to leadWindow.
	records int
	// positions of its newest clock records, newest last, counted in clock records of the
	// partition; while there are fewer, the first is used for those missing.
	positions [leadWindow]int64
}

// Observe takes one clock record and reports whether now or the watermark moved.
func (c *Clocks) Observe(producer string, epoch, at int64) (moved bool) {
	p := c.producer(producerID{producer, epoch})
	c.records++
	if p == nil {
		p = &producerClock{id: producerID{producer, epoch}}
		for i := range p.positions {
			p.positions[i] = c.records
		}
		c.producers = append(c.producers, p)
	}
	// The newest record counts, not the greatest: a clock that was put right is right again.
	p.time = at
	p.records = min(p.records+1, leadWindow)
	copy(p.positions[:], p.positions[1:])
	p.positions[leadWindow-1] = c.records
	return c.advance(p)
}

func (c *Clocks) producer(id producerID) *producerClock {
	for _, p := range c.producers {
		if p.id == id {
			return p
		}
	}
	return nil
}

// Now is the greatest clock of the live producers, Unix nanoseconds; 0 before the first.
func (c *Clocks) Now() int64 { return c.now }

// Watermark is the least clock of the live producers, Unix nanoseconds; 0 before the first.
func (c *Clocks) Watermark() int64 { return c.watermark }

func (c *Clocks) advance(receivedAt *producerClock) bool {
	now, watermark := c.now, c.watermark
	reached := c.now
	for _, p := range c.producers {
		if !c.suspended(p) {
			reached = max(reached, p.time)
		}
	}
	c.now = reached
	receivedAt.seen = c.now
	least := int64(0)
	for _, p := range c.producers {
		if c.now-p.time <= int64(maxLag) && !c.suspended(p) && (least == 0 || p.time < least) {
			least = p.time
		}
	}
	c.watermark = max(c.watermark, least)
	// Forgotten last: both clocks must be taken from the same producers.
	c.producers = slices.DeleteFunc(c.producers, func(p *producerClock) bool {
		if p.seen == 0 {
			p.seen = c.now
		}
		return c.now-p.seen > int64(forgetAfter)
	})
	return c.now != now || c.watermark != watermark
}

// suspended reports whether a producer's clock must not count: it runs more than MaxLead ahead of every
// other one that still writes, or would move now before it is known whether another one writes.
// With nobody else writing there is nothing to measure it by, and it counts.
func (c *Clocks) suspended(fast *producerClock) bool {
	others := false
	for _, p := range c.producers {
		if p == fast || p.positions[leadWindow-1] < fast.positions[0] {
			continue
		}
		others = true
		if fast.time-p.time <= int64(MaxLead) {
			return false
		}
	}
	return others || fast.records < leadWindow && fast.time > c.now
}
