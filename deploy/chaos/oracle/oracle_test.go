package oracle

import (
	"math"
	"slices"
	"strings"
	"testing"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// script writes a partition of ticks.v1.
type script struct {
	t       *testing.T
	offset  int64
	records []Record
}

// start is a full minute.
const start = int64(1_750_000_020) * second

func (s *script) add(rec *eventsv1.ResolvedRecord, origin int32) {
	s.t.Helper()
	rec.Mark = &eventsv1.Mark{Partition: origin, Offset: s.offset}
	value, err := rec.MarshalVT()
	if err != nil {
		s.t.Fatal(err)
	}
	s.records = append(s.records, Record{Offset: s.offset, Value: value})
	s.offset++
}

func (s *script) trade(venue string, at float64, price, size string) {
	s.t.Helper()
	moment := start + int64(at*1e9)
	s.add(&eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
		Tick: &eventsv1.Tick{
			Venue: venue, Symbol: "BTC-USD", Base: "BTC", Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
			EventTime: moment, IngestTime: moment, Price: price, Size: size, TradeId: "1",
		},
		CoinId: "bitcoin", QuoteId: "USD", Rate: 1,
	}}}, 0)
}

func (s *script) clock(at float64) {
	s.t.Helper()
	moment := start + int64(at*1e9)
	for origin := range int32(origins) {
		s.add(&eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Pulse{Pulse: &eventsv1.Pulse{Now: moment, Watermark: moment}}}, origin)
	}
}

func twoVenues(t *testing.T) map[int32][]Record {
	s := &script{t: t}
	s.clock(0)
	s.trade("coinbase", 0.5, "100", "1")
	s.clock(1)
	s.trade("kraken", 1.5, "104", "0.5")
	s.clock(2)
	s.clock(3) // nothing new: nothing published
	s.trade("coinbase", 3.5, "101", "2")
	s.trade("kraken", 3.2, "105", "0.25")
	s.clock(4)
	s.trade("kraken", 30, "1000", "0.1") // both are 80 % from the mean of 101 and 1000
	s.clock(31)
	s.clock(60)
	s.clock(64)
	s.trade("kraken", 59, "102", "0.125") // not closed yet
	s.clock(65)
	return map[int32][]Record{0: s.records}
}

func TestFoldFollowsTheRules(t *testing.T) {
	views, err := Fold(twoVenues(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for _, p := range views.Prices {
		got = append(got, float64(p.Second-start/second), p.Price)
	}
	// kraken comes back from its 1000 with a trade of second 59 that is received after the minute ended.
	want := []float64{1, 100, 2, 102, 4, 103, 31, 0, 60, 0, 65, 101.5}
	if !slices.Equal(got, want) {
		t.Errorf("seconds and prices: got %v, want %v", got, want)
	}
	if n := len(views.Candles); n != 1 {
		t.Fatalf("got %d candles, want 1", n)
	}
	c := views.Candles[0]
	if c.Open != 100 || c.High != 103 || c.Low != 100 || c.Close != 103 || c.Trades != 6 || c.Volume.FloatString(3) != "3.975" {
		t.Errorf("got candle %+v with volume %s", c, c.Volume.FloatString(3))
	}
	if n := len(views.VenueCandles); n != 2 {
		t.Fatalf("got %d candles of venues, want 2", n)
	}
	for _, v := range views.VenueCandles {
		if v.Venue == "kraken" && (v.Open.RatString() != "104" || v.Close.RatString() != "102" || v.High.RatString() != "1000" || v.Trades != 4) {
			t.Errorf("got candle of kraken %+v", v)
		}
	}
}

func TestDuplicateRecordsCountOnce(t *testing.T) {
	log := twoVenues(t)
	want, err := Fold(log)
	if err != nil {
		t.Fatal(err)
	}
	// A restarted writer wrote the first records again, with other contents.
	duplicate := &eventsv1.ResolvedRecord{
		Mark: &eventsv1.Mark{Partition: 0, Offset: log[0][8].Offset},
		Body: &eventsv1.ResolvedRecord_Pulse{Pulse: &eventsv1.Pulse{Now: start + 40*second, Watermark: start}},
	}
	value, err := duplicate.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	duplicates := map[int32][]Record{0: append(slices.Clone(log[0]), Record{Offset: int64(len(log[0])), Value: value})}
	got, err := Fold(duplicates)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := Compare(want, got); len(wrong) > 0 {
		t.Errorf("a duplicate changes the views:\n%s", strings.Join(wrong, "\n"))
	}
}

func TestPlantedFaultsAreFound(t *testing.T) {
	log := twoVenues(t)
	want, err := Fold(log)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := Compare(want, want); len(wrong) > 0 {
		t.Fatalf("views differ from themselves:\n%s", strings.Join(wrong, "\n"))
	}
	shorter, _, err := Without(log, want.VenueCandles[0])
	if err != nil {
		t.Fatal(err)
	}
	fewer, err := Fold(shorter)
	if err != nil {
		t.Fatal(err)
	}
	plant := func(change func(*Views)) Views {
		v := Views{slices.Clone(want.Prices), slices.Clone(want.Candles), slices.Clone(want.VenueCandles)}
		change(&v)
		return v
	}
	for _, test := range []struct {
		what   string
		got    Views
		faults int // 0 for any number
	}{
		{"a trade less in the log", fewer, 0},
		{"one bit of a price", plant(func(v *Views) { v.Prices[2].Price = math.Nextafter(v.Prices[2].Price, 200) }), 1},
		{"a second later", plant(func(v *Views) { v.Prices[2].Second++ }), 2},
		{"a price less", plant(func(v *Views) { v.Prices = v.Prices[1:] }), 1},
		{"a price twice", plant(func(v *Views) { v.Prices = append(v.Prices, v.Prices[0]) }), 1},
		{"another close", plant(func(v *Views) { v.Candles[0].Close++ }), 1},
		{"a market's candle less", plant(func(v *Views) { v.VenueCandles = v.VenueCandles[1:] }), 1},
	} {
		wrong := Compare(want, test.got)
		if len(wrong) == 0 || test.faults > 0 && len(wrong) != test.faults {
			t.Errorf("%s: got %d differences, want %d:\n%s", test.what, len(wrong), test.faults, strings.Join(wrong, "\n"))
		}
	}
}
