package ws

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// A process that was killed may have sent all that the log held. Its successor reads that again, and who
// joins then must not be taken back into the middle of it.
func TestWhoJoinsAfterABacklogReceivesItsEnd(t *testing.T) {
	waiting := "reading prices.v1 to its end"
	hub, err := NewHub(DefaultConfig(), Deps{
		Prices: views.NewPriceCache(schemas.Coins()), Catalog: views.NewCatalog(schemas.Coins()), Waiting: func() string { return waiting }, Now: time.Now,
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	bitcoin, _ := hub.deps.Prices.Coins().ByID("bitcoin")
	second := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for offset := range int64(3) {
		second = second.Add(time.Second)
		rec := views.TailRecord{Offset: offset, Marked: &eventsv1.PriceRecord{
			Mark: &eventsv1.Mark{Offset: offset + 1},
			Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{CoinId: bitcoin.ID, Symbol: bitcoin.Symbol, Time: second.UnixNano(), Price: 100}},
		}}
		if err := hub.deps.Prices.Apply(rec); err != nil {
			t.Fatal(err)
		}
		if err := hub.Apply(rec); err != nil {
			t.Fatal(err)
		}
		if offset == 0 {
			hub.tick() // a second of the backlog is whole
		}
	}
	waiting = ""
	hub.join(newSubscriber(&admission{}, nil, len(hub.known)), nil)
	if sent := hub.known[bitcoin.Rank-1]; sent == nil || sent.entry.Price.Time != second.UnixNano() {
		t.Errorf("the snapshot holds %+v, want the price of %v", sent, second)
	}
}
