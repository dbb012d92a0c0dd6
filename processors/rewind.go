package processors

import (
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// settle is the log time that a rewound fold needs before its clocks are those of one that never
	// stopped, and its markets as fresh: an ingest time may lie maxLead ahead of now.
	settle = 15 * time.Second
	// settlePlaces is the same in seconds that the log has: where now leaps because all producers
	// were away, a span of log time may hold a single clock record, and those who come back are
	// judged by those who were received before.
	settlePlaces = 8
	// openMemory is the span before the watermark: a minute and its lateness, and what the first price in it
	// depends on. A watermark that does not advance while now goes on keeps minutes open, and so holds back where
	// a rewind begins.
	openMemory = 60*time.Second + schemas.AllowedLateness + paceMemory
)

// rewind remembers, second by second of log time, where a reader of the input would have to begin
// in order to have the window state of the present.
type rewind struct {
	places []place
	marks  map[int32]*eventsv1.Mark
	// previous is what the newest mark was applied after, nil if it was the first of its origin.
	newest, previous *eventsv1.Mark
}

// place is the offset of the input that moved now into another second, and the marks applied below it.
// Who begins there knows now from its first record on, also where now leaps.
type place struct {
	now    int64
	offset int64
	marks  []*eventsv1.Mark
}

// newRewind begins at an offset at which the given marks had been applied.
func newRewind(offset int64, marks []*eventsv1.Mark) *rewind {
	r := &rewind{marks: map[int32]*eventsv1.Mark{}}
	for _, m := range marks {
		r.marks[m.Partition] = m
	}
	r.places = []place{{offset: offset, marks: marks}}
	return r
}

// admit reports whether an input record's mark lies after all applied of its origin, and applies it.
// Duplicate records of two writers differ in what they saw; the first in the log is the one that counts. The mark is copied: a record
// that a fold is given lives no longer than its turn.
func (r *rewind) admit(mark *eventsv1.Mark) bool {
	if mark == nil {
		return true
	}
	if !mark.After(r.marks[mark.Partition]) {
		return false
	}
	mark = &eventsv1.Mark{LogicVersion: mark.LogicVersion, Partition: mark.Partition, Offset: mark.Offset, Index: mark.Index}
	r.newest, r.previous = mark, r.marks[mark.Partition]
	r.marks[mark.Partition] = mark
	return true
}

// reached notes the clocks after the input at an offset, which was admitted last.
func (r *rewind) reached(now, watermark, offset int64) {
	last := &r.places[len(r.places)-1]
	if now/int64(time.Second) == last.now/int64(time.Second) {
		return
	}
	r.places = append(r.places, place{now: now, offset: offset, marks: r.before()})
	memory := min(now-int64(WindowMemory), watermark-int64(openMemory))
	for len(r.places) > settlePlaces && r.places[1].now <= memory-int64(settle) && r.places[settlePlaces].now <= memory {
		r.places = r.places[1:]
	}
}

// checkpoint is where to begin again.
func (r *rewind) checkpoint() *eventsv1.Checkpoint {
	return &eventsv1.Checkpoint{Offset: r.places[0].offset, Marks: r.places[0].marks}
}

// before are the marks before the newest.
func (r *rewind) before() []*eventsv1.Mark {
	var marks []*eventsv1.Mark
	for _, m := range r.marks {
		if m == r.newest {
			m = r.previous
		}
		if m != nil {
			marks = append(marks, m)
		}
	}
	sortMarks(marks)
	return marks
}
