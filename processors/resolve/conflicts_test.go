package resolve

import (
	"testing"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// What the log has of a market may be read only when the market was received already: it counts for one that is off, and for no other.
func TestADoubtThatIsReadLateCounts(t *testing.T) {
	now := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC).UnixNano()
	conflicts := NewConflictFilter()
	conflicts.Apply(&eventsv1.CoinMarket{Source: "coinpaprika", SourceId: "sol-solana", Price: "200", IngestTime: now})
	agrees, off := marketKey{"kraken", "SOL/USD"}, marketKey{"poloniex", "SOL_USD"}
	for _, c := range []struct {
		market marketKey
		usd    float64
	}{{agrees, 201}, {off, 2}} {
		if conflicts.doubts("solana", c.market, c.usd, now) {
			t.Errorf("%v is doubted at once", c.market)
		}
	}
	for _, market := range []marketKey{agrees, off} {
		conflicts.Remember(market.venue, market.symbol, now-int64(time.Minute))
	}
	now += int64(time.Second)
	if conflicts.doubts("solana", agrees, 201, now) || !conflicts.doubts("solana", off, 2, now) {
		t.Error("want that the market which is off is doubted, and the other is not")
	}
	now += int64(time.Second)
	if conflicts.doubts("solana", agrees, 2, now) {
		t.Error("a market that agreed is doubted as soon as it is off")
	}
}
