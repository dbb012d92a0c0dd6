package history_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// traded is a minute of a market with one trade of the size, at a price.
func traded(venue, symbol string, minute int64, size, price string) logged {
	return logged{rows.Place{Topic: schemas.TopicCandles}, &eventsv1.CandleRecord{Mark: mark(minute), Body: &eventsv1.CandleRecord_VenueCandle{VenueCandle: &eventsv1.VenueCandle{
		Venue: venue, Symbol: symbol, CoinId: "bitcoin", QuoteId: "tether", Start: noon + minute*aMinute, Open: price, High: price, Low: price, Close: price, Volume: size, Trades: 1,
	}}}}
}

// gap is a stretch in which messages are missing.
func gap(offset int64, venue, symbol string, from, to time.Duration) logged {
	return logged{rows.Place{Topic: schemas.TopicTicks, Offset: offset}, &eventsv1.ResolvedRecord{Mark: mark(offset), Body: &eventsv1.ResolvedRecord_Gap{Gap: &eventsv1.Gap{
		Venue: venue, Symbol: symbol, Reason: "disconnect", FromTime: noon + int64(from), ToTime: noon + int64(to),
	}}}}
}

// Silence has a reason: nothing ran, messages are missing, or nobody traded. What does not trade for an hour is seen in the other hours of its day.
func TestCoverageSaysWhyAMarketWasSilent(t *testing.T) {
	store := newStore(t)
	var records []logged
	for minute := range int64(225) {
		if minute < 70 || minute >= 150 { // nothing ran from 13:10 until 14:30
			records = append(records, traded("okx", "BTC-USDT", minute, "2", "100"))
		}
		if minute < 30 { // its connection was lost at 12:30
			records = append(records, traded("gate", "BTC_USDT", minute, "1", "100"))
		}
	}
	for _, minute := range []int64{0, 1, 50} {
		records = append(records, traded("okx", "ETH-USDT", minute, "1", "100"), traded("okx", "XRP-USDT", minute, "1", "100"))
	}
	records = append(records, gap(1, "gate", "", 30*time.Minute, 59*time.Minute+30*time.Second), gap(2, "okx", "XRP-USDT", 10*time.Minute, 10*time.Minute+30*time.Second),
		gap(3, "gate", "", -time.Minute, -time.Second))
	for _, gone := range []bool{false, true} { // taken off at 12:55
		records = append(records, sourceRecord(1, &eventsv1.Listing{Venue: "okx", Symbol: "XRP-USDT", Base: "XRP", Quote: "USDT", Gone: gone, IngestTime: noon + map[bool]int64{true: 55}[gone]*aMinute}))
	}
	// The list says from 14:30 on that it does not trade.
	records = append(records, sourceRecord(1, &eventsv1.Listing{Venue: "okx", Symbol: "ETH-USDT", Base: "ETH", Quote: "USDT", IngestTime: noon}),
		sourceRecord(2, &eventsv1.Listing{Venue: "okx", Symbol: "ETH-USDT", Base: "ETH", Quote: "USDT", Gone: true, Status: "state=suspend", IngestTime: noon + 150*aMinute}))
	insert(t, store, records...)
	insert(t, store, traded("okx", "BTC-USDT", 5, "2", "100"), traded("okx", "ETH-USDT", 1, "1", "100")) // again, as after a crash: they count once
	checkRows(t, store, `SELECT concatWithSeparator(' ', toHour(hour), venue, symbol, expected_minutes, running_minutes, traded_minutes, trades, longest_silence_minutes, gap_seconds, silent_because)
		FROM default.v_coverage WHERE day = '2026-03-01' ORDER BY hour, venue, symbol`,
		"12 gate BTC_USDT 60 60 30 30 30 1770 disconnected", "12 okx BTC-USDT 60 60 60 60 0 0 ", "12 okx ETH-USDT 60 60 3 3 48 0 no_trades", "12 okx XRP-USDT 60 60 3 3 48 30 gap",
		"13 gate BTC_USDT 60 10 0 0 60 0 not_running", "13 okx BTC-USDT 60 10 10 10 50 0 not_running", "13 okx ETH-USDT 60 10 0 0 60 0 not_running", "13 okx XRP-USDT 60 10 0 0 60 0 not_running",
		"14 gate BTC_USDT 60 30 0 0 60 0 not_running", "14 okx BTC-USDT 60 30 30 30 30 0 not_running", "14 okx ETH-USDT 60 30 0 0 60 0 not_running", "14 okx XRP-USDT 60 30 0 0 60 0 not_running",
		"15 gate BTC_USDT 45 45 0 0 45 0 no_trades", "15 okx BTC-USDT 45 45 45 45 0 0 ", "15 okx ETH-USDT 45 45 0 0 45 0 halted", "15 okx XRP-USDT 45 45 0 0 45 0 not_listed")
	checkRows(t, store, "SELECT DISTINCT concat(toString(hour), ' ', toString(published)) FROM default.v_coverage WHERE toHour(hour) = 13", "2026-03-01 13:00:00 2026-03-01 14:01:00.000000000")
}

