package roles

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/deploy/supervise"
)

// What makes no prices begins with the first fresh price, or without one when that is overdue; and what makes them at once.
func TestPricesComeBeforeTheRestOfAStart(t *testing.T) {
	for name, waits := range map[string]bool{
		"processors/quotes": false, "processors/resolve": false, "processors/prices": false, "query/api": false, "produce/kraken": false,
		"processors/earn": true, "processors/markets": true, "sink/ticks.v1": true, "tables/behind": true, "tables": true, "archive": true, "damages": true, "sources": true, "backfill": true,
	} {
		if got := waitsForPrices(name); got != waits {
			t.Errorf("%s waits: got %v", name, got)
		}
	}
	for _, opened := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			fresh, start := newFirstFresh(), time.Now()
			var began time.Duration
			role := fresh.before(supervise.Role{Name: "sink/ticks.v1", Run: func(context.Context) error { began = time.Since(start); return nil }})
			want := freshWithin
			if opened {
				want = 3 * time.Second
				time.AfterFunc(want, fresh.open)
			}
			for range 2 { // when it is started again, nothing is waited for
				if err := role.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if began != want {
					t.Errorf("opened %v: the role began after %v, want %v", opened, began, want)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		role := newFirstFresh().before(supervise.Role{Run: func(context.Context) error { t.Error("a role of a start that was stopped began"); return nil }})
		if err := role.Run(ctx); err == nil {
			t.Error("got no error, want that of the context")
		}
	})
}

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
