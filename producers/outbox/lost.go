package outbox

import (
	"cmp"
	"maps"
	"slices"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// reasonOverflow is a gap's reason where records were given up for want of room.
const reasonOverflow = "overflow"

// lost sums what was given up of one venue by one producer. Gaps that were themselves given up are
// part of the sum, so nothing known to be missing is forgotten.
type lost struct {
	producer string
	epoch    int64
	venue    string
	from, to int64
	missed   uint64
}

type lostKey struct {
	producer string
	epoch    int64
	venue    string
}

// losses sums by producer, epoch and venue: its size does not depend on how much was given up.
type droppedGaps map[lostKey]*lost

// add counts a record and returns how many ticks and dead letters are lost with it.
func (ls droppedGaps) add(r *record) uint64 {
	l, messages := r.loss()
	if l == nil {
		return 0
	}
	key := lostKey{l.producer, l.epoch, l.venue}
	if sum := ls[key]; sum != nil {
		sum.from, sum.to = earliest(sum.from, l.from), max(sum.to, l.to)
		sum.missed += l.missed
	} else {
		ls[key] = l
	}
	return messages
}

// earliest skips 0, which means that the time is not known.
func earliest(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// records returns one gap for each sum, in a fixed order.
func (ls droppedGaps) records() []*record {
	keys := slices.SortedFunc(maps.Keys(ls), func(a, b lostKey) int {
		return cmp.Or(cmp.Compare(a.producer, b.producer), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.venue, b.venue))
	})
	var gaps []*record
	for _, key := range keys {
		l := ls[key]
		gaps = append(gaps, gapRecord(l.producer, l.epoch, time.Unix(0, l.to), &eventsv1.Gap{
			Venue: l.venue, Reason: reasonOverflow, FromTime: l.from, ToTime: l.to, Missed: l.missed,
		}))
	}
	return gaps
}