// What is asked of some hours of a venue reads the minutes of neither the others nor of other hours: both conditions reach the table.
func TestConditionsOnCoverageReachTheTable(t *testing.T) {
	store := newStore(t)
	insert(t, store, traded("okx", "BTC-USDT", 0, "1", "100"))
	for _, condition := range []string{"venue = 'okx' AND hour >= '2026-03-01 12:00:00'", "venue = 'okx' AND day = '2026-03-01'"} {
		plan := strings.Join(queryStrings(t, store, "EXPLAIN indexes = 1 SELECT * FROM default.v_coverage WHERE "+condition), "\n")
		if !regexp.MustCompile(`Condition: .*start.*venue in`).MatchString(plan) && !regexp.MustCompile(`Condition: .*venue in.*start`).MatchString(plan) {
			t.Errorf("%s: no read of minutes has both as a condition of its key:\n%s", condition, plan)
		}
	}
}

// Minutes that were received are compared with the venue's own candles of them, from the first live minute of the market to its last.
func TestCompletenessComparesMinutesWithTheVenuesOwn(t *testing.T) {
	store := newStore(t)
	own := func(minute int64, closed, volume string) logged {
		return venueCandle(minute+10, "okx", "BTC", "USDT", time.Minute, noon+minute*aMinute, closed, closed, closed, closed, volume)
	}
	insert(t, store,
		traded("okx", "BTC-USDT", 0, "10", "100"), traded("okx", "BTC-USDT", 1, "5", "100"), traded("okx", "BTC-USDT", 3, "1", "100"), traded("okx", "BTC-USDT", 4, "1", "100"),
		own(-1, "100", "1"), own(0, "100", "10.05"), own(1, "100", "10"), own(2, "100", "3"), own(3, "100", "0"), own(4, "101", "1"), own(5, "100", "1"))
	checkRows(t, store, `SELECT concatWithSeparator(' ', toMinute(start), volume, venue_volume, ifNull(toString(round(volume_off, 2)), 'NULL'), trades,
		ifNull(toString(close), 'NULL'), venue_close, ifNull(toString(round(close_off_bps, 2)), 'NULL'), verdict, toString(published)) FROM default.v_completeness ORDER BY start`,
		"0 10 10.05 -0.5 1 100 100 0 complete 2026-03-01 12:02:00.000000000", "1 5 10 -50 1 100 100 0 off 2026-03-01 12:03:00.000000000",
		"2 0 3 -100 0 NULL 100 NULL missing 2026-03-01 12:04:00.000000000", "3 1 0 NULL 1 100 100 0 off 2026-03-01 12:05:00.000000000",
		"4 1 1 0 1 100 101 -99.01 off 2026-03-01 12:06:00.000000000")
}

