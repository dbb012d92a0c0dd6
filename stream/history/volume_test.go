package history_test

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// What analysts read of candles has only types that clients of Parquet and Arrow know (decimals of 76 digits make some of them
// panic), and the volume with all its digits beside the rounded one.
func TestVolumesAreOfTypesThatClientsRead(t *testing.T) {
	store := newStore(t)
	const volume = "123456789012345678901234567890.123456789012345678"
	insert(t, store,
		candleAt(1, &eventsv1.Candle{CoinId: "bitcoin", Start: noon, Open: 1, High: 1, Low: 1, Close: 1, Volume: volume}),
		venueCandle(2, "kraken", "BTC", "USD", time.Hour, noon, "1", "2", "1", "2", volume),
		logged{rows.Place{Topic: schemas.TopicCandles, Offset: 3}, &eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: 3},
			Body: &eventsv1.CandleRecord_VenueCandle{VenueCandle: &eventsv1.VenueCandle{Venue: "kraken", Symbol: "BTC/USD", CoinId: "bitcoin", QuoteId: "USD",
				Start: noon, Open: "1", High: "1", Low: "1", Close: "1", Volume: volume}}}})
	foldPast(t, store)
	exact, ok := new(big.Float).SetString(volume)
	if !ok {
		t.Fatal("the volume is no number")
	}
	rounded, _ := exact.Float64()
	for _, view := range []string{"v_candles_1m", "v_candles_1h", "v_candles_1d", "v_backfill", "v_venue_candles_1m"} {
		types := queryStrings(t, store, "SELECT type FROM system.columns WHERE database = 'default' AND table = ?", view)
		if len(types) == 0 || slices.ContainsFunc(types, func(kind string) bool { return strings.Contains(kind, "(76,") }) {
			t.Errorf("%s has columns of types %q", view, types)
		}
		var asFloat float64
		var text string
		if err := store.Conn().QueryRow(t.Context(), "SELECT volume, volume_exact FROM default."+view).Scan(&asFloat, &text); err != nil {
			t.Fatalf("%s: %v", view, err)
		}
		if asFloat != rounded || text != volume {
			t.Errorf("%s: got %g and %s, want %g and %s", view, asFloat, text, rounded, volume)
		}
	}
	for _, view := range []string{"v_candles_1m", "v_candles_1h", "v_candles_1d"} {
		if got := queryStrings(t, store, "SELECT symbol FROM default."+view+" WHERE time = start"); !slices.Equal(got, []string{"BTC"}) {
			t.Errorf("%s: got symbols %q of the rows whose time is their start, want BTC", view, got)
		}
	}
}
