package history_test

import (
	"math"
	"testing"
)

// The rate is that of the last ten minutes before the newest row, at what a row takes on disk; older rows were others.
func TestGrowthIsThatOfTheLastMinutes(t *testing.T) {
	store := newStore(t)
	if growth, err := store.Growth(t.Context()); err != nil || len(growth) > 0 {
		t.Fatalf("of empty tables: got %v, %v", growth, err)
	}
	insert := func(seconds, perSecond int) {
		t.Helper()
		err := store.Conn().Exec(t.Context(), `INSERT INTO ticks (coin_id, venue, symbol, kind, day, ingest_time, event_time, event_id, trade_id)
			SELECT 'bitcoin', 'kraken', 'XBT/USD', 'trade', toDate('2026-11-24'), toDateTime64('2026-11-24 12:00:00', 9, 'UTC') + toIntervalSecond(intDiv(number, ?) + ?) AS at,
				at, toFixedString(hex(number), 16), toString(cityHash64(number)) FROM numbers(?)`, perSecond, seconds, perSecond*600)
		if err != nil {
			t.Fatal(err)
		}
	}
	insert(0, 100)  // ten minutes, fast
	insert(600, 10) // and ten minutes, slower
	growth, err := store.Growth(t.Context())
	if err != nil || len(growth) != 1 || growth[0].Table != "ticks" {
		t.Fatalf("got %v, %v, want that of ticks", growth, err)
	}
	g := growth[0]
	perRow := float64(g.Bytes) / (110 * 600)
	if want := 10 * 86400 * perRow; math.Abs(g.BytesPerDay/want-1) > 0.01 || g.Bytes == 0 || g.Kept != 7 {
		t.Errorf("got %+v, want %.0f bytes a day for 7 days", g, want)
	}
}