// A coin that is gone, or has another symbol, stays in the universe of its days; a day is known a minute after it has ended.
func TestTheUniverseKeepsWhatIsGone(t *testing.T) {
	store := newStore(t)
	n := func(f float64) *float64 { return &f }
	aDay := int64(24 * 60)
	coin, _, ok := schemas.Coins().Resolve("okx", "MATIC")
	if !ok {
		t.Fatal("nothing is called MATIC")
	}
	polygon := coin.ID
	insert(t, store,
		row(0, &eventsv1.Market{CoinId: polygon, Symbol: "MATIC", Name: "Polygon", Price: 1, PriceSource: "median", Rank: 2, MarketCap: n(9), Volume24H: n(5)}),
		row(1, &eventsv1.Market{CoinId: polygon, Symbol: "MATIC", Name: "Polygon", Price: 2, PriceSource: "median", Rank: 3, MarketCap: n(8), Volume24H: n(4)}),
		row(aDay, &eventsv1.Market{CoinId: polygon, Symbol: "POL", Name: "Polygon", Price: 3, PriceSource: "coingecko", Rank: 1, MarketCap: n(7)}),
		row(2*aDay, &eventsv1.Market{CoinId: polygon, Symbol: "POL", Name: "Polygon"}))
	// Listed by two venues, taken off by one on the second day.
	for i, l := range []*eventsv1.Listing{{Venue: "okx", Symbol: "X"}, {Venue: "okx", Symbol: "Y"}, {Venue: "gate", Symbol: "X"}, {Venue: "gate", Symbol: "X", Gone: true, IngestTime: noon + aDay*aMinute}} {
		l.Base, l.Quote, l.IngestTime = "MATIC", "USDT", max(l.IngestTime, noon)
		insert(t, store, sourceRecord(int64(i), l))
	}
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_universe ORDER BY day",
		"('2026-03-01','"+polygon+"','MATIC','Polygon','active',3,2,'median',8,4,2,'2026-03-01 12:01:00',false,'2026-03-02 00:01:00.000000000')",
		"('2026-03-02','"+polygon+"','POL','Polygon','renamed',1,3,'coingecko',7,NULL,2,'2026-03-02 12:00:00',false,'2026-03-03 00:01:00.000000000')",
		"('2026-03-03','"+polygon+"','POL','Polygon','gone',0,NULL,'',NULL,NULL,1,'2026-03-03 12:00:00',false,'2026-03-04 00:01:00.000000000')")
	// As the sample query asks it: on the evening of the second day only the first is known.
	for at, want := range map[string]string{"2026-03-02 00:00:59": "", "2026-03-02 18:00:00": "MATIC 3", "2026-03-03 00:01:00": "POL 1"} {
		var rows []string
		if want != "" {
			rows = []string{want}
		}
		checkRows(t, store, fmt.Sprintf("SELECT concat(symbol, ' ', toString(rank)) FROM default.v_universe WHERE published <= '%s' ORDER BY day DESC LIMIT 1 BY coin_id", at), rows...)
	}
}

// What was known at an instant is answered as of it: neither the day that goes on, nor what lists showed later; and what is gone since is there.
func TestTheUniverseAtAnInstantDoesNotLookAhead(t *testing.T) {
	store := newStore(t)
	n := func(f float64) *float64 { return &f }
	aDay := int64(24 * 60)
	insert(t, store,
		row(0, &eventsv1.Market{CoinId: "bitcoin", Symbol: "BTC", Name: "Bitcoin", Price: 1, PriceSource: "median", Rank: 1, MarketCap: n(9)}),
		row(aDay, &eventsv1.Market{CoinId: "bitcoin", Symbol: "BTC", Name: "Bitcoin", Price: 2, PriceSource: "median", Rank: 2, MarketCap: n(8)}),
		row(0, &eventsv1.Market{CoinId: "dash", Symbol: "DASH", Name: "Dash", Price: 3, PriceSource: "coingecko", Rank: 3}),
		row(aDay, &eventsv1.Market{CoinId: "dash", Symbol: "DASH", Name: "Dash"})) // gone
	for i, l := range []*eventsv1.Listing{
		{Venue: "okx", Symbol: "BTC-USDT", Base: "BTC", Quote: "USDT"}, {Venue: "gate", Symbol: "BTC_USDT", Base: "BTC", Quote: "USDT"},
		{Venue: "gate", Symbol: "BTC_USDT", Base: "BTC", Quote: "USDT", Gone: true, IngestTime: noon + aDay*aMinute}, // two days later it is back
		{Venue: "gate", Symbol: "BTC_USDT", Base: "BTC", Quote: "USDT", IngestTime: noon + 3*aDay*aMinute},
		{Venue: "okx", Symbol: "ETH-BTC", Base: "ETH", Quote: "BTC", IngestTime: noon + aDay*aMinute},
		{Venue: "okx", Symbol: "ETH-USD", Base: "NOBODYSCOIN", Quote: "USD"},
	} {
		l.IngestTime = max(l.IngestTime, noon)
		insert(t, store, sourceRecord(int64(i), l))
	}
	at := func(at string, want ...string) {
		t.Helper()
		checkRows(t, store, "SELECT concatWithSeparator(' ', coin_id, symbol, rank, ifNull(toString(price), 'none'), ifNull(toString(day), 'none'), venues, toString(arrayMap(m -> m.venue || ':' || m.symbol, markets)), toString(published)) FROM default.v_universe_at(at = "+
			at+") ORDER BY coin_id", want...)
	}
	at("'2026-03-01 11:59:59.999'")
	at("'2026-03-01 12:00:00'", "bitcoin BTC 0 none none 2 ['gate:BTC_USDT','okx:BTC-USDT'] 2026-03-01 12:00:00.000000000")
	at("'2026-03-02 00:00:59.999'", "bitcoin BTC 0 none none 2 ['gate:BTC_USDT','okx:BTC-USDT'] 2026-03-01 12:00:00.000000000")
	at("toDateTime('2026-03-02 00:00:00', 'UTC') + 60", "bitcoin BTC 1 1 2026-03-01 2 ['gate:BTC_USDT','okx:BTC-USDT'] 2026-03-02 00:01:00.000000000", "dash DASH 3 3 2026-03-01 0 [] 2026-03-02 00:01:00.000000000")
	at("'2026-03-02 12:00:00'", "bitcoin BTC 1 1 2026-03-01 1 ['okx:BTC-USDT'] 2026-03-02 00:01:00.000000000", "dash DASH 3 3 2026-03-01 0 [] 2026-03-02 00:01:00.000000000",
		"ethereum ETH 0 none none 1 ['okx:ETH-BTC'] 2026-03-02 12:00:00.000000000")
	at("'2026-03-04 12:00:00'", "bitcoin BTC 2 2 2026-03-02 2 ['gate:BTC_USDT','okx:BTC-USDT'] 2026-03-04 12:00:00.000000000", "ethereum ETH 0 none none 1 ['okx:ETH-BTC'] 2026-03-02 12:00:00.000000000")
}

