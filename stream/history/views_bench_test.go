package history_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/read"
)

// pastAndLive fills a store as an instance of some hours has it: many coins with five years of days, thirty days of hours and a
// day of minutes of two to three venues, mostly quoted in USDT; and live minutes of twice as many.
func pastAndLive(t testing.TB, store *history.Store, coins int) (now time.Time) {
	t.Helper()
	now = time.Unix(0, noon).UTC()
	var known []string
	for _, coin := range schemas.Coins().All() {
		known = append(known, "'"+coin.ID+"'")
	}
	list := func(n int) string { return "[" + strings.Join(known[:min(n, len(known))], ", ") + "]" }
	for _, length := range []struct{ seconds, n int }{{86400, 1825}, {3600, 720}, {60, 1440}} {
		err := store.Conn().Exec(t.Context(), fmt.Sprintf(`INSERT INTO backfill (coin_id, quote_id, producer, venue, symbol, seconds, start, base, quote, open, high, low, close, volume, version)
			SELECT arrayElement(%s, 1 + intDiv(number, 3 * %[2]d) %% %[5]d) AS coin, if(coin = 'tether' OR venue = 'kraken', 'USD', 'tether'), venue,
				['kraken', 'gate', 'okx'][1 + number %% 3] AS venue, coin, %[3]d, toDateTime('%[4]s', 'UTC') - (1 + intDiv(number, 3) %% %[2]d) * %[3]d, coin, 'USDT',
				100 + number %% 7, 110 + number %% 5, 90 - number %% 3, 101 + number %% 7, 12.5, number FROM numbers(%[5]d * 3 * %[2]d)
			SETTINGS max_partitions_per_insert_block = 0`, list(coins), length.n, length.seconds, now.Truncate(time.Duration(length.seconds)*time.Second).Format(time.DateTime), min(coins, len(known))))
		if err != nil {
			t.Fatal(err)
		}
	}
	err := store.Conn().Exec(t.Context(), fmt.Sprintf(`INSERT INTO candles_1m (coin_id, start, open, high, low, close, volume, volume_usd, trades, version)
		SELECT arrayElement(%s, 1 + number %% %d), toDateTime('%s', 'UTC') + intDiv(number, %[2]d) * 60, 100, 105, 95, 101, 1.5, 150, 3, number FROM numbers(%[2]d * 200)`,
		list(2*coins), min(2*coins, len(known)), now.Add(-200*time.Minute).Format(time.DateTime)))
	if err != nil {
		t.Fatal(err)
	}
	fold := past.NewFold(store)
	if err := fold.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if folded, err := fold.Pass(t.Context()); err != nil || folded == 0 {
		t.Fatalf("folding the past: %d parts, %v", folded, err)
	}
	return now
}

// What analysts ask of candles first, and what the server itself asks each minute.
func BenchmarkViews(b *testing.B) {
	store := newStore(b)
	now := pastAndLive(b, store, 140)
	for _, statement := range []struct{ name, sql string }{
		{"days", "SELECT * FROM default.v_candles_1d LIMIT 100"},
		{"hours", "SELECT * FROM default.v_candles_1h LIMIT 100"},
		{"minutes", "SELECT * FROM default.v_candles_1m LIMIT 100"},
		{"coin", "SELECT * FROM default.v_candles_1d WHERE coin_id = 'solana' ORDER BY start DESC LIMIT 100"},
		{"coin_hours", "SELECT * FROM default.v_candles_1h WHERE coin_id = 'solana'"},
		{"all_hours", "SELECT * FROM default.v_candles_1h"},
		{"newest", fmt.Sprintf("SELECT * FROM default.v_candles_1h WHERE start >= toDateTime('%s')", now.Add(-24*time.Hour).Format(time.DateTime))},
		{"newest_minutes", fmt.Sprintf("SELECT coin_id, max(high) FROM default.v_candles_1m WHERE start >= toDateTime('%s') GROUP BY coin_id", now.Add(-time.Hour).Format(time.DateTime))},
		{"backfill", "SELECT * FROM default.v_backfill LIMIT 100"},
		{"extremes", "SELECT coin_id, max(high), min(low) FROM default.v_candles_1d GROUP BY coin_id"},
	} {
		b.Run(statement.name, func(b *testing.B) {
			for b.Loop() {
				rows, err := store.Conn().Query(b.Context(), statement.sql)
				if err != nil {
					b.Fatal(err)
				}
				for rows.Next() {
				}
				if err := rows.Err(); err != nil {
					b.Fatal(err)
				}
				rows.Close()
			}
		})
	}
	b.Run("all_coins_hour", func(b *testing.B) {
		for b.Loop() {
			if all, err := read.From(store).AllIntervals(b.Context(), time.Hour, now.Add(-12*time.Hour), now.Add(-11*time.Hour)); err != nil || len(all) == 0 {
				b.Fatal(len(all), err)
			}
		}
	})
	b.Run("all_extremes", func(b *testing.B) {
		for b.Loop() {
			if all, err := read.From(store).BackfilledExtremes(b.Context()); err != nil || len(all) == 0 {
				b.Fatal(len(all), err)
			}
		}
	})
}
