package processors

import (
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// rewind remembers, second by second of log time, where a reader of the input would have to begin
// in order to have the window state of the present: WindowMemory ago.
type rewind struct {
	places []place
	marks  map[int32]*eventsv1.Mark
}

// place is an input offset, the log time when it was reached, and the marks applied below it.
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

// admit says whether an input record's mark lies behind all applied of its origin, and applies it.
// Twin records of two writers differ in what they saw; the first in the log is the one that counts.
func (r *rewind) admit(mark *eventsv1.Mark) bool {
	if mark == nil {
		return true
	}
	if !mark.After(r.marks[mark.Partition]) {
		return false
	}
	r.marks[mark.Partition] = mark
	return true
}

// reached notes that the input below next is folded, and where the clocks stand.
func (r *rewind) reached(now, watermark, next int64) {
	last := &r.places[len(r.places)-1]
	if now/int64(time.Second) == last.now/int64(time.Second) {
		return
	}
	r.places = append(r.places, place{now: now, offset: next, marks: r.snapshot()})
	enough := min(now-int64(WindowMemory), watermark-int64(openMemory))
	for len(r.places) > 1 && r.places[1].now <= enough {
		r.places = r.places[1:]
	}
}

// checkpoint is where to begin again.
func (r *rewind) checkpoint() *eventsv1.Checkpoint {
	return &eventsv1.Checkpoint{Offset: r.places[0].offset, Marks: r.places[0].marks}
}

func (r *rewind) snapshot() []*eventsv1.Mark {
	if len(r.marks) == 0 {
		return nil
	}
	marks := make([]*eventsv1.Mark, 0, len(r.marks))
	for _, m := range r.marks {
		marks = append(marks, m)
	}
	sortMarks(marks)
	return marks
}
