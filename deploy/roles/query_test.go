package roles

import (
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// A clock that jumps makes no old price a fresh one, and readiness says what is wrong with it.
func TestAClockThatJumpsIsReported(t *testing.T) {
	priceCache := views.NewPriceCache(schemas.Coins())
	priced := time.Now()
	rec := &eventsv1.PriceRecord{Mark: &eventsv1.Mark{Offset: 1}, Body: &eventsv1.PriceRecord_Price{
		Price: &eventsv1.Price{CoinId: "bitcoin", Time: priced.UnixNano(), Price: 1}}}
	if err := priceCache.Apply(views.TailRecord{Offset: 1, Marked: rec}); err != nil {
		t.Fatal(err)
	}
	bitcoin, _ := schemas.Coins().ByID("bitcoin")
	api := &apiRole{}
	for _, step := range []struct {
		jump   time.Duration
		reason string // empty: it is ready
	}{{0, ""}, {time.Hour, "the newest is 1h0m0s old"}, {-time.Hour, "was set back, and the log is 1h0m0s ahead"}, {0, ""}} {
		clock := instance.ShiftedClock{By: step.jump}
		api.in = &instance.Instance{Clock: clock}
		reason := api.aged(priceCache)
		if (reason == "") != (step.reason == "") || !strings.Contains(reason, step.reason) {
			t.Errorf("after a jump of %s: got %q, want %q", step.jump, reason, step.reason)
		}
		if stale := priceCache.Freshness(priceCache.Entry(bitcoin), clock.Now()).Stale; stale != (step.jump != 0) {
			t.Errorf("after a jump of %s a price of its beginning is stale: %v", step.jump, stale)
		}
	}
}
