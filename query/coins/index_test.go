package coins

import (
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestWhoAsksWhileAnIndexIsMadeReadsTheOneBefore(t *testing.T) {
	catalog := views.NewCatalog(schemas.Coins())
	u := New(views.NewPriceCache(schemas.Coins()), catalog, views.NewYieldStore(), nil, Served{}, nil)
	now := time.Unix(60, 0)
	first := u.index(now)
	pulse := &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: 60e9, Watermark: 60e9}}}
	if err := catalog.ApplyMarkets(views.TailRecord{Marked: pulse}); err != nil {
		t.Fatal(err)
	}
	u.indexed.Get(func(*index) bool { return false }, func() *index {
		if got := u.index(now); got != first {
			t.Errorf("while the next is made: got the index of %d, want that of %d", got.snapshot.Time, first.snapshot.Time)
		}
		return first
	})
	if got := u.index(now); got.snapshot.Time != 60e9 {
		t.Errorf("got the index of %d, want that of %d", got.snapshot.Time, int64(60e9))
	}
}

// Rows state that they are old once the fold of markets has ended no minute for three, and no more when it goes on.
func TestRowsAreMarkedStale(t *testing.T) {
	catalog := views.NewCatalog(schemas.Coins())
	u := New(views.NewPriceCache(schemas.Coins()), catalog, views.NewYieldStore(), nil, Served{}, nil)
	if u.index(time.Unix(1_000, 0)).stale {
		t.Error("before the first minute there is nothing to be stale")
	}
	for _, minute := range []int64{600, 1_200} {
		pulse := &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: minute * 1e9, Watermark: minute * 1e9}}}
		if err := catalog.ApplyMarkets(views.TailRecord{Marked: pulse}); err != nil {
			t.Fatal(err)
		}
		for _, age := range []time.Duration{0, rowsStaleAfter, rowsStaleAfter + 1} {
			ix := u.index(time.Unix(minute, 0).Add(age))
			named, _ := catalog.Snapshot().Find("bitcoin")
			coin := named.CatalogCoin
			if want := age > rowsStaleAfter; ix.stale != want || ix.meta(&query.Request{}, 1).IsStale != want || ix.coin(coin).IsStale != want {
				t.Errorf("%s after the minute: stale %v, want %v", age, ix.stale, want)
			}
		}
	}
}
