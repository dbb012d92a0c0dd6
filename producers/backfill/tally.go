package backfill

import (
	"fmt"
	"sync"
	"time"

	"github.com/marketlog/marketlog/producers"
)

// Progress is how far a job is; the unit is calls.
type Progress struct {
	Step  string `json:"step"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	// Rate is calls a second; Left is the time left at it, in seconds.
	Rate float64 `json:"rate"`
	Left float64 `json:"left"`
	// Candles were written so far, of a polled source Values.
	Candles int64 `json:"candles"`
	Values  int64 `json:"values,omitempty"`
}

// tally adds up the calls of a job and reports its progress.
type tally struct {
	clock  producers.Clock
	report func(Progress) error
	began  time.Time

	mu       sync.Mutex
	result   Result
	total    int64
	failure  error
	inARow   int
	reported time.Time
}

func newTally(source string, calls int, clock producers.Clock, report func(Progress) error) *tally {
	return &tally{clock: clock, report: report, began: clock.Now(), result: Result{Source: source}, total: int64(calls)}
}

// refuse counts rows that could not be read.
func (t *tally) refuse(rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result.Refused += int64(rows)
}

// expect changes how many calls are made in all.
func (t *tally) expect(more int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += int64(more)
}

// count adds a call and what was written by it. A failed one ends the run only if many failed in a row.
func (t *tally) count(did Result, failure error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result.Calls++
	t.result.Candles += did.Candles
	t.result.Known += did.Known
	t.result.Values += did.Values
	t.inARow++
	if failure == nil {
		t.inARow = 0
	} else {
		t.result.Failed++
		t.failure = failure
		if t.inARow >= giveUp {
			return fmt.Errorf("giving up after %d failures in a row: %w", giveUp, failure)
		}
	}
	now, done := t.clock.Now(), t.result.Calls
	if t.report == nil || done < t.total && now.Sub(t.reported) < time.Second {
		return nil
	}
	t.reported = now
	p := Progress{Step: "back-filling " + t.result.Source, Done: done, Total: max(done, t.total), Candles: t.result.Candles, Values: t.result.Values}
	if seconds := now.Sub(t.began).Seconds(); seconds > 0 {
		p.Rate = float64(done) / seconds
		p.Left = float64(p.Total-done) / p.Rate
	}
	return t.report(p)
}

// end is the result, given how the run ended.
func (t *tally) end(err error) (Result, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result.Seconds = t.clock.Now().Sub(t.began).Seconds()
	if err == nil && t.result.Failed > 0 {
		err = fmt.Errorf("%d of %d %w; one of them: %w", t.result.Failed, t.result.Calls, ErrIncomplete, t.failure)
	}
	return t.result, err
}
