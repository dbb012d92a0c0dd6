package oracle_test

import (
	"fmt"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// report writes what a source reports beside markets.
func (s *scenario) report(rec *eventsv1.ReferenceRecord) {
	s.write(schemas.TopicReferenceRaw, 0, s.end, rec)
}

const theDay = int64(24 * time.Hour)

func (s *scenario) fixing(f *eventsv1.Fixing, daysAgo int64) {
	if f.Date == "" {
		f.Date = time.Unix(0, s.end-daysAgo*theDay).UTC().Format(time.DateOnly)
	}
	f.IngestTime = s.end
	s.report(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: f}})
}

// begin writes what is reported at the beginning of a chapter.
func (s *scenario) begin(chapter int) {
	for _, n := range []*eventsv1.SourceNotice{
		{Source: "ecb", Name: "ECB", Kinds: []string{"fiat"}, Interval: int64(time.Hour), Moves: int64(48 * time.Hour), Enabled: true, License: "free"},
		{Source: "blend", Name: "Blend", Kinds: []string{"fiat"}, Interval: int64(15 * time.Minute), Enabled: true},
		{Source: "floor", Name: "Floor", Kinds: []string{"fiat", "market"}, Interval: int64(5 * time.Minute), Moves: int64(10 * time.Minute), Enabled: true, Url: "https://floor.example"},
		{Source: "bourse", Name: "Bourse", Kinds: []string{"fiat"}, Interval: int64(20 * time.Minute), Moves: int64(15 * time.Minute), Enabled: true, Terms: "terms", Attribution: "by bourse"},
		{Source: "gone", Name: "Gone", Kinds: []string{"coin"}, Interval: int64(time.Minute), Enabled: true},
		{Source: "failing", Name: "Failing", Interval: int64(time.Minute), Enabled: true, Simulated: true},
		{Source: "off", Name: "Off", Interval: int64(time.Minute), Enabled: chapter == 0},
		{Source: "coinbase", Name: fmt.Sprint("Coinbase ", chapter), Kinds: []string{"price"}, Enabled: true}, {Source: "kraken", Kinds: []string{"price"}, Enabled: true, Simulated: chapter == 1},
		{Source: "bitstamp", Kinds: []string{"price"}, Enabled: true}, {Source: "silent", Kinds: []string{"price"}, Enabled: true},
	} {
		n.IngestTime = s.end
		s.report(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Notice{Notice: n}})
	}
	for daysAgo := int64(3); daysAgo >= 1 && chapter > 0; daysAgo-- {
		for _, r := range []struct {
			quote string
			rate  float64
		}{{"USD", 1.16}, {"JPY", 183.5}, {"GBP", 0.872}} {
			s.fixing(&eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: r.quote, Rate: decimal(r.rate * (1 + float64(s.chance.IntN(999))/1e6))}, daysAgo)
		}
		// A bank that fixes currencies but no dollar on that day converts nothing.
		s.fixing(&eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "CHF", Rate: "0.93457"}, daysAgo+9)
	}
	for _, wrong := range []*eventsv1.Fixing{
		{Base: "EUR", Quote: "SEK", Rate: "0"}, {Base: "EUR", Quote: "SEK", Rate: "N/A"}, {Base: "EUR", Quote: "SEK", Rate: "11.5", Date: "yesterday"}, {Base: "EUR", Quote: "NOK", Rate: "11.0000000000000000019"}, {Base: "EUR", Quote: "DKK", Rate: "0.0000000000000000001"},
	} {
		wrong.Source = "ecb"
		s.fixing(wrong, 0)
	}
	// Where a bank reported once only, that stays its last report.
	if chapter == 1 {
		s.fixing(&eventsv1.Fixing{Source: "gone", Base: "USD", Quote: "XAU", Rate: "0.00025"}, 0)
		s.fixing(&eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: "1.1699"}, 2) // corrected
	}
	s.override(chapter)
}

