package limits

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// meterEvery is how often what was counted is written.
const meterEvery = time.Second

// UsageLog is where usage is written. After an error some records may be kept.
type UsageLog interface {
	WriteUsage(ctx context.Context, records []*eventsv1.UsageRecord) error
}

// Meter counts what is admitted, by budget, plan and day (UTC), and writes what has changed each second: all of a day since
// the process began, so that nothing is lost or counted twice when a record is. Safe for concurrent use.
type Meter struct {
	replica string
	log     UsageLog
	now     func() time.Time
	seed    maphash.Seed
	number  int64 // only Run uses it
	shards  [limiterShards]struct {
		sync.Mutex
		tallies map[tallyKey]*tally
	}
}

type tallyKey struct {
	budget, plan string
	day          int64 // since 1970
}

// tally counts for a key; written is what Run wrote last.
type tally struct {
	requests, charts atomic.Int64
	written          [2]int64
}

func (t *tally) add(class Class, n int64) {
	if class == Charts {
		t.charts.Add(n)
	}
	t.requests.Add(n)
}

func (t *tally) undo(class Class) { t.add(class, -1) }

// NewMeter makes a meter of a process, whose name no other ever had; empty draws one.
func NewMeter(replica string, log UsageLog, now func() time.Time) *Meter {
	if replica == "" {
		replica = strings.ToLower(rand.Text()[:16])
	}
	m := &Meter{replica: replica, log: log, now: now, seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i].tallies = map[tallyKey]*tally{}
	}
	return m
}

// Replica is the name of the process.
func (m *Meter) Replica() string { return m.replica }

// Measure has a meter count what the limiter admits. It is called before the first request.
func (l *Limiter) Measure(m *Meter) { l.meter = m }

const dayLength = 24 * time.Hour

func dayOf(t time.Time) int64 { return t.Unix() / int64(dayLength/time.Second) }

func (m *Meter) count(budget string, plan *Plan, class Class, at time.Time) *tally {
	key := tallyKey{budget, plan.Name, dayOf(at)}
	s := &m.shards[maphash.String(m.seed, budget)%limiterShards]
	s.Lock()
	defer s.Unlock()
	t := s.tallies[key]
	if t == nil {
		t = &tally{}
		s.tallies[tallyKey{strings.Clone(budget), plan.Name, key.day}] = t
	}
	t.add(class, 1)
	return t
}

// Run writes until the context ends, and then what is left.
func (m *Meter) Run(ctx context.Context, log *slog.Logger) error {
	ticker := time.NewTicker(meterEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			return m.write(last)
		case <-ticker.C:
			if err := m.write(ctx); err != nil && ctx.Err() == nil {
				log.Error("writing usage failed, retrying with the next batch", "error", err)
			}
		}
	}
}

// reading is what a tally has come to.
type reading struct {
	tally  *tally
	counts [2]int64
	record *eventsv1.UsageRecord
}

// write writes what has changed, and forgets days that are over.
func (m *Meter) write(ctx context.Context) error {
	now := m.now()
	readings := m.changed(now)
	if len(readings) == 0 {
		return nil
	}
	records := make([]*eventsv1.UsageRecord, len(readings))
	for i, r := range readings {
		m.number++
		r.record.Number = m.number
		records[i] = r.record
	}
	if err := m.log.WriteUsage(ctx, records); err != nil {
		return fmt.Errorf("writing the usage of %d budgets: %w", len(records), err)
	}
	for _, r := range readings {
		r.tally.written = r.counts
	}
	return nil
}

// changed reads the tallies that were not written as they stand, by budget, plan and day.
func (m *Meter) changed(now time.Time) []reading {
	var readings []reading
	for i := range m.shards {
		s := &m.shards[i]
		s.Lock()
		for key, t := range s.tallies {
			counts := [2]int64{t.requests.Load(), t.charts.Load()}
			switch {
			case counts != t.written:
				readings = append(readings, reading{t, counts, &eventsv1.UsageRecord{Replica: m.replica, Budget: key.budget, Plan: key.plan,
					Day: key.day * int64(dayLength), Requests: uint64(max(0, counts[0])), Charts: uint64(max(0, counts[1])), Time: now.UnixNano()}})
			case key.day < dayOf(now)-1: // a request that came yesterday may still be taken back
				delete(s.tallies, key)
			}
		}
		s.Unlock()
	}
	slices.SortFunc(readings, func(a, b reading) int {
		return cmp.Or(strings.Compare(a.record.Budget, b.record.Budget), strings.Compare(a.record.Plan, b.record.Plan), cmp.Compare(a.record.Day, b.record.Day))
	})
	return readings
}
