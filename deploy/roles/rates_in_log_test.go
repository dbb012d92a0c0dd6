package roles

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The fold of exchange rates leaves the processors to the first fresh price where the rates in the log count until it is there, and
// begins at once where they do not, or where a process has no such start.
func TestRatesInTheLogLetTheirFoldWait(t *testing.T) {
	const read, opened = time.Second, 3 * time.Second
	for name, c := range map[string]struct {
		age          time.Duration // of the rates at the start
		reads, opens bool
		without      bool
		want         time.Duration
	}{
		"new rates":                     {age: 5 * time.Second, reads: true, opens: true, want: opened},
		"new rates, but no price":       {age: 5 * time.Second, reads: true, want: read + freshWithin},
		"rates that count not for long": {age: rateLead - freshWithin, reads: true, opens: true, want: read},
		"no rates":                      {age: 20 * 365 * 24 * time.Hour, reads: true, opens: true, want: read},
		"a log that cannot be read":     {age: 5 * time.Second, want: freshWithin},
		"no first price to wait for":    {age: 5 * time.Second, without: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var fresh *firstFresh
			if !c.without {
				fresh = newFirstFresh()
				defer fresh.open()
			}
			r, start := newRatesInLog(), time.Now()
			r.reached(start.Add(-c.age).UnixNano())
			if c.reads {
				time.AfterFunc(read, r.ended)
			}
			if c.opens {
				time.AfterFunc(opened, fresh.open)
			}
			if err := r.await(t.Context(), fresh, time.Now); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != c.want {
				t.Errorf("%s: the fold began after %v, want %v", name, got, c.want)
			}
			if fresh != nil {
				fresh.open()
			}
			r.ended()
			if err := r.await(t.Context(), fresh, time.Now); err != nil || time.Since(start) != c.want {
				t.Errorf("%s: got %v and %v of a fold that begins again, want it at once", name, err, time.Since(start)-c.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fresh := newFirstFresh()
	defer fresh.open()
	if err := newRatesInLog().await(ctx, fresh, time.Now); err == nil {
		t.Error("got no error of a start that is stopped, want that of the context")
	}
}
