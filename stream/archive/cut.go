package archive

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Rule says where segments end. It may differ between topics, but not between the archivers of one.
type Rule struct {
	// Period is the span of log time that a segment does not exceed: it ends where the running maximum of the timestamps
	// enters another multiple of it since the Unix epoch.
	Period time.Duration
	// Bytes bounds the values of a segment, if it has more than one record.
	Bytes int64
}

// maxRows bounds the records of a segment.
const maxRows = 1_000_000

// Cutter finds the end of a segment from its records, seen in order. The zero value begins a segment with the next record.
type Cutter struct {
	Rule

	rows   int64
	bytes  int64
	newest int64 // the running maximum of the timestamps, Unix milliseconds
	period int64 // that of the first record
}

// Ends reports whether the segment ends before r; if it does, r is the first of the next one.
func (c *Cutter) Ends(r *kgo.Record) bool {
	at := r.Timestamp.UnixMilli()
	size := int64(len(r.Value))
	if c.rows > 0 {
		newest := max(c.newest, at)
		if c.periodOf(newest) == c.period && c.bytes+size <= c.Bytes && c.rows < maxRows {
			c.rows++
			c.bytes += size
			c.newest = newest
			return false
		}
	}
	ends := c.rows > 0
	// A late record after a cut begins a segment in the period of the time that the log has reached.
	c.newest = max(c.newest, at)
	c.rows, c.bytes, c.period = 1, size, c.periodOf(c.newest)
	return ends
}

func (c *Cutter) periodOf(at int64) int64 { return at / c.Period.Milliseconds() }
