package processors

import "slices"

// Origins joins the clocks that the writers of a derived partition forwarded into it: now is the
// greatest, the watermark the least of all of them. The watermark stays 0 until every
// origin was received. It is not safe for concurrent use.
type Origins struct {
	watermarks []int64
	now        int64
	watermark  int64
}

// NewOrigins expects pulses from the given number of input partitions.
func NewOrigins(partitions int32) *Origins {
	return &Origins{watermarks: make([]int64, partitions)}
}

// Observe takes one pulse of an input partition and reports whether now or the watermark moved.
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

// Watermark is the least clock of all origins, Unix nanoseconds; 0 until each was received.
func (o *Origins) Watermark() int64 { return o.watermark }
