package coins

import (
	"testing"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestWhoAsksWhileAnIndexIsMadeReadsTheOneBefore(t *testing.T) {
	catalog := query.NewCatalog(schemas.Coins())
	u := New(query.NewBoard(schemas.Coins()), catalog, query.NewRateBook(), nil, nil)
	first := u.index()
	pulse := &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: 60e9, Watermark: 60e9}}}
	if err := catalog.ApplyMarkets(query.TailRecord{Marked: pulse}); err != nil {
		t.Fatal(err)
	}
	u.indexing.Lock()
	if got := u.index(); got != first {
		t.Errorf("while the next is made: got the index of %d, want that of %d", got.snapshot.Time, first.snapshot.Time)
	}
	u.indexing.Unlock()
	if got := u.index(); got.snapshot.Time != 60e9 {
		t.Errorf("got the index of %d, want that of %d", got.snapshot.Time, int64(60e9))
	}
}
