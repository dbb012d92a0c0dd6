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
