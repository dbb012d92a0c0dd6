package limits

import "time"

const (
	minute = int64(time.Minute)
	// exactUpTo is the limit up to which every admission's own time is kept: 8 bytes each.
	exactUpTo = 10_000
)

// window counts the admissions of the last 60 seconds. Times are nanoseconds on one clock.
type window interface {
	// used returns how many admissions are within 60 s before now.
	used(now int64) int
	add(now int64)
	// frees returns when the oldest of them leaves the window; now if there is none.
	frees(now int64) int64
	// undo takes back one admission at a time that was added.
	undo(at int64)
}

func newWindow(limit int) window {
	if limit > exactUpTo {
		return &buckets{}
	}
	return &ring{}
}

// ring keeps each admission's time: exact, and never more than the limit of them.
type ring struct {
	times       []int64
	head, count int
}

func (r *ring) used(now int64) int {
	for r.count > 0 && now-r.times[r.head] >= minute {
		r.head = (r.head + 1) % len(r.times)
		r.count--
	}
	return r.count
}

func (r *ring) add(now int64) {
	if r.count == len(r.times) {
		grown := make([]int64, max(8, 2*len(r.times)))
		n := copy(grown, r.times[r.head:])
		copy(grown[n:], r.times[:r.head])
		r.times, r.head = grown, 0
	}
	r.times[(r.head+r.count)%len(r.times)] = now
	r.count++
}

func (r *ring) frees(now int64) int64 {
	if r.count == 0 {
		return now
	}
	return r.times[r.head] + minute
}

func (r *ring) undo(at int64) {
	for i := r.count - 1; i >= 0; i-- {
		if r.times[(r.head+i)%len(r.times)] != at {
			continue
		}
		for ; i < r.count-1; i++ {
			r.times[(r.head+i)%len(r.times)] = r.times[(r.head+i+1)%len(r.times)]
		}
		r.count--
		return
	}
}

// buckets counts admissions by second. The oldest second counts whole until all of it is 60 s old,
// so it never admits more than the limit in any 60 s and refuses up to one second early.
type buckets struct {
	counts [61]int
	// second is the newest one counted, total the sum of counts.
	second int64
	total  int
	// oldest has no counted second before it.
	oldest int64
}

func (b *buckets) advance(now int64) {
	second := now / int64(time.Second)
	if second-b.second > int64(len(b.counts)) {
		*b = buckets{second: second, oldest: second}
		return
	}
	for b.second < second {
		b.second++
		slot := &b.counts[b.second%int64(len(b.counts))]
		b.total -= *slot
		*slot = 0
	}
}

func (b *buckets) used(now int64) int {
	b.advance(now)
	return b.total
}

func (b *buckets) add(now int64) {
	b.advance(now)
	b.counts[b.second%int64(len(b.counts))]++
	b.total++
}

func (b *buckets) frees(now int64) int64 {
	b.advance(now)
	if b.total == 0 {
		return now
	}
	b.oldest = max(b.oldest, b.second-int64(len(b.counts))+1)
	for b.counts[b.oldest%int64(len(b.counts))] == 0 {
		b.oldest++
	}
	return (b.oldest + int64(len(b.counts))) * int64(time.Second)
}

func (b *buckets) undo(at int64) {
	second := at / int64(time.Second)
	if slot := &b.counts[second%int64(len(b.counts))]; b.second-second < int64(len(b.counts)) && *slot > 0 {
		*slot--
		b.total--
	}
}
