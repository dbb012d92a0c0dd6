package oracle

import (
	"fmt"
	"sort"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Bounds of the clocks of a partition of ticks.raw.v1.
const (
	// aloneFor is after how much log time without a word a producer is another one.
	aloneFor = 60 * second
	// lookedBack is how many of a fast producer's records another one must have written among or after.
	lookedBack = 3
)

// writer is one process of a producer.
type writer struct {
	name  string
	epoch int64
}

// life is what a writer recorded of its clock without being away for long: which of the clock records of
// the partition those are, and the newest of its times.
type life struct {
	records []int
	time    int64
}

// back is the record of a writer from which on others are looked for.
func (l life) back() int { return l.records[max(0, len(l.records)-lookedBack)] }

// last is its newest record.
func (l life) last() int { return l.records[len(l.records)-1] }

// clockLog is the clock records of one partition.
type clockLog struct {
	lives map[writer]life
	// nows is the log's now after each of them.
	nows []int64
}

// away reports whether a writer was given up before the record that comes next.
func (c *clockLog) away(l life) bool {
	if len(c.nows) == 0 {
		return false
	}
	seen := int64(0)
	for _, now := range c.nows[l.last():] {
		if seen = now; seen != 0 {
			break // before the first clock that counts there is no log time
		}
	}
	return c.now()-seen > aloneFor
}

func (c *clockLog) now() int64 {
	if len(c.nows) == 0 {
		return 0
	}
	return c.nows[len(c.nows)-1]
}

// record takes the next record. The log's now is the greatest clock of all that count, and never goes back.
func (c *clockLog) record(w writer, time int64) {
	for other, l := range c.lives {
		if c.away(l) {
			delete(c.lives, other)
		}
	}
	l := c.lives[w]
	c.lives[w] = life{append(l.records, len(c.nows)), time}
	now := c.now()
	for fast, l := range c.lives {
		if c.counts(fast, l) {
			now = max(now, l.time)
		}
	}
	c.nows = append(c.nows, now)
}

// counts reports whether a clock counts: it must be at most lead ahead of another that still writes. One
// beside which nobody writes counts, but moves now only when it has recorded it often enough for another to
// have been received.
func (c *clockLog) counts(fast writer, l life) bool {
	alone := true
	for w, other := range c.lives {
		if w == fast || other.last() < l.back() {
			continue
		}
		alone = false
		if l.time-other.time <= lead {
			return true
		}
	}
	return alone && (len(l.records) >= lookedBack || l.time <= c.now())
}

// rawTick is a tick of ticks.raw.v1 and the log second in which it came, Unix nanoseconds.
type rawTick struct {
	*eventsv1.Tick
	second    int64
	partition int32
	offset    int64
}

// logSeconds parts ticks.raw.v1 into log seconds: those that no partition can add to any more, with
// all that came in them, partition by partition.
func logSeconds(raw map[int32][]Record, partitions int32) (seconds []int64, ticks map[int64][]rawTick, err error) {
	ticks = map[int64][]rawTick{}
	clocked := map[int64]bool{}
	whole := int64(-1)
	for p := range partitions {
		clocks := clockLog{lives: map[writer]life{}}
		for _, r := range raw[p] {
			rec := &eventsv1.RawRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				return nil, nil, fmt.Errorf("decoding ticks.raw.v1/%d at %d: %w", p, r.Offset, err)
			}
			if clock := rec.GetClock(); clock != nil {
				clocks.record(writer{rec.Producer, rec.Epoch}, clock.Time)
			}
			at := clocks.now() / second * second
			clocked[at] = true
			if t := rec.GetTick(); t != nil {
				ticks[at] = append(ticks[at], rawTick{t, at, p, r.Offset})
			}
		}
		if now := clocks.now() / second * second; whole < 0 || now < whole {
			whole = now
		}
	}
	for at := range clocked {
		if at > 0 && at < whole {
			seconds = append(seconds, at)
		}
	}
	sort.Slice(seconds, func(i, j int) bool { return seconds[i] < seconds[j] })
	return seconds, ticks, nil
}