func (s *scenario) override(chapter int) {
	for i, o := range []*eventsv1.SymbolOverride{
		{Source: "kraken", Symbol: "LUNA", CoinId: []string{"terra-luna", "terra-luna-2", "", "terra-luna-2", "terra-luna"}[chapter]},
		{Source: "general", Symbol: "FRAX", CoinId: "frax-share", Reason: fmt.Sprint("renamed ", chapter)},
	} {
		o.Time = s.end - int64(i)*int64(time.Second)
		if i == 1 && chapter%2 == 1 {
			o.Time -= theDay / 2 // reported late
		}
		s.report(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Override{Override: o}})
	}
}

// reference writes what sources report in a minute.
func (s *scenario) reference(chapter, i int) {
	s.fetches(chapter, i)
	if i%5 == 2 {
		s.floor(chapter, i)
	}
	if i%6 == 1 {
		s.coins()
	}
	if i%30 == 10 {
		for daysAgo := range int64(2) {
			index := &eventsv1.FearGreed{Source: "alternative-me", Value: uint32(s.chance.IntN(101)), Classification: "Fear", EventTime: s.end/theDay*theDay - daysAgo*theDay, IngestTime: s.end}
			s.report(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_FearGreed{FearGreed: index}})
		}
	}
}

// floor are rates within the day, and those that are blended from others.
func (s *scenario) floor(chapter, i int) {
	near := func(rate float64) string { return decimal(rate * (1 + float64(s.chance.IntN(9999))/1e6)) }
	event := s.end - int64(s.chance.IntN(200e9))
	if chapter == 2 || i < 40 { // later it stalls
		s.fixing(&eventsv1.Fixing{Source: "bourse", Base: "GBP", Quote: "USD", Rate: near(1.33), EventTime: event}, 0)
		s.fixing(&eventsv1.Fixing{Source: "bourse", Base: "GBP", Quote: "JPY", Rate: near(211), EventTime: event - 7e9}, 0)
		s.fixing(&eventsv1.Fixing{Source: "bourse", Base: "CHF", Quote: "USD", Rate: near(1.24), EventTime: event}, 0)
	}
	s.fixing(&eventsv1.Fixing{Source: "floor", Base: "USD", Quote: "EUR", Rate: near(0.86), EventTime: event}, 0)
	s.fixing(&eventsv1.Fixing{Source: "floor", Base: "USD", Quote: "JPY", Rate: near(49), EventTime: event}, 0) // far away
	s.fixing(&eventsv1.Fixing{Source: "floor", Base: "USD", Quote: "GBP", Rate: near(0.75), EventTime: event}, 0)
	if s.chance.IntN(3) == 0 { // reported again, corrected
		s.fixing(&eventsv1.Fixing{Source: "floor", Base: "USD", Quote: "GBP", Rate: near(0.75), EventTime: event}, 0)
	}
	// No bank fixes it: both sources count, each with its last word of a day.
	s.fixing(&eventsv1.Fixing{Source: "floor", Base: "USD", Quote: "CNH", Rate: near(7.1), EventTime: event}, 0)
	s.fixing(&eventsv1.Fixing{Source: "blend", Base: "USD", Quote: "CNH", Rate: near(7.2), Providers: []string{"PBOC"}},
		int64(i)%2)
	s.fixing(&eventsv1.Fixing{Source: "blend", Base: "USD", Quote: "EUR", Rate: near(0.861), Providers: []string{"ECB", "Floor"}}, 1)
	s.fixing(&eventsv1.Fixing{Source: "blend", Base: "USD", Quote: "JPY", Rate: near(158), Providers: []string{"ECB", "BOJ"}}, 1)
}

