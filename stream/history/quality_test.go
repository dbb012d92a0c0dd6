package history_test

import (
	"fmt"
	"testing"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// How good a market is follows from the inputs of prices, by reason; trades and gaps of the day are beside it.
func TestQualityIsThatOfTheInputs(t *testing.T) {
	store := newStore(t)
	second := int64(time.Second)
	at := func(offset, seconds int64, inputs ...*eventsv1.PriceInput) logged {
		return price(offset, &eventsv1.Price{CoinId: "bitcoin", Symbol: "BTC", Time: noon + seconds*second, Price: 100, Inputs: inputs})
	}
	counted := func(venue string, deviation float64) *eventsv1.PriceInput {
		return &eventsv1.PriceInput{Provider: venue, Symbol: "BTC-USDT", Accepted: true, DeviationPct: deviation}
	}
	rejected := func(venue, reason string) *eventsv1.PriceInput {
		return &eventsv1.PriceInput{Provider: venue, Symbol: "BTC-USDT", Reason: reason, DeviationPct: 70}
	}
	insert(t, store,
		at(1, 0, counted("gate", -0.03), counted("okx", 0.01)), at(2, 1, rejected("gate", "outlier"), counted("okx", 0.02)), at(3, 1, rejected("gate", "outlier"), counted("okx", 0.02)), // one row
		at(4, 2, rejected("gate", "silent"), counted("okx", -0.06)), at(5, 3, rejected("gate", "other_market"), rejected("okx", "no_rate")),
		at(6, 12*3600, rejected("gate", "other_market"), rejected("okx", "wide"), rejected("kraken", "crossed")), // the next day
		traded("okx", "BTC-USDT", 0, "2", "100"), traded("okx", "BTC-USDT", 7, "2", "100"), traded("okx", "BTC-USDT", 720, "2", "100"),
		gap(1, "gate", "", 10*time.Minute, 11*time.Minute), gap(2, "gate", "BTC-USDT", 11*time.Hour+59*time.Minute, 12*time.Hour+30*time.Second), gap(3, "gate", "ETH-USDT", 0, time.Hour))
	checkRows(t, store, `SELECT concatWithSeparator(' ', day, venue, symbol, coin_id, prices, accepted, silent, outlier, wide, crossed, no_rate, other_market, round(rejected_percent, 2),
		ifNull(toString(round(deviation_bps, 4)), 'NULL'), ifNull(toString(round(bias_bps, 4)), 'NULL'), trades, traded_minutes, gap_seconds, toString(published)) FROM default.v_quality ORDER BY day, venue`,
		"2026-03-01 gate BTC-USDT bitcoin 4 1 1 1 0 0 0 1 66.67 3 -3 0 0 120 2026-03-02 00:01:00.000000000",
		"2026-03-01 okx BTC-USDT bitcoin 4 3 0 0 0 0 1 0 25 2 -1 2 2 0 2026-03-02 00:01:00.000000000",
		"2026-03-02 gate BTC-USDT bitcoin 1 0 0 0 0 0 0 1 0 NULL NULL 0 0 30 2026-03-03 00:01:00.000000000",
		"2026-03-02 kraken BTC-USDT bitcoin 1 0 0 0 0 1 0 0 100 NULL NULL 0 0 0 2026-03-03 00:01:00.000000000",
		"2026-03-02 okx BTC-USDT bitcoin 1 0 0 0 1 0 0 0 100 NULL NULL 1 1 0 2026-03-03 00:01:00.000000000")
}

// What takes how long is measured on live trades whose venue reports when they happened, by the hour in which they were received.
func TestLatencyIsThatOfLiveTrades(t *testing.T) {
	store := newStore(t)
	var records []logged
	add := func(venue string, kind eventsv1.TickKind, received, took time.Duration, snapshot bool) {
		n := int64(len(records))
		records = append(records, tick(n, &eventsv1.Tick{
			Venue: venue, Symbol: "BTC-USDT", Kind: kind, EventId: fmt.Appendf(nil, "%016d", n), EventTime: noon + int64(received-took), IngestTime: noon + int64(received), Price: "100", Snapshot: snapshot,
		}, 0))
	}
	const trade = eventsv1.TickKind_TICK_KIND_TRADE
	for i := range 100 {
		add("okx", trade, time.Duration(i)*time.Second, time.Duration(i+1)*time.Millisecond, false)
	}
	add("okx", trade, time.Hour, 20*time.Second, false) // happened in the hour before
	add("okx", trade, time.Hour+time.Second, -2500*time.Microsecond, false)
	add("okx", trade, time.Second, 40*time.Minute, true)
	add("okx", eventsv1.TickKind_TICK_KIND_QUOTE, time.Second, time.Minute, false)
	add("gate", trade, time.Second, 0, false) // the venue does not say
	insert(t, store, records...)
	checkRows(t, store, `SELECT concatWithSeparator(' ', day, toHour(hour), venue, trades, round(p50_ms), round(p95_ms), round(p99_ms), max_ms, ahead, toString(published)) FROM default.v_latency ORDER BY hour`,
		"2026-03-01 12 okx 100 50 95 99 100 0 2026-03-01 13:01:00.000000000", "2026-03-01 13 okx 2 -2 20000 20000 20000 1 2026-03-01 14:01:00.000000000")
}

// A day of a coin is as complete as it has minutes, by origin; those of its markets that were compared are beside it.
func TestCompletenessByDaysCountsMinutes(t *testing.T) {
	store := newStore(t)
	insert(t, store, candleAt(1, &eventsv1.Candle{CoinId: "bitcoin", Start: noon, Open: 1, High: 1, Low: 1, Close: 1, Volume: "1"}), candleAt(2, &eventsv1.Candle{CoinId: "bitcoin", Start: noon + aMinute, Open: 1, High: 1, Low: 1, Close: 1, Volume: "1"}),
		candleAt(3, &eventsv1.Candle{CoinId: "ethereum", Start: noon + 12*60*aMinute, Open: 1, High: 1, Low: 1, Close: 1, Volume: "1"}), candleAt(4, &eventsv1.Candle{CoinId: "ethereum", Start: noon + (12*60+9)*aMinute, Open: 1, High: 1, Low: 1, Close: 1, Volume: "1"}),
		traded("okx", "BTC-USDT", 0, "10", "100"), traded("okx", "BTC-USDT", 1, "5", "100"),
		venueCandle(10, "okx", "BTC", "USDT", time.Minute, noon, "100", "100", "100", "100", "10"), venueCandle(11, "okx", "BTC", "USDT", time.Minute, noon+aMinute, "100", "100", "100", "100", "10"),
		venueCandle(12, "kraken", "BTC", "USD", time.Minute, noon+5*aMinute, "100", "100", "100", "100", "1"))
	foldPast(t, store)
	checkRows(t, store, `SELECT concatWithSeparator(' ', day, coin_id, symbol, minutes, live, backfill, import, missing, compared, complete, toString(published)) FROM default.v_completeness_daily ORDER BY day, coin_id`,
		"2026-03-01 bitcoin BTC 3 2 1 0 1437 2 1 2026-03-02 00:01:00.000000000", "2026-03-02 ethereum ETH 2 2 0 0 8 0 0 2026-03-03 00:01:00.000000000")
}
