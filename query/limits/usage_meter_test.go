package limits

import (
	"context"
	"errors"
	"testing"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// lossy is a log that keeps what it is given, or not, and reports that it is unknown which.
type lossy struct {
	kept  []*eventsv1.UsageRecord
	fails bool
	loses bool
}

func (l *lossy) WriteUsage(_ context.Context, records []*eventsv1.UsageRecord) error {
	if !l.loses {
		l.kept = append(l.kept, records...)
	}
	if l.fails {
		return errors.New("no answer came")
	}
	return nil
}

// total is what the view makes of a log: of each process and day what it wrote last.
func (l *lossy) total(budget string) (requests, charts uint64) {
	type key struct {
		replica, budget, plan string
		day                   int64
	}
	last := map[key]*eventsv1.UsageRecord{}
	for _, r := range l.kept {
		k := key{r.Replica, r.Budget, r.Plan, r.Day}
		if last[k] == nil || last[k].Number < r.Number {
			last[k] = r
		}
	}
	for k, r := range last {
		if k.budget == budget {
			requests, charts = requests+r.Requests, charts+r.Charts
		}
	}
	return requests, charts
}

func TestEachRequestIsWrittenOnce(t *testing.T) {
	c := newClock()
	log := &lossy{}
	plan := &Plan{Name: "pro"}
	admitted := uint64(0)
	for range 2 { // replicas, one after the other
		l := NewLimiter(c.now, nil)
		m := NewMeter("", log, c.now)
		l.Measure(m)
		for round := range 6 {
			log.fails, log.loses = round%2 == 1, round == 3
			for i := range 10 {
				class := Plain
				if i < 3 {
					class = Charts
				}
				v := l.Admit("b", plan, class, c.at)
				admitted++
				if i == 0 {
					l.Undo("b", plan, class, v)
					admitted--
				}
			}
			if err := m.write(t.Context()); (err != nil) != log.fails {
				t.Fatalf("round %d: %v", round, err)
			}
			c.at = c.at.Add(20 * time.Minute) // past midnight
		}
		log.fails = false
		if err := m.write(t.Context()); err != nil {
			t.Fatal(err)
		}
		written := len(log.kept)
		if err := m.write(t.Context()); err != nil || len(log.kept) != written {
			t.Errorf("%d records were written though nothing had changed (%v)", len(log.kept)-written, err)
		}
	}
	if requests, charts := log.total("b"); requests != admitted || charts != 2*6*2 {
		t.Errorf("the log counts %d requests and %d for charts, want %d and 24", requests, charts, admitted)
	}
}