// Changes of a list are distinguished from records that repeat what was known; a symbol keeps what it meant, from when to when.
func TestListingsAreChanges(t *testing.T) {
	store := newStore(t)
	listing := func(offset, hours int64, symbol, base string, gone bool) logged {
		return sourceRecord(offset, &eventsv1.Listing{Venue: "okx", Symbol: symbol, Base: base, Quote: "USDT", Gone: gone, FirstSeen: noon, IngestTime: noon + hours*60*aMinute})
	}
	insert(t, store, listing(1, 0, "X-USDT", "BTC", false), listing(2, 1, "X-USDT", "BTC", false), // repeated
		listing(3, 2, "X-USDT", "ETH", false), listing(4, 3, "X-USDT", "ETH", true), listing(5, 4, "X-USDT", "ETH", true), listing(6, 5, "X-USDT", "ETH", false),
		listing(7, 0, "Y-USDT", "NOBODYSCOIN", false))
	for i, status := range []string{"", "state=suspend", "state=suspend", "", ""} { // halted, then off the list, then back
		insert(t, store, sourceRecord(int64(8+i), &eventsv1.Listing{Venue: "okx", Symbol: "Z-USDT", Base: "BTC", Quote: "USDT", Gone: i%4 > 0, Status: status, FirstSeen: noon, IngestTime: noon + int64(i)*60*aMinute}))
	}
	checkRows(t, store, "SELECT concatWithSeparator(' ', symbol, toHour(time), change || status, base, coin_id, quote_id, toHour(first_seen), published = time) FROM default.v_listings ORDER BY symbol, time",
		"X-USDT 12 listed BTC bitcoin tether 12 1", "X-USDT 14 changed ETH ethereum tether 12 1", "X-USDT 15 gone ETH ethereum tether 12 1", "X-USDT 17 back ETH ethereum tether 12 1",
		"Y-USDT 12 listed NOBODYSCOIN  tether 12 1",
		"Z-USDT 12 listed BTC bitcoin tether 12 1", "Z-USDT 13 haltedstate=suspend BTC bitcoin tether 12 1", "Z-USDT 15 gone BTC bitcoin tether 12 1", "Z-USDT 16 back BTC bitcoin tether 12 1")
	checkRows(t, store, "SELECT concatWithSeparator(' ', symbol, coin_id, toHour(valid_from), ifNull(toString(toHour(valid_to)), 'still')) FROM default.v_symbology ORDER BY symbol, valid_from",
		"X-USDT bitcoin 12 14", "X-USDT ethereum 14 15", "X-USDT ethereum 17 still", "Y-USDT  12 still", "Z-USDT bitcoin 12 13", "Z-USDT bitcoin 16 still")
}
