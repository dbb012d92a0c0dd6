package history_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// logged is a record and where it lies.
type logged struct {
	place  rows.Place
	record eventsv1.Marked
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano()

func insert(t testing.TB, store *history.Store, records ...logged) {
	t.Helper()
	var b rows.Batch
	for _, r := range records {
		b.Add(r.place, r.record)
	}
	if err := b.Insert(t.Context(), store, ""); err != nil {
		t.Fatal(err)
	}
}

func tick(offset int64, k *eventsv1.Tick, flags schemas.Flag) logged {
	return logged{
		rows.Place{Topic: schemas.TopicTicks, Partition: 3, Offset: offset},
		&eventsv1.ResolvedRecord{
			Mark: &eventsv1.Mark{LogicVersion: 1, Partition: 5, Offset: offset * 2, Index: 1},
			Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
				Tick: k, CoinId: "bitcoin", QuoteId: "USD", Rate: 0.30000000000000004, RateTime: noon - 1, RateOffset: 1 << 40, Flags: uint32(flags),
			}},
		},
	}
}

// Whoever resolves ticks after a restart asks which markets were doubted before it.
func TestDoubtedMarketsAreFound(t *testing.T) {
	store := newStore(t)
	doubted := func(offset int64, venue string, at int64, coin string, flags schemas.Flag) logged {
		of := tick(offset, &eventsv1.Tick{Venue: venue, Symbol: "SOL_USD", Base: "SOL", Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE, EventId: binary.BigEndian.AppendUint64(make([]byte, 8), uint64(offset)),
			EventTime: at, IngestTime: at, Price: "2", Size: "1", Side: eventsv1.Side_SIDE_BUY}, flags)
		of.record.(*eventsv1.ResolvedRecord).GetTick().CoinId = coin
		return of
	}
	const second, both = int64(time.Second), schemas.Unmapped | schemas.Doubtful
	insert(t, store, doubted(1, "poloniex", noon-5*second, "", both), doubted(2, "poloniex", noon-3*second, "", both|schemas.Late), doubted(3, "poloniex", noon-2*second, "solana", 0),
		doubted(4, "gate", noon-second, "", schemas.Unmapped), doubted(5, "mexc", noon-3600*second, "", both), doubted(6, "kraken", noon, "solana", 0))
	got := map[string]time.Time{}
	err := read.From(store).DoubtedMarkets(t.Context(), time.Unix(0, noon).Add(-time.Minute), func(venue, symbol string, at time.Time) { got[venue+" "+symbol] = at })
	if want := map[string]time.Time{"poloniex SOL_USD": time.Unix(0, noon).Add(-3 * time.Second).UTC()}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestTicksComeBackToTheLastDigit(t *testing.T) {
	store := newStore(t)
	trade := &eventsv1.Tick{
		Venue: "kraken", Symbol: "XBT/USD", Base: "XBT", Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
		EventId: []byte("\x00\n'\\\xff0123456789\x00"), EventTime: noon + 123456789, IngestTime: noon + 987654321,
		Price: "12345678901234567890.123456789012345678", Size: "0.000000000000000001", Side: eventsv1.Side_SIDE_SELL,
		TradeId: "a\nb\x00", Snapshot: true,
	}
	ticker := &eventsv1.Tick{
		Venue: "gate", Symbol: "BTC_USDT", Kind: eventsv1.TickKind_TICK_KIND_TICKER, EventId: make([]byte, 16), IngestTime: noon,
		Bid: "99999999999999999999.999999999999999999", Ask: "1", Last: "100.5", VolumeBase: "100000000000000000000", VolumeQuote: "7.1234567890123456789",
		Simulated: true,
	}
	insert(t, store, tick(7, trade, schemas.Late), tick(8, ticker, schemas.Crossed|schemas.NotSpot), tick(9, trade, schemas.Repeat))
	got := queryStrings(t, store, `SELECT concatWithSeparator('|', coin_id, venue, symbol, kind, day, event_time, hex(event_id), ingest_time, base, quote, quote_id,
		ifNull(toString(price), '-'), ifNull(toString(size), '-'), side, hex(trade_id), ifNull(toString(bid), '-'), ifNull(toString(ask), '-'), ifNull(toString(last), '-'),
		ifNull(toString(volume_base), '-'), ifNull(toString(volume_quote), '-'), rate, rate_time, rate_offset, flags, snapshot, simulated,
		raw_partition, raw_offset, log_partition, log_offset, version) FROM ticks FINAL ORDER BY log_offset`)
	const place = "|3|"
	want := []string{
		"bitcoin|kraken|XBT/USD|trade|2026-03-01|2026-03-01 12:00:00.123456789|000A275CFF3031323334353637383900|2026-03-01 12:00:00.987654321|XBT|USD|USD|" +
			"12345678901234567890.123456789012345678|0.000000000000000001|sell|610A6200|-|-|-|-|-|0.30000000000000004|2026-03-01 11:59:59.999999999|1099511627776|2|true|false|5|14" + place + "7|18446744073709551623",
		// A volume too great for the column is unknown; one that is too fine is cut.
		"bitcoin|gate|BTC_USDT|ticker|2026-03-01|2026-03-01 12:00:00.000000000|00000000000000000000000000000000|2026-03-01 12:00:00.000000000|||USD|" +
			"-|-|||99999999999999999999.999999999999999999|1|100.5|-|7.123456789012345678|0.30000000000000004|2026-03-01 11:59:59.999999999|1099511627776|17|false|true|5|16" + place + "8|18446744073709551624",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
	flags := queryStrings(t, store, "SELECT arrayStringConcat(flags, ' ') FROM default.v_ticks ORDER BY log_offset")
	if want := []string{"late", "crossed not_spot"}; !slices.Equal(flags, want) {
		t.Errorf("v_ticks: got flags %q, want %q", flags, want)
	}
}

// Words in and out of their turn, and decimals of any length, in a batch whose memory is used again.
func TestWordsAndDecimalsOfAnyOrderComeBack(t *testing.T) {
	store := newStore(t)
	random := rand.New(rand.NewPCG(6, 6))
	digits := func(n int) string {
		return strings.Repeat("9", n/2) + fmt.Sprint(1+random.IntN(9)) + strings.Repeat("1", n-n/2)
	}
	var b rows.Batch
	var want []string
	for round := range 3 {
		b.Reset()
		for i := range 300 {
			venue := fmt.Sprint("venue", round, i%7) // in turn
			if random.IntN(3) == 0 {
				venue = fmt.Sprint("venue", random.IntN(3), random.IntN(9))
			}
			bid := digits(random.IntN(18)) // up to 19 before the point
			if n := random.IntN(18); n > 0 {
				bid += "." + digits(n-1)
			}
			if random.IntN(4) == 0 {
				bid = "-" + bid
			}
			k := &eventsv1.Tick{
				Venue: venue, Kind: eventsv1.TickKind_TICK_KIND_QUOTE, EventId: fmt.Appendf(nil, "%016d", len(want)), IngestTime: noon, Bid: bid,
			}
			l := tick(int64(len(want)), k, 0)
			b.Add(l.place, l.record)
			want = append(want, venue+" "+bid)
		}
		if err := b.Insert(t.Context(), store, ""); err != nil {
			t.Fatal(err)
		}
	}
	got := queryStrings(t, store, "SELECT concat(venue, ' ', toString(bid)) FROM ticks ORDER BY log_offset")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
}

func mark(offset int64) *eventsv1.Mark {
	return &eventsv1.Mark{LogicVersion: 2, Partition: 1, Offset: offset}
}

func price(offset int64, p *eventsv1.Price) logged {
	return logged{
		rows.Place{Topic: schemas.TopicPrices, Partition: 1, Offset: offset + 100},
		&eventsv1.PriceRecord{Mark: mark(offset), Body: &eventsv1.PriceRecord_Price{Price: p}},
	}
}

func fullPrice(coin string, at int64) *eventsv1.Price {
	return &eventsv1.Price{
		CoinId: coin, Symbol: strings.ToUpper(coin), Time: at, Method: 1, Price: 0.30000000000000004, Median0: 5e-324, Min: -0.5, Max: 1e300, Confidence: 3, Score: 0.7,
		Accepted: 2, Rejected: 1, Volume24H: 1e9, Source: "kraken", Simulated: true,
		Inputs: []*eventsv1.PriceInput{
			{
				Provider: "kraken", Symbol: "XBT/USD", QuoteId: "USD", Bid: 1, Ask: 2, Last: 3, QuoteHeard: at - 1, LastHeard: at - 2, EventTime: at - 3,
				Rate: 4, RateTime: at - 4, RateOffset: 5, Range60: 6, Volume24H: 7, Partition: 8, Offset: 9, Unpriced: true, Value: 10, PriceUsd: 11,
				Accepted: true, Reason: "outlier", DeviationPct: 12, Basis: "mid",
			},
			{Provider: "gate", Symbol: "BTC_USDT", QuoteId: "tether"},
		},
	}
}

// lost is a record that says why there is no price.
func lost(coin string, at int64) *eventsv1.Price {
	return &eventsv1.Price{CoinId: coin, Symbol: strings.ToUpper(coin), Time: at, Method: 1, Reason: "no_fresh_inputs"}
}

func checkPrices(t *testing.T, what string, got []*eventsv1.PriceRecord, want ...logged) {
	t.Helper()
	var records []*eventsv1.PriceRecord
	for _, w := range want {
		records = append(records, w.record.(*eventsv1.PriceRecord))
	}
	order := func(a, b *eventsv1.PriceRecord) int { return int(a.Mark.Offset - b.Mark.Offset) }
	got = slices.SortedFunc(slices.Values(got), order)
	if diff := cmp.Diff(slices.SortedFunc(slices.Values(records), order), got, protocmp.Transform()); diff != "" {
		t.Errorf("%s: want(-), got(+):\n%s", what, diff)
	}
}

func TestPricesAreReadAsTheyWerePublished(t *testing.T) {
	store := newStore(t)
	const second = int64(time.Second)
	first, last := price(1, fullPrice("bitcoin", noon)), price(2, fullPrice("bitcoin", noon+30*second))
	next, gone := price(3, fullPrice("bitcoin", noon+61*second)), price(4, lost("bitcoin", noon+200*second))
	over, back := price(5, lost("ethereum", noon)), price(6, fullPrice("ethereum", noon+second))
	never := price(7, lost("dash", noon+second))
	old := price(8, fullPrice("dash", noon-72*3600*second))
	insert(t, store, first, last, next, gone, over, back, never, old)

	latest, err := read.From(store).LatestPrices(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	checkPrices(t, "latest", latest, next, gone, back, never, old)
	latest, err = read.From(store).LatestPrices(t.Context(), []string{"bitcoin", "dash"})
	if err != nil {
		t.Fatal(err)
	}
	checkPrices(t, "latest of those that are not known", latest, back)

	checkPricesAt(t, store, noon-1, old)
	checkPricesAt(t, store, noon, first, over, old)
	checkPricesAt(t, store, noon+second-1, first, over, old)
	checkPricesAt(t, store, noon+second, first, back, old, never)
	checkPricesAt(t, store, noon+60*second, last, back, old, never)
	checkPricesAt(t, store, noon+199*second, next, back, old, never)
	checkPricesAt(t, store, noon+300*second, next, gone, back, old, never)
	late := price(9, fullPrice("bitcoin", noon+400*second))
	late.record.(*eventsv1.PriceRecord).GetPrice().Published = noon + 400*second + 700
	insert(t, store, late)
	checkPricesAt(t, store, noon+400*second+699, next, gone, back, old, never)
	checkPricesAt(t, store, noon+400*second+700, late, back, old, never)
	some, err := read.From(store).PricesOfSeconds(t.Context(), []read.PriceSecond{{CoinID: "bitcoin", Second: noon / second},
		{CoinID: "dash", Second: noon/second + 1}, {CoinID: "dash", Second: noon/second + 2}, {CoinID: "ethereum", Second: noon/second + 1}})
	if err != nil {
		t.Fatal(err)
	}
	checkPrices(t, "of some seconds", some, first, never, back)

	// Seconds are kept for days, the last of each hour for ever: hours of seconds are there whole or not at all.
	if err := store.Conn().Exec(t.Context(), "TRUNCATE TABLE prices"); err != nil {
		t.Fatal(err)
	}
	checkPricesAt(t, store, noon-1, old)
	checkPricesAt(t, store, noon+400*second+699, old, back)
	checkPricesAt(t, store, noon+400*second+700, late, old, back)
	checkPricesAt(t, store, noon+3600*second, late, old, back)
	latest, err = read.From(store).LatestPrices(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	checkPrices(t, "latest without seconds", latest, late, back, old)
}

// What was served by an instant bounds what was published by it, by the offsets of what caused it.
func TestPricesAreReadAsTheyWereServed(t *testing.T) {
	store := newStore(t)
	const second = int64(time.Second)
	first, next := price(1, fullPrice("bitcoin", noon)), price(3, fullPrice("bitcoin", noon+second))
	gone, other := price(4, lost("bitcoin", noon+2*second)), price(2, fullPrice("ethereum", noon))
	minutes := []read.ServedMinute{{From: time.Unix(0, noon+3).UTC(), End: time.Unix(0, noon-60*second).UTC()}, {From: time.Unix(0, noon+61*second).UTC(), End: time.Unix(0, noon).UTC()}}
	step := func(at, offset int64) *eventsv1.ServedStep {
		return &eventsv1.ServedStep{Time: at, Read: &eventsv1.ServedStep_Prices{Prices: &eventsv1.ServedPrices{Partition: 1, Offset: offset}}}
	}
	minute := func(m read.ServedMinute) *eventsv1.ServedStep {
		return &eventsv1.ServedStep{Time: m.From.UnixNano(), Read: &eventsv1.ServedStep_Minute{Minute: m.End.UnixNano()}}
	}
	rates := func(at, end int64) *eventsv1.ServedStep {
		return &eventsv1.ServedStep{Time: at, Read: &eventsv1.ServedStep_Rates{Rates: end}}
	}
	sources := func(at, first, last, coins, clock int64) *eventsv1.ServedStep {
		return &eventsv1.ServedStep{Time: at, Read: &eventsv1.ServedStep_Sources{Sources: &eventsv1.ServedSources{First: first, Last: last, Coins: coins, Clock: clock}}}
	}
	pegs := func(at int64, coins ...*eventsv1.ServedPeg) *eventsv1.ServedStep {
		return &eventsv1.ServedStep{Time: at, Read: &eventsv1.ServedStep_Pegs{Pegs: &eventsv1.ServedPegs{Coins: coins}}}
	}
	tether, euro := &eventsv1.ServedPeg{CoinId: "tether", MeanBps: 1.0 / 3, P95Bps: 2, Samples: 43200}, &eventsv1.ServedPeg{CoinId: "euro-coin", MeanBps: 7, P95Bps: 8.1, Samples: 1}
	served := func(offset int64, replica string, steps ...*eventsv1.ServedStep) logged {
		return logged{rows.Place{Topic: schemas.TopicServed, Offset: offset}, &eventsv1.ServedRecord{Replica: replica, Number: offset, Time: noon, Steps: steps}}
	}
	insert(t, store, first, next, gone, other,
		served(0, "one", step(noon+5, 1), minute(minutes[0]), step(noon+second+5, 2), minute(minutes[1])),
		served(1, "two", step(noon+second+6, 1), step(noon+second+9, 3)), served(2, "one", step(noon+2*second+700, 4)), served(3, "two"),
		served(4, "one", rates(noon+5, noon-60*second), rates(noon+62*second, noon)), served(5, "two", rates(noon+65*second, noon-60*second)),
		served(6, "one", sources(noon+5, 3, 8, 0, noon), // by a version that does not record what of coins was read
			sources(noon+20*second, 3, 9, 7, noon+10*second)), served(7, "two", sources(noon+21*second, 5, 7, 6, noon)),
		served(8, "one", pegs(noon+5, euro, tether), pegs(noon+60*second)), served(9, "two", pegs(noon+61*second, tether)))

	for _, test := range []struct {
		at   int64
		want []logged
	}{
		{noon + 5, []logged{first}}, {noon + second + 4, []logged{first}}, {noon + second + 5, []logged{first, other}}, // next is written, and not served
		{noon + second + 8, []logged{first, other}}, {noon + second + 9, []logged{next, other}}, {noon + 2*second + 699, []logged{next, other}},
		{noon + 2*second + 700, []logged{next, gone, other}}, {noon + 3600*second, []logged{next, gone, other}},
		{noon + 4, []logged{first, other}}, // of before nothing is recorded: what is written counts
	} {
		positions, err := read.From(store).PricesServed(t.Context(), time.Unix(0, test.at))
		if err != nil {
			t.Fatal(err)
		}
		got, err := read.From(store).PricesPublishedAt(t.Context(), []string{"bitcoin", "ethereum"}, time.Unix(0, test.at), positions)
		if err != nil {
			t.Fatal(err)
		}
		checkPrices(t, fmt.Sprintf("at noon + %s", time.Duration(test.at-noon)), got, test.want...)
	}
	got, err := read.From(store).MinutesServed(t.Context(), time.Unix(0, noon))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(minutes, got); diff != "" {
		t.Errorf("minutes: want(-), got(+):\n%s", diff)
	}
	for _, test := range []struct {
		topic    string
		at, want int64
	}{
		{schemas.TopicMarkets, noon + 2, 0}, {schemas.TopicMarkets, noon + 3, noon - 60*second}, {schemas.TopicMarkets, noon + 61*second, noon},
		{schemas.TopicRates, noon + 4, 0}, {schemas.TopicRates, noon + 5, noon - 60*second}, {schemas.TopicRates, noon + 62*second - 1, noon - 60*second},
		{schemas.TopicRates, noon + 62*second, noon}, {schemas.TopicRates, noon + 66*second, noon}, // another process was behind
		{schemas.TopicRates, noon + 7200*second, noon - 60*second}, // the last step of all is its
	} {
		end, err := read.From(store).MinuteServed(t.Context(), test.topic, time.Unix(0, test.at))
		if err != nil {
			t.Fatal(err)
		}
		if end.IsZero() != (test.want == 0) || test.want != 0 && end.UnixNano() != test.want {
			t.Errorf("%s at noon + %s: the minute of %s; want %s", test.topic, time.Duration(test.at-noon), end, time.Unix(0, test.want))
		}
	}
	for _, test := range []struct{ at, first, last, clock int64 }{
		{noon + 4, 0, 0, 0}, {noon + 5, 3, 8, noon}, {noon + 20*second - 1, 3, 8, noon}, {noon + 20*second, 3, 9, noon + 10*second},
		{noon + 22*second, 3, 9, noon + 10*second}, // another process was behind
		{noon + 7200*second, 5, 7, noon},           // the last step of all is its
	} {
		got, err := read.From(store).SourcesServed(t.Context(), time.Unix(0, test.at))
		if err != nil {
			t.Fatal(err)
		}
		if got.GetFirst() != test.first || got.GetLast() != test.last || got.GetClock() != test.clock {
			t.Errorf("sources at noon + %s: %v; want %d to %d by %d", time.Duration(test.at-noon), got, test.first, test.last, test.clock)
		}
	}
	for at, want := range map[int64]int64{noon + 20*second - 1: 0, noon + 20*second: 7, noon + 22*second: 7, noon + 7200*second: 6} {
		if got, err := read.From(store).CoinsServed(t.Context(), time.Unix(0, at)); err != nil || got.GetCoins() != want {
			t.Errorf("coins at noon + %s: %v, %v; want those before %d", time.Duration(at-noon), got, err, want)
		}
	}
	for first, want := range map[int64]time.Time{0: time.Unix(0, noon+20*second), 4: time.Unix(0, noon+21*second), 6: {}} {
		if since, err := read.From(store).CoinsServedSince(t.Context(), first); err != nil || !since.Equal(want) {
			t.Errorf("of no record before %d coins were served since %s, %v; want %s", first, since, err, want)
		}
	}
	for _, test := range []struct {
		at   int64
		want *eventsv1.ServedPegs
	}{
		{noon + 4, nil}, {noon + 5, &eventsv1.ServedPegs{Coins: []*eventsv1.ServedPeg{euro, tether}}}, {noon + 60*second, &eventsv1.ServedPegs{}},
		{noon + 7200*second, &eventsv1.ServedPegs{Coins: []*eventsv1.ServedPeg{tether}}},
	} {
		got, err := read.From(store).PegsServed(t.Context(), time.Unix(0, test.at))
		if err != nil || !proto.Equal(got, test.want) {
			t.Errorf("pegs at noon + %s: %v, %v; want %v", time.Duration(test.at-noon), got, err, test.want)
		}
	}
	if since, err := read.From(store).PegsServedSince(t.Context()); err != nil || since.UnixNano() != noon+5 {
		t.Errorf("of pegs it is recorded since %s, %v; want noon + 5 ns", since, err)
	}
	since, err := read.From(store).SourcesServedSince(t.Context())
	if err != nil || since.UnixNano() != noon+5 {
		t.Errorf("of sources it is recorded since %s, %v; want noon + 5 ns", since, err)
	}
	since, err = read.From(store).MinuteServedSince(t.Context(), schemas.TopicRates)
	if err != nil || since.UnixNano() != noon+5 {
		t.Errorf("it is recorded since %s, %v; want noon + 5 ns", since, err)
	}
}

func checkPricesAt(t *testing.T, store *history.Store, at int64, want ...logged) {
	t.Helper()
	got, err := read.From(store).PricesPublishedAt(t.Context(), []string{"bitcoin", "dash", "ethereum", "none"}, time.Unix(0, at), nil)
	if err != nil {
		t.Fatal(err)
	}
	checkPrices(t, fmt.Sprintf("at noon + %s", time.Duration(at-noon)), got, want...)
}

func candle(offset int64, c *eventsv1.Candle) logged {
	return logged{
		rows.Place{Topic: schemas.TopicCandles, Partition: 1, Offset: offset + 100},
		&eventsv1.CandleRecord{Mark: mark(offset), Body: &eventsv1.CandleRecord_Candle{Candle: c}},
	}
}

func TestCandlesAreReadByTheirStart(t *testing.T) {
	store := newStore(t)
	const minute = int64(time.Minute)
	huge := strings.Repeat("9", 58) + ".123456789012345678"
	want := []*eventsv1.Candle{
		{CoinId: "bitcoin", Start: noon, Open: 1, High: 4, Low: 0.5, Close: 0.30000000000000004, Volume: huge, VolumeUsd: 5, Trades: 1 << 63},
		{CoinId: "bitcoin", Start: noon + minute, Volume: "0"},
		{CoinId: "bitcoin", Start: noon + 2*minute, Volume: "1.5"},
	}
	insert(t, store, candle(1, want[0]), candle(2, want[1]), candle(3, want[2]), candle(4, &eventsv1.Candle{CoinId: "dash", Start: noon}))
	for _, test := range []struct {
		from, to int64
		want     []*eventsv1.Candle
	}{
		{noon, noon + 3*minute, want},
		{noon, noon + 2*minute, want[:2]},
		{noon + 1, noon + 2*minute + 1, want[1:]},
		{noon + 3*minute, noon + 4*minute, nil},
	} {
		got, err := read.From(store).Candles(t.Context(), "bitcoin", time.Unix(0, test.from), time.Unix(0, test.to))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got, protocmp.Transform()); diff != "" {
			t.Errorf("from %d to %d: want(-), got(+):\n%s", test.from, test.to, diff)
		}
	}
}

func TestOtherRowsComeBack(t *testing.T) {
	store := newStore(t)
	insert(t, store,
		logged{rows.Place{Topic: schemas.TopicCandles}, &eventsv1.CandleRecord{Mark: mark(4), Body: &eventsv1.CandleRecord_VenueCandle{VenueCandle: &eventsv1.VenueCandle{
			Venue: "upbit", Symbol: "KRW-BTC", CoinId: "bitcoin", QuoteId: "KRW", Start: noon, Open: "99999999999999999999.999999999999999999", High: "2", Low: "0.000000000000000001", Close: "3", Volume: "123456789012345678901234567890.5", Trades: 9,
		}}}},
		logged{rows.Place{Topic: schemas.TopicTicksRawDead, Offset: 11}, &eventsv1.DeadRecord{Letter: &eventsv1.DeadLetter{
			Reason: "absurd", Detail: "price 0", Source: "htx", AdapterVersion: 3, Payload: []byte("\x00\xff\n{"), Truncated: true, EventId: []byte{1, 0xab}, IngestTime: noon, Topic: "ticks.raw.v1", Partition: 2, Offset: 5,
		}}},
		logged{rows.Place{Topic: schemas.TopicTicksRawDead, Offset: 12}, &eventsv1.DeadRecord{Letter: &eventsv1.DeadLetter{Reason: "absurd", IngestTime: noon}}},
		logged{rows.Place{Topic: schemas.TopicTicksRawDead, Offset: 13}, &eventsv1.DeadRecord{Retry: &eventsv1.DeadRetry{Offset: 11, Time: noon + 1, Ticks: 2, AdapterVersion: 4}}},
		logged{rows.Place{Topic: schemas.TopicTicks, Partition: 6, Offset: 12}, &eventsv1.ResolvedRecord{Mark: mark(5), Body: &eventsv1.ResolvedRecord_Gap{Gap: &eventsv1.Gap{
			Venue: "okx", Symbol: "", Reason: "disconnect", FromTime: noon, ToTime: noon + 1, Missed: 3,
		}}}},
		logged{rows.Place{Topic: schemas.TopicBackfillRaw, Partition: 2, Offset: 4}, &eventsv1.BackfillRecord{Producer: "gate", Body: &eventsv1.BackfillRecord_Candle{Candle: &eventsv1.BackfillCandle{
			Venue: "gate", Symbol: "PEPE_USDT", Base: "PEPE", Quote: "USDT", Start: noon, Interval: 3600,
			Open: "0.00000711", High: "0.00000712", Low: "0.0000071", Close: "0.00000711", Volume: "98765432109876.5", IngestTime: noon + 5,
		}}}},
		logged{rows.Place{Topic: schemas.TopicBackfillRaw, Partition: 2, Offset: 5}, &eventsv1.BackfillRecord{Producer: "gate", Body: &eventsv1.BackfillRecord_Range{Range: &eventsv1.BackfillRange{
			Venue: "gate", Symbol: "PEPE_USDT", FromTime: noon, ToTime: noon + 3600e9, Interval: 3600, Rows: 1,
		}}}},
		logged{rows.Place{Topic: schemas.TopicBackfillRaw, Partition: 2, Offset: 6}, &eventsv1.BackfillRecord{Producer: "import", Body: &eventsv1.BackfillRecord_ImportFile{ImportFile: &eventsv1.ImportFile{
			Name: "PEPEUSDT-1h-2026-02.zip", Sha256: []byte{0xab, 1}, Size: 7000, Format: "binance-klines", Venue: "binance", Symbol: "PEPEUSDT", Base: "PEPE", Quote: "USDT", Interval: 3600,
			Rows: 672, FirstTime: noon - 672*3600e9, LastTime: noon, Markets: 1, BadRows: 2, Replaces: []byte{0xcd}, Withdrawn: 3, IngestTime: noon + 6,
		}}}},
	)
	foldPast(t, store)
	for query, want := range map[string]string{
		"SELECT toString(tuple(*)) FROM default.v_venue_candles_1m":                                                "('upbit','KRW-BTC','2026-03-01 12:00:00','bitcoin','KRW',99999999999999999999.999999999999999999,2,0.000000000000000001,3,1.2345678901234568e29,9,'123456789012345678901234567890.5','2026-03-01 12:02:00.000000000')",
		"SELECT toString(tuple(* EXCEPT payload, hex(payload))) FROM default.v_dead_letters WHERE log_offset = 11": "('htx','absurd','price 0','2026-03-01 12:00:00.000000000','01ab',true,3,'2026-03-01 12:00:00.000000001',2,'ticks.raw.v1.dead.v1',11,'ticks.raw.v1',2,5,'2026-03-01 12:00:00.000000000','00FF0A7B')",
		"SELECT toString(retried_at IS NULL) FROM default.v_dead_letters WHERE log_offset = 12":                    "1",
		"SELECT toString(tuple(*)) FROM default.v_backfill":                                                        "('gate','gate','PEPE_USDT',3600,'2026-03-01 12:00:00','PEPE','USDT','pepe','tether',0.00000711,0.00000712,0.0000071,0.00000711,98765432109876.5,0,'no_rate','2026-03-01 12:00:00.000000005','98765432109876.5','',0,'2026-03-01 12:00:00.000000005')",
		"SELECT toString(tuple(*)) FROM default.v_imports":                                                         "('ab01','PEPEUSDT-1h-2026-02.zip',7000,'binance-klines','binance','PEPEUSDT','PEPE','USDT','pepe',3600,672,'2026-02-01 12:00:00','2026-03-01 12:00:00',2,true,'cd',3,'2026-03-01 12:00:00.000000006',2,6,'2026-03-01 12:00:00.000000006')",
		"SELECT toString(tuple(*)) FROM default.v_gaps":                                                            "('okx','','disconnect','2026-03-01 12:00:00.000000000','2026-03-01 12:00:00.000000001',3,'2026-03-01 12:00:00.000000001')",
	} {
		if got := queryStrings(t, store, query); len(got) != 1 || got[0] != want {
			t.Errorf("%s:\n got %q\nwant %q", query, got, want)
		}
	}
}

var replacing = []string{"ticks", "prices", "prices_1h", "candles_1m", "venue_candles_1m", "dead_letters", "dead_retries", "gaps", "ledger", "backfill", "fixings", "coins", "coin_events", "coin_markets",
	"stablecoins", "protocols", "chain_tvl", "fear_greed", "global_figures", "coin_past", "defi_past", "fetches", "sources", "listings", "overrides", "fiat_rates", "fixings_told", "markets", "markets_1d", "summaries", "sentiment", "rates", "rates_now", "rates_1h", "rates_1d", "rates_past", "defi", "defi_lists", "earn_products", "earn_history", "earn_changes", "earn_fixings", "earn_corrections", "imports"}

func digests(t testing.TB, store *history.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, table := range replacing {
		sum, err := store.Digest(t.Context(), table, "")
		if err != nil {
			t.Fatal(err)
		}
		all[table] = fmt.Sprintf("%x", sum)
	}
	return all
}

// someRecords are n records of every kind, with keys that come again.
func someRecords(random *rand.Rand, n int) []logged {
	var all []logged
	for i := range n {
		at := noon + int64(i)*int64(time.Second)
		coin := fmt.Sprintf("coin%d", random.IntN(20))
		all = append(all, price(int64(i), fullPrice(coin, at)), candle(int64(i), &eventsv1.Candle{CoinId: coin, Start: at - at%int64(time.Minute), Open: random.Float64(), Volume: fmt.Sprint(i)}))
		k := &eventsv1.Tick{
			Venue: "kraken", Symbol: coin, Kind: eventsv1.TickKind(1 + random.IntN(3)), EventId: fmt.Appendf(nil, "%016d", random.IntN(n)), IngestTime: at, EventTime: noon,
		}
		if random.IntN(2) == 0 {
			k.Price, k.Size = fmt.Sprintf("%d.%018d", random.Uint32(), random.Int64N(1e18)), "1"
		}
		all = append(all, tick(int64(i), k, 0))
		all = append(all,
			logged{rows.Place{Topic: schemas.TopicTicksRawDead, Offset: int64(i)}, &eventsv1.DeadRecord{Letter: &eventsv1.DeadLetter{Payload: []byte(coin), IngestTime: at}}},
			logged{rows.Place{Topic: schemas.TopicTicksRawDead, Offset: int64(n + i)}, &eventsv1.DeadRecord{Retry: &eventsv1.DeadRetry{Offset: int64(random.IntN(n)), Time: at}}},
			logged{rows.Place{Topic: schemas.TopicTicks, Offset: int64(i)}, &eventsv1.ResolvedRecord{Mark: mark(int64(i)), Body: &eventsv1.ResolvedRecord_Gap{Gap: &eventsv1.Gap{Venue: coin}}}},
			logged{rows.Place{Topic: schemas.TopicCandles}, &eventsv1.CandleRecord{Mark: mark(int64(i)), Body: &eventsv1.CandleRecord_VenueCandle{VenueCandle: &eventsv1.VenueCandle{
				Venue: "okx", Symbol: coin, Start: at - at%int64(time.Minute), Open: fmt.Sprint(i),
			}}}},
			logged{rows.Place{Topic: schemas.TopicBackfillRaw, Offset: int64(n + i)}, &eventsv1.BackfillRecord{Body: &eventsv1.BackfillRecord_ImportFile{ImportFile: &eventsv1.ImportFile{
				Name: coin, Sha256: []byte{byte(random.IntN(50))}, Venue: "okx", Symbol: coin, Rows: uint64(i), IngestTime: at,
			}}}},
			venueCandle(int64(i), "gate", "BTC", "USDT", time.Hour, at-at%int64(time.Hour), fmt.Sprint(i+1), "9", "8", "7", "6"),
			fixing(int64(i), "USD", fmt.Sprint(1+i), time.Unix(0, at).UTC().AddDate(0, 0, random.IntN(20))))
		all = append(all, someSourceRecords(int64(i), coin, at, random)...)
	}
	return all
}

// Rows inserted once, again, in part and in other batches are the same rows.
func TestInsertingAgainChangesNothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	records := someRecords(random, 1200)
	once := newStore(t)
	insert(t, once, records...)
	want := digests(t, once)
	seen := map[string]string{}
	for table, sum := range want {
		if other, found := seen[sum]; found && table != "ledger" && other != "ledger" { // the sink alone writes the ledger
			t.Fatalf("seed %d: %s has the digest of %s, %s", seed, table, other, sum)
		}
		seen[sum] = table
	}

	cut := errors.New("cut off")
	cfg := newConfig(t)
	way := &wire{RoundTripper: cfg.Transport}
	cfg.Transport = way
	again := openStore(t, cfg)
	if _, err := again.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	unsure := func() error {
		if random.IntN(300) == 0 { // a batch ends when the statements of all its tables succeed in one go
			return cut
		}
		return nil
	}
	way.before, way.after = unsure, unsure
	failures := 0
	for done := 0; done < len(records); {
		// A reader that died begins again before the end of what it inserted.
		from := max(0, done-random.IntN(500))
		to := min(len(records), done+1+random.IntN(3000))
		var b rows.Batch
		for _, r := range records[from:to] {
			b.Add(r.place, r.record)
		}
		if err := b.Insert(t.Context(), again, ""); err != nil {
			if !errors.Is(err, stream.ErrUnavailable) {
				t.Fatalf("seed %d: got %v, want %v", seed, err, stream.ErrUnavailable)
			}
			failures++
			continue
		}
		done = to
	}
	way.before, way.after = nil, nil
	if failures == 0 {
		t.Errorf("seed %d: no insert failed", seed)
	}
	if diff := cmp.Diff(want, digests(t, again)); diff != "" {
		t.Errorf("seed %d: want(-), got(+):\n%s", seed, diff)
	}
}

func TestDigestShowsOneChangedRow(t *testing.T) {
	store := newStore(t)
	insert(t, store, candle(1, &eventsv1.Candle{CoinId: "bitcoin", Start: noon, Open: 1}), candle(2, &eventsv1.Candle{CoinId: "dash", Start: noon, Open: 1}))
	before, bitcoin := digests(t, store)["candles_1m"], candlesOf(t, store, "bitcoin")
	insert(t, store, candle(3, &eventsv1.Candle{CoinId: "dash", Start: noon, Open: 1.0000000000000002}))
	if after := digests(t, store)["candles_1m"]; after == before {
		t.Error("one changed value: got the same digest")
	}
	if after := candlesOf(t, store, "bitcoin"); after != bitcoin {
		t.Error("another coin: got another digest")
	}
	if _, err := store.Digest(t.Context(), "candles_1m", "throwIf(start > 0)"); err == nil {
		t.Error("a failing statement: got a digest")
	}
}

func candlesOf(t *testing.T, store *history.Store, coin string) string {
	t.Helper()
	sum, err := store.Digest(t.Context(), "candles_1m", "coin_id = '"+coin+"'")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum)
}

func TestLedgerKeepsTheFurthest(t *testing.T) {
	store := newStore(t)
	ticks := func(p history.Progress) history.SinkProgress {
		return history.SinkProgress{Sink: "ticks.v1", Progress: p}
	}
	near := history.Progress{Partition: 1, First: 5, Next: 10, LogTime: noon, Marks: map[int32]*eventsv1.Mark{}}
	far := history.Progress{Partition: 1, First: 5, Next: 20, LogTime: noon + 1, Marks: map[int32]*eventsv1.Mark{
		0: {Partition: 0, Offset: 1 << 40, Index: 7}, 7: {Partition: 7, Offset: 3},
	}}
	other := history.Progress{Partition: 2, Next: 1, LogTime: noon, Marks: map[int32]*eventsv1.Mark{}}
	for _, p := range [][]history.SinkProgress{{ticks(far), ticks(other)}, {ticks(near)}, {ticks(far)}} {
		if err := store.Record(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Record(t.Context(), []history.SinkProgress{{Sink: "ticks.v1", Generation: 1, Progress: near}}); err != nil {
		t.Fatal(err)
	}
	got, err := store.Progress(t.Context(), "ticks.v1", 0)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Kept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]map[int32]int64{"ticks.v1": {1: far.Next, 2: other.Next}}, kept); diff != "" {
		t.Errorf("kept, want(-), got(+):\n%s", diff)
	}
	want := map[int32]history.Progress{1: far, 2: other}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
}

func TestWhatClickHouseRefusesForGoodIsNotUnavailable(t *testing.T) {
	store := newStore(t)
	if err := store.Conn().Exec(t.Context(), "DROP TABLE gaps"); err != nil {
		t.Fatal(err)
	}
	var b rows.Batch
	r := someRecords(rand.New(rand.NewPCG(1, 1)), 1)
	for _, r := range r {
		b.Add(r.place, r.record)
	}
	if err := b.Insert(t.Context(), store, ""); err == nil || errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("a missing table: got %v, want an error that does not ask for another try", err)
	}
}

