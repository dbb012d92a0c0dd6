package processors

import (
	"sync"
	"time"
)

const (
	// meterInterval is how often progress is reported.
	meterInterval = time.Second
	// meterStep is after how many records a fold updates the meter.
	meterStep = 1_000
)

// meter reports how far a step has come. Safe for concurrent use: what is done side by side is one step.
type meter struct {
	emit  func(line any) error
	step  string
	began time.Time

	mu          sync.Mutex
	reported    time.Time
	done, total int64
}

func (r *Replay) meter(step string) *meter {
	return &meter{emit: r.emit, step: step, began: time.Now()}
}

// expect adds to what there is to do.
func (m *meter) expect(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total += max(0, n)
}

func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
	m.report()
}

func (m *meter) set(done, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done, m.total = done, total
	m.report()
}

// part is a meter of one of the parts that the step consists of, which says how much of how much is done.
func (m *meter) part() func(done, total int64) {
	var before, expected int64
	return func(done, total int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.done, m.total = m.done+done-before, m.total+total-expected
		before, expected = done, total
		m.report()
	}
}

func (m *meter) report() {
	whole := m.done >= m.total
	if !whole && time.Since(m.reported) < meterInterval {
		return
	}
	m.reported = time.Now()
	p := &ReplayProgress{Step: m.step, Done: m.done, Total: m.total, Rate: float64(m.done) / time.Since(m.began).Seconds()}
	if p.Rate > 0 {
		p.Left = float64(max(0, m.total-m.done)) / p.Rate
	}
	_ = m.emit(p) // whoever looks may have left
}