func (s *scenario) fetches(chapter, i int) {
	for n, source := range []string{"ecb", "blend", "floor", "bourse", "gone", "failing"} {
		if s.chance.IntN(3) != 0 || source == "gone" && chapter > 1 {
			continue
		}
		f := &eventsv1.Fetch{
			Source: source, Url: "https://" + source + ".example/", Feed: "rates", Status: 200, Started: s.end - int64(s.chance.IntN(50e9)) - int64(n), Duration: int64(s.chance.IntN(3e9)), Rows: int64(s.chance.IntN(99)),
		}
		if source == "failing" && i > 80 || s.chance.IntN(12) == 0 {
			f.Error, f.Status, f.Rows = fmt.Sprint("the answer ", i, " is none"), int32(s.chance.IntN(2)*503), 0
		}
		f.Told = uint64(f.Rows)
		if chapter == len(chapters)-1 && i > 40 && f.Error == "" {
			switch source {
			case "floor": // it goes on answering, and nothing moves
				f.Told = 7
			case "blend": // it answers without a value
				f.Rows, f.Told = 0, 0
			case "bourse":
				f.Status, f.Rows, f.Told = 304, 0, 0
			}
		}
		rec := &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fetch{Fetch: f}}
		s.report(rec)
		if s.chance.IntN(10) == 0 {
			s.report(rec)
		}
	}
}

// coins are what sources report of coins themselves.
func (s *scenario) coins() {
	one := func(words ...string) string { return words[s.chance.IntN(len(words))] }
	for _, who := range [][2]string{{"coingecko", "bitcoin"}, {"coingecko", "n-coin"}, {"coinpaprika", "bitcoin"}, {"coinpaprika", "tether"}, {"coinpaprika", "n-coin"}, {"another", "bitcoin"}, {"another", "ethereum"}, {"yet-another", "ethereum"}} {
		if s.chance.IntN(3) == 0 {
			continue
		}
		called := named{who[1], "btc", "Bitcoin"}
		if who[1] == "n-coin" {
			called = named{who[1], "nnn", one("N", "N", "Nn")}
		}
		if who[0] != "coingecko" {
			called = namesOf(who[0], who[1])
		}
		if who[0] == "yet-another" {
			called = namesOf("another", who[1])
		}
		c := &eventsv1.Coin{Source: who[0], SourceId: called.id, Symbol: called.symbol, Name: called.name, Part: one("list", "detail"), Rank: uint32(s.chance.IntN(9)), IngestTime: s.end, Inactive: s.chance.IntN(9) == 0}
		if c.Part == "detail" {
			c.Description, c.ImageUrl, c.CreatedAt, c.Kind = one("", "money", "a chain"), one("", "https://a.example/"+who[0]), one("", "2009-01-03"), one("", "coin", "token")
			c.Links = []*eventsv1.Link{{Kind: "homepage", Url: "https://" + one("a", "a", "b") + ".example"}}[:s.chance.IntN(2)]
			c.Developer = []*eventsv1.Statistic{{Name: "stars", Value: float64(s.chance.IntN(99))}}
			c.EventTime = s.end - int64(s.chance.IntN(3))*theDay
		} else {
			c.Categories = []string{"Smart Contract Platform", "Layer 1"}[:s.chance.IntN(3)]
			c.Platforms = []*eventsv1.Platform{{Name: "ethereum", Address: one("0x1", "0x1", "0x2")}, {Name: "solana", Address: "So1"}}[:s.chance.IntN(3)]
		}
		switch s.chance.IntN(8) {
		case 0: // came late
			c.IngestTime -= int64(20 * time.Minute)
		case 1: // reported again, corrected
			s.report(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Coin{Coin: s.coinAgain(c, "BTC2")}})
		}
		s.report(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Coin{Coin: c}})
	}
}

func (s *scenario) coinAgain(c *eventsv1.Coin, kind string) *eventsv1.Coin {
	again := &eventsv1.Coin{}
	if err := again.UnmarshalVT(s.bytes(c)); err != nil {
		s.t.Fatal(err)
	}
	again.Kind = kind
	return again
}