func TestExpiringGoesByTheLogsTime(t *testing.T) {
	store := newStore(t)
	const day = int64(24 * time.Hour)
	var records []logged
	for i := range int64(100) {
		at := noon + i*day
		records = append(records, price(i, fullPrice("bitcoin", at)),
			tick(i, &eventsv1.Tick{Kind: eventsv1.TickKind_TICK_KIND_TRADE, IngestTime: at}, 0),
			logged{rows.Place{Topic: schemas.TopicTicksRawDead, Offset: i}, &eventsv1.DeadRecord{Letter: &eventsv1.DeadLetter{IngestTime: at}}},
			logged{rows.Place{Topic: schemas.TopicTicks, Offset: i}, &eventsv1.ResolvedRecord{Mark: mark(i), Body: &eventsv1.ResolvedRecord_Gap{Gap: &eventsv1.Gap{ToTime: at}}}},
			logged{rows.Place{Topic: schemas.TopicCandles}, &eventsv1.CandleRecord{Mark: mark(i), Body: &eventsv1.CandleRecord_VenueCandle{VenueCandle: &eventsv1.VenueCandle{Start: at}}}},
			candle(i, &eventsv1.Candle{Start: at}))
	}
	insert(t, store, records...)
	for range 2 {
		if err := store.Expire(t.Context(), "", noon+99*day); err != nil {
			t.Fatal(err)
		}
		// 2026-06-08 less 90 days is in March, the month of the first row.
		got := queryStrings(t, store, `SELECT concat('ticks ', count()) FROM ticks UNION ALL SELECT concat('prices ', count()) FROM prices
			UNION ALL SELECT concat('dead ', count()) FROM dead_letters UNION ALL SELECT concat('gaps ', count()) FROM gaps
			UNION ALL SELECT concat('venue candles ', count()) FROM venue_candles_1m UNION ALL SELECT concat('candles ', count()) FROM candles_1m
			UNION ALL SELECT concat('hours ', count()) FROM prices_1h`)
		slices.Sort(got)
		if want := []string{"candles 100", "dead 100", "gaps 100", "hours 100", "prices 8", "ticks 8", "venue candles 91"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	got, err := store.KeptSince(t.Context(), "prices", time.Unix(0, noon+99*day))
	if want := time.Unix(0, noon+92*day).UTC().Truncate(24 * time.Hour); err != nil || !got.Equal(want) {
		t.Errorf("prices are kept since %s, %v, want %s", got, err, want)
	}
	// One that keeps less drops more, and another table no more than before.
	cfg := newConfig(t)
	cfg.PriceDays = 1
	small := openStore(t, cfg)
	if _, err := small.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	insert(t, small, records...)
	if err := small.Expire(t.Context(), "", noon+99*day); err != nil {
		t.Fatal(err)
	}
	if got := queryStrings(t, small, "SELECT concat(toString((SELECT count() FROM prices)), ' ', toString((SELECT count() FROM ticks)), ' ', toString((SELECT count() FROM prices_1h)))"); got[0] != "2 8 100" {
		t.Errorf("with a day of prices, prices, ticks and hours left: got %s, want 2 8 100", got[0])
	}
	if err := store.Expire(t.Context(), "", noon+130*day); err != nil {
		t.Fatal(err)
	}
	// By then the oldest row that must be kept is of 2026-04-10.
	if got := queryStrings(t, store, "SELECT toString(min(toDate(to_time))) FROM gaps"); got[0] != "2026-04-01" {
		t.Errorf("got gaps from %s, want from 2026-04-01", got[0])
	}
}

// A topic in which no clock is written falls silent without a lag; one with clocks does not.
func TestSilenceWithoutAClockIsNoLag(t *testing.T) {
	store := newStore(t)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC).UnixNano()
	for sink, at := range map[string]int64{"prices.v1": noon, "ticks.v1": noon - int64(5*time.Second), "usage.v1": noon - int64(time.Hour), "backfill.raw.v1": noon - int64(time.Hour),
		"reference.raw.v1.dead.v1": noon - int64(time.Hour), "keys.v1": noon - int64(time.Hour)} {
		if err := store.Record(t.Context(), []history.SinkProgress{{Sink: sink, Progress: history.Progress{Next: 1, LogTime: at, Marks: map[int32]*eventsv1.Mark{}}}}); err != nil {
			t.Fatal(err)
		}
	}
	got := queryStrings(t, store, "SELECT concat(sink, ' ', ifNull(toString(behind_seconds), 'NULL')) FROM default.v_lag ORDER BY sink")
	if want := []string{"backfill.raw.v1 NULL", "keys.v1 NULL", "prices.v1 0", "reference.raw.v1.dead.v1 NULL", "ticks.v1 5", "usage.v1 NULL"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
