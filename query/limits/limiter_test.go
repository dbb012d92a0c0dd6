package limits

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// clock is a time that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)} }

// TestNoMinuteAdmitsMoreThanItsLimit compares with a list of all admissions: exact windows refuse
// exactly what the list would, buckets at most one second early.
func TestNoMinuteAdmitsMoreThanItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 30).Draw(t, "limit")
		exact := rapid.Bool().Draw(t, "exact")
		var w window = &ring{}
		if !exact {
			w = &buckets{}
		}
		var admitted []int64
		now := minute + rapid.Int64Range(0, int64(time.Hour)).Draw(t, "start")
		for i := range rapid.IntRange(1, 300).Draw(t, "requests") {
			now += rapid.Int64Range(0, int64(8*time.Second)).Draw(t, fmt.Sprint("pause", i))
			within := func(span int64) (n int) {
				for _, at := range admitted {
					if now-at < span {
						n++
					}
				}
				return n
			}
			used := w.used(now)
			if used < within(minute) || used > within(minute+int64(time.Second)) || exact && used != within(minute) {
				t.Fatalf("at %d the window counts %d, want %d (up to %d for buckets)", now, used, within(minute), within(minute+int64(time.Second)))
			}
			if frees := w.frees(now); used > 0 && (frees <= now || copied(w).used(frees-1) != used || copied(w).used(frees) == used) {
				t.Fatalf("at %d the window says that it frees at %d, but does not then", now, frees)
			}
			if used < limit {
				w.add(now)
				admitted = append(admitted, now)
				if rapid.IntRange(0, 9).Draw(t, fmt.Sprint("undo", i)) == 0 {
					w.undo(now)
					admitted = admitted[:len(admitted)-1]
				}
			}
		}
	})
}

// copied lets a test look ahead: windows forget what has left them.
func copied(w window) window {
	switch w := w.(type) {
	case *ring:
		c := *w
		return &c
	case *buckets:
		c := *w
		return &c
	}
	panic("unknown window")
}

func TestRetryAfterIsWhenARequestPasses(t *testing.T) {
	for _, limit := range []int{3, exactUpTo + 1} {
		c := newClock()
		l := NewLimiter(c.now, nil)
		plan := &Plan{PerMinute: limit}
		for range limit {
			if v := l.Admit("b", plan, Plain, c.at); !v.OK {
				t.Fatalf("limit %d: refused early: %+v", limit, v)
			}
		}
		v := l.Admit("b", plan, Plain, c.at)
		if v.OK || v.Scope != ScopeMinute || v.Remaining != 0 {
			t.Fatalf("limit %d: got %+v, want a refusal", limit, v)
		}
		c.at = c.at.Add(time.Duration(v.RetryAfter) * time.Second)
		if v := l.Admit("b", plan, Plain, c.at); !v.OK {
			t.Errorf("limit %d: refused after Retry-After: %+v", limit, v)
		}
	}
}

func TestMonthsEndInUTC(t *testing.T) {
	c := newClock()
	l := NewLimiter(c.now, nil)
	plan := &Plan{PerMinute: 100, PerMonth: 2}
	for want := int64(1); want >= 0; want-- {
		if v := l.Admit("b", plan, Plain, c.at); !v.OK || v.Limit != 2 || v.Remaining != want {
			t.Errorf("got %+v, want %d of 2 left", v, want)
		}
	}
	v := l.Admit("b", plan, Plain, c.at)
	if v.OK || v.Scope != ScopeMonth || v.RetryAfter != 3600 || !v.Reset.Equal(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v, want a refusal for an hour, by the month", v)
	}
	c.at = c.at.Add(time.Hour)
	if v := l.Admit("b", plan, Plain, c.at); !v.OK || v.Remaining != 1 {
		t.Errorf("in the new month: got %+v, want 1 left", v)
	}
}

func TestOurFaultsCostNothing(t *testing.T) {
	c := newClock()
	l := NewLimiter(c.now, nil)
	plan := &Plan{PerMinute: 1, PerMonth: 1, ChartsPerMinute: 1}
	v := l.Admit("b", plan, Charts, c.at)
	l.Undo("b", plan, Charts, v)
	if v := l.Admit("b", plan, Charts, c.at); !v.OK {
		t.Errorf("after an undone request: %+v, want it admitted", v)
	}
	if v := l.Peek("b", plan, Plain, c.at); v.Remaining != 0 {
		t.Errorf("peeking: %+v, want 0 left", v)
	}
}

func TestMonthsOutliveARestart(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "usage.json")
	plan := &Plan{PerMonth: 5}
	first := NewLimiter(c.now, NewUsageFile(path))
	for range 3 {
		first.Admit("b", plan, Plain, c.at)
	}
	if err := first.save(context.Background()); err != nil {
		t.Fatal(err)
	}
	second := NewLimiter(c.now, NewUsageFile(path))
	if err := second.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	if v := second.Admit("b", plan, Plain, c.at); v.Remaining != 1 {
		t.Errorf("after a restart: got %+v, want 1 of 5 left", v)
	}
	c.at = c.at.Add(2 * time.Hour)
	if err := second.save(context.Background()); err != nil {
		t.Fatal(err)
	}
	third := NewLimiter(c.now, NewUsageFile(path))
	if err := third.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	if v := third.Admit("b", plan, Plain, c.at); v.Remaining != 4 {
		t.Errorf("in the next month: got %+v, want 4 of 5 left", v)
	}
}

func TestIdleBudgetsAreForgotten(t *testing.T) {
	c := newClock()
	l := NewLimiter(c.now, nil)
	plan := &Plan{PerMinute: 10}
	l.Undo("b", plan, Plain, l.Admit("b", plan, Plain, c.at))
	l.Admit("kept", plan, Plain, c.at)
	c.at = c.at.Add(10 * time.Minute)
	if err := l.save(context.Background()); err != nil {
		t.Fatal(err)
	}
	if l.shard("b").budgets["b"] != nil || l.shard("kept").budgets["kept"] == nil {
		t.Error("an idle budget is kept, or one with a count for its month is not")
	}
}

// fullDisk is a store of counts that cannot be written.
type fullDisk struct{}

func (fullDisk) Load(context.Context) ([]Usage, error) { return nil, nil }

func (fullDisk) Save(context.Context, []Usage) error { return errors.New("no space left on device") }

func TestCountsThatCannotBeSavedAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(time.Now, fullDisk{})
		l.Admit("key", &Plan{PerMinute: 10, PerMonth: 1000}, Plain, time.Now())
		var lines bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.Run(ctx, slog.New(slog.NewTextHandler(&lines, nil))) }()
		time.Sleep(150 * time.Second) // of the bubble's clock
		stop()
		if err := <-ended; err == nil {
			t.Error("the counts are lost at the end without an error")
		}
		if n := strings.Count(lines.String(), "no space left"); n != 3 {
			t.Errorf("got %d lines in two and a half minutes, want 3", n)
		}
	})
}
