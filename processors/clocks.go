package processors

import (
	"slices"
	"time"
)

// Bounds of the two clocks of a partition.
const (
	// maxLead is how far one producer's clock may run ahead of all others that still write
	// before it is taken for wrong.
	maxLead = 10 * time.Second
	// maxLag is how far behind now a producer may be and still hold back the watermark.
	maxLag = 30 * time.Second
	// forgetAfter is how far behind now a producer is forgotten.
	forgetAfter = 10 * time.Minute
	// leadWindow is how many of a fast producer's own last clock records are looked back over
	// for another producer that still writes.
	leadWindow = 3
)

// Clocks derives the two clocks of one partition of a raw topic from the clock records in it.
//
// Now is the greatest clock of the live producers: it paces publication and judges freshness, so
// one dead producer delays nothing. The watermark is the least: it closes windows. Both depend
// on the records and their order only, and neither goes back. The zero value is ready for use;
// it is not safe for concurrent use.
type Clocks struct {
	producers map[producerID]*producerClock
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
	// positions of its newest clock records, newest last, counted in clock records of the partition.
	positions [leadWindow]int64
}

// Observe takes one clock record and says whether now or the watermark moved.
func (c *Clocks) Observe(producer string, epoch, at int64) (moved bool) {
	if c.producers == nil {
		c.producers = map[producerID]*producerClock{}
	}
	id := producerID{producer, epoch}
	p := c.producers[id]
	c.records++
	if p == nil {
		p = &producerClock{id: id}
		for i := range p.positions {
			p.positions[i] = c.records
		}
		c.producers[id] = p
	}
	p.time = max(p.time, at)
	copy(p.positions[:], p.positions[1:])
	p.positions[leadWindow-1] = c.records
	return c.advance()
}

// Now is the greatest clock of the live producers, Unix nanoseconds; 0 before the first.
func (c *Clocks) Now() int64 { return c.now }

// Watermark is the least clock of the live producers, Unix nanoseconds; 0 before the first.
func (c *Clocks) Watermark() int64 { return c.watermark }

func (c *Clocks) advance() bool {
	now, watermark := c.now, c.watermark
	for _, p := range c.producers {
		if !c.suspended(p) {
			c.now = max(c.now, p.time)
		}
	}
	least := int64(0)
	for id, p := range c.producers {
		behind := time.Duration(c.now - p.time)
		if behind > forgetAfter {
			delete(c.producers, id)
			continue
		}
		if behind <= maxLag && !c.suspended(p) && (least == 0 || p.time < least) {
			least = p.time
		}
	}
	c.watermark = max(c.watermark, least)
	return c.now != now || c.watermark != watermark
}

// suspended says whether a producer's clock runs more than maxLead ahead of every other one that
// still writes. With nobody else writing there is nothing to measure it by, and it counts.
func (c *Clocks) suspended(fast *producerClock) bool {
	others := false
	for _, p := range c.producers {
		if p == fast || p.positions[leadWindow-1] < fast.positions[0] {
			continue
		}
		others = true
		if fast.time-p.time <= int64(maxLead) {
			return false
		}
	}
	return others
}

// Origins joins the clocks that the writers of a derived partition forwarded into it: now is the
// greatest, the watermark the least of all of them. The watermark stays 0 until every
// origin was heard. It is not safe for concurrent use.
type Origins struct {
	watermarks []int64
	now        int64
	watermark  int64
}

// NewOrigins expects pulses from the given number of input partitions.
func NewOrigins(partitions int32) *Origins {
	return &Origins{watermarks: make([]int64, partitions)}
}

// Observe takes one pulse of an input partition and says whether now or the watermark moved.
func (o *Origins) Observe(partition int32, now, watermark int64) (moved bool) {
	if int(partition) >= len(o.watermarks) {
		return false
	}
	before, beforeMark := o.now, o.watermark
	o.watermarks[partition] = max(o.watermarks[partition], watermark)
	o.now = max(o.now, now)
	o.watermark = max(o.watermark, slices.Min(o.watermarks))
	return o.now != before || o.watermark != beforeMark
}

// Now is the greatest clock of all origins, Unix nanoseconds.
func (o *Origins) Now() int64 { return o.now }

// Watermark is the least clock of all origins, Unix nanoseconds; 0 until each was heard.
func (o *Origins) Watermark() int64 { return o.watermark }
