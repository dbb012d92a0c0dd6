package oracle_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// scenario is what the log of a month holds in which venues fall silent, writers write twice, and sources stall, correct themselves
// and err. Between its chapters nothing runs.
type scenario struct {
	*run
	chance *rand.Rand
	log    map[place][]entry
	end    int64 // of the minute under way
	price  map[string]float64
	marks  int64 // of ticks and prices
	// away is how far a stablecoin lies from its peg, basis points.
	away map[string]float64
}

type place struct {
	topic     string
	partition int32
}

// entry is a record and its log time.
type entry struct {
	at    int64
	value []byte
}

var chapters = []struct {
	begin   time.Time
	minutes int
}{
	{time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC), 60},
	{time.Date(2026, 1, 6, 8, 10, 0, 0, time.UTC), 60},    // a day later
	{time.Date(2026, 1, 9, 23, 20, 0, 0, time.UTC), 80},   // over midnight
	{time.Date(2026, 2, 9, 13, 0, 0, 0, time.UTC), 20},    // a month later: the first prices are not kept any more
	{time.Date(2026, 2, 10, 11, 30, 0, 0, time.UTC), 110}, // and a day
}

// traded are the coins with candles of our own.
var traded = []string{"bitcoin", "ethereum", "tether", "usd-coin", "dai", "euro-coin", "eurite", "n-coin", "cnh-tether"}

func newScenario(t testing.TB, seed uint64) *scenario {
	s := &scenario{
		run: &run{t: t, candles: map[int32][]oracle.Record{}}, chance: rand.New(rand.NewPCG(seed, 11)), log: map[place][]entry{},
		price: map[string]float64{"bitcoin": 60_000, "ethereum": 3_000, "n-coin": 0.000_012, "m-coin": 4, "l-coin": 1e-9, "another-one": 70}, away: map[string]float64{},
	}
	for range 3 { // one clock alone is believed from its third word on
		s.observe(&eventsv1.ReferenceRecord{Producer: "sources", Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: chapters[0].begin.UnixNano()}}})
	}
	for n, chapter := range chapters {
		s.end = chapter.begin.UnixNano()
		s.begin(n)
		for i := range chapter.minutes {
			s.end += int64(time.Minute)
			s.minute(s.end)
			s.trade(i)
			s.sources(i)
			s.reference(n, i)
			if n == len(chapters)-1 && i == chapter.minutes-9 {
				s.crowd()
			}
		}
		s.close(n == len(chapters)-1)
	}
	s.last()
	for p, records := range s.candles {
		for _, r := range records {
			s.log[place{schemas.TopicCandles, p}] = append(s.log[place{schemas.TopicCandles, p}], entry{s.end, r.Value})
		}
	}
	for _, r := range s.observations {
		s.log[place{schemas.TopicCoinMarketsRaw, 0}] = append(s.log[place{schemas.TopicCoinMarketsRaw, 0}], entry{s.end, r.Value})
	}
	return s
}

// close ends the last minute of a chapter: both topics show that it is whole. With that the next minute has begun, which is whole
// when the next chapter begins.
func (s *scenario) close(ends bool) {
	s.minute(s.end + int64(time.Minute))
	if ends {
		s.closes, s.minutes = s.closes[:len(s.closes)-1], s.minutes[:len(s.minutes)-1]
	}
	s.pulses()
}

func (s *scenario) pulses() {
	for p := range int32(8) {
		at := s.end + int64(schemas.AllowedLateness)
		s.append(p, &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Pulse{Pulse: &eventsv1.Pulse{Now: at, Watermark: at}}})
	}
}

// append adds a record to a partition of candles without letting the fold in memory have it.
func (s *scenario) append(partition int32, rec *eventsv1.CandleRecord) {
	records := s.candles[partition]
	if rec.Mark == nil {
		rec.Mark = &eventsv1.Mark{Offset: int64(len(records))}
	}
	s.candles[partition] = append(records, oracle.Record{Offset: int64(len(records)), Value: s.bytes(rec)})
}

func (s *scenario) bytes(rec interface{ MarshalVT() ([]byte, error) }) []byte {
	value, err := rec.MarshalVT()
	if err != nil {
		s.t.Fatal(err)
	}
	return value
}

func (s *scenario) write(topic string, partition int32, at int64, rec interface{ MarshalVT() ([]byte, error) }) {
	s.log[place{topic, partition}] = append(s.log[place{topic, partition}], entry{at, s.bytes(rec)})
}

// trade writes the candles, the prices and the ticks of a minute.
func (s *scenario) trade(i int) {
	for n, id := range traded {
		switch {
		case n < 2 || id == "n-coin":
			s.price[id] *= 1 + (s.chance.Float64()-0.5)/40
		default: // a stablecoin strays by up to 1.5 %
			s.away[id] = math.Max(-150, math.Min(150, s.away[id]+40*s.chance.Float64()-20))
			s.price[id] = s.unit(id) * (1 + s.away[id]/10_000)
		}
		if (i/20+n)%7 == 0 || s.chance.IntN(25) == 0 {
			continue // its venues are silent
		}
		p := s.price[id]
		partition := stream.PartitionFor(id, 8)
		s.candle(partition, &eventsv1.Candle{
			CoinId: id, Start: s.end - int64(time.Minute), Open: p, High: p * 1.002, Low: p * 0.997, Close: p, Volume: "1.5", VolumeUsd: p,
			Volume24H: float64(s.chance.IntN(3)) * 1e9, Accepted: uint32(n + 2), Simulated: i%50 < 3,
		})
		if s.chance.IntN(9) == 0 { // another writer saw something else
			s.append(partition, &eventsv1.CandleRecord{
				Mark: &eventsv1.Mark{Offset: int64(len(s.candles[partition]) - 1 - s.chance.IntN(2))},
				Body: &eventsv1.CandleRecord_Candle{Candle: &eventsv1.Candle{CoinId: id, Start: s.end - int64(time.Minute), Open: p, High: p * 3, Low: p, Close: p * 2, Volume: "1"}},
			})
		}
		s.published(id, partition, p)
		s.ticked(id, partition, p)
	}
	s.pulses()
}

// unit is what a stablecoin aims at, roughly: fixings come and go.
func (s *scenario) unit(id string) float64 {
	if id == "euro-coin" || id == "eurite" {
		return 1.1652
	}
	if id == "cnh-tether" {
		return 0.139
	}
	return 1
}

func (s *scenario) mark() *eventsv1.Mark {
	s.marks++
	return &eventsv1.Mark{LogicVersion: 1, Partition: 3, Offset: s.marks}
}

func (s *scenario) published(id string, partition int32, p float64) {
	for range s.chance.IntN(3) {
		second := s.end - int64(1+s.chance.IntN(59))*int64(time.Second)
		price := &eventsv1.Price{CoinId: id, Time: second, Price: p * (1 + s.chance.Float64()/1000), Accepted: 2, Inputs: []*eventsv1.PriceInput{
			{Provider: "coinbase", QuoteHeard: second - int64(s.chance.IntN(9e9)), Bid: p}, {Provider: "kraken", LastHeard: second - int64(s.chance.IntN(9e9)), Last: p},
		}}
		if id == "dai" {
			price.Inputs = append(price.Inputs, &eventsv1.PriceInput{Provider: "bitstamp", LastHeard: s.end - int64(5*time.Minute) - 17, Last: p})
		}
		if s.chance.IntN(8) == 0 {
			price.Price, price.Reason, price.Inputs = 0, "no_fresh_inputs", nil
		}
		rec := &eventsv1.PriceRecord{Mark: s.mark(), Body: &eventsv1.PriceRecord_Price{Price: price}}
		s.write(schemas.TopicPrices, partition, second, rec)
		if s.chance.IntN(7) == 0 { // a duplicate, with another price
			price.Price *= 2
			s.write(schemas.TopicPrices, partition, second, rec)
		}
	}
}

func (s *scenario) ticked(id string, partition int32, p float64) {
	spelled := map[string][]string{"bitcoin": {"BTC", "XBT"}, "ethereum": {"ETH"}, "tether": {"USDT", "UST"}, "usd-coin": {"USDC"}, "dai": {"dai"}, "n-coin": {"N"}, "euro-coin": {"EURC"}}[id]
	for i, base := range spelled {
		at := s.end - int64(s.chance.IntN(60e9))
		if s.chance.IntN(3) != 0 {
			continue
		}
		means := id
		if base == "N" { // another coin since
			means = []string{"frax", "frax-share", "frax"}[s.chance.IntN(3)]
			if s.chance.IntN(4) == 0 {
				means = ""
			}
			if s.marks > 2400 {
				means = "frax-share"
			}
			base = "FRAX"
		}
		tick := &eventsv1.ResolvedTick{CoinId: means, QuoteId: "USD", Rate: 1, Tick: &eventsv1.Tick{
			Venue: []string{"coinbase", "kraken"}[i%2], Symbol: base + "-USD", Base: base, Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE, EventId: fmt.Appendf(nil, "%016d", s.marks),
			EventTime: at, IngestTime: at, Price: fmt.Sprintf("%.9f", p), Size: "1", TradeId: "1",
		}}
		if s.chance.IntN(9) == 0 {
			tick.Flags = uint32(schemas.Repeat)
		}
		rec := &eventsv1.ResolvedRecord{Mark: s.mark(), Body: &eventsv1.ResolvedRecord_Tick{Tick: tick}}
		s.write(schemas.TopicTicks, partition, at, rec)
		if s.chance.IntN(9) == 0 { // a writer that was thought dead
			rec.Mark, tick.CoinId, tick.Tick.IngestTime = &eventsv1.Mark{LogicVersion: 1, Partition: 3, Offset: s.marks - 1}, "ripple", at+int64(time.Hour)
			s.write(schemas.TopicTicks, partition, at, rec)
		}
	}
}

// last is one more tick, which shows how far the log has come.
func (s *scenario) last() {
	s.write(schemas.TopicTicks, stream.PartitionFor("solana", 8), s.end, &eventsv1.ResolvedRecord{Mark: s.mark(), Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{
		CoinId: "solana", QuoteId: "USD", Rate: 1, Tick: &eventsv1.Tick{Venue: "coinbase", Symbol: "SOL-USD", Base: "sol", Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
			EventId: []byte("the last of them"), EventTime: s.end, IngestTime: s.end, Price: "150", Size: "1", TradeId: "2"},
	}}})
}

// sources state what they know of the markets of coins.
func (s *scenario) sources(i int) {
	for n, id := range slices.Sorted(maps.Keys(s.price)) {
		if s.away[id] != 0 && i%3 != 0 {
			continue
		}
		for _, source := range []string{"coingecko", "coinpaprika", "another"} {
			if s.chance.IntN(7) != 0 {
				continue
			}
			p := s.price[id]
			reported := &eventsv1.CoinMarket{
				Source: source, SourceId: id, Symbol: id[:1] + "x", Name: "The " + id, Price: decimal(p * (1 + (s.chance.Float64()-0.5)/40)), CirculatingSupply: decimal(float64(2e6 - 1e4*n)), TotalSupply: "3000000",
				Volume24H: decimal(p * 1e5 * s.chance.Float64()), High24H: decimal(p * 1.04), Low24H: decimal(p * 0.96), Change1H: decimal(s.chance.Float64() - 0.5), Change24H: decimal(9 * (s.chance.Float64() - 0.4)),
				Change7D: decimal(20 * (s.chance.Float64() - 0.5)), Change1Y: "120.5", Ath: decimal(p * 1.1), AthTime: 5, Atl: decimal(p * 0.95), AtlTime: 6,
				EventTime: s.end - int64(s.chance.IntN(120))*int64(time.Second), IngestTime: s.end - int64(s.chance.IntN(30))*int64(time.Second),
			}
			if id == "tether" && source == "coingecko" {
				reported.CirculatingSupply, reported.TotalSupply = "", ""
			}
			if source != "coingecko" {
				coin := namesOf(source, id)
				if coin.id == "" {
					continue
				}
				reported.SourceId, reported.Symbol, reported.Name = coin.id, coin.symbol, coin.name
			}
			spoil(s.chance, reported, p)
			rec := &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: reported}}
			s.observe(rec)
			if s.chance.IntN(10) == 0 { // sent once more
				s.observe(rec)
			}
		}
	}
}

// crowd is many coins that a source begins to report.
func (s *scenario) crowd() {
	for n := range 270 {
		reported := &eventsv1.CoinMarket{
			Source: "coingecko", SourceId: fmt.Sprintf("crowd-%03d", n), Symbol: "c", Name: "C", Price: decimal(1 + float64(n)/7), CirculatingSupply: decimal(float64(1_000_000 - n)),
			Volume24H: decimal(float64([]int{0, 49_999, 50_000, 2_000_000}[s.chance.IntN(4)])), Change24H: decimal(float64(s.chance.IntN(41) - 20)), IngestTime: s.end - int64(time.Second),
		}
		if s.chance.IntN(10) == 0 {
			reported.Change24H = ""
		}
		s.observe(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: reported}})
	}
}

// named is what a source calls a coin; no id where it does not have it.
type named struct{ id, symbol, name string }

func namesOf(source, coin string) named {
	switch source + " " + coin {
	case "coinpaprika bitcoin":
		return named{"btc-bitcoin", "BTC", "Bitcoin"}
	case "coinpaprika tether":
		return named{"usdt-tether", "USDT", "Tether"}
	case "coinpaprika n-coin":
		return named{"n-of-nobody", "N", "Of Nobody"}
	case "another bitcoin":
		return named{"bitcoin", "BTC", "Bitcoin"}
	case "another ethereum":
		return named{"ethereum", "ETH", "Ethereum"}
	}
	return named{}
}

// marketFixture is what the oracle is given of coins.
func marketFixture() oracle.Market {
	m := oracle.Market{Coins: map[string]oracle.MarketCoin{}, ID: func(source, id string) string {
		if source == "coingecko" {
			return id
		}
		return map[string]string{"btc-bitcoin": "bitcoin", "bitcoin": "bitcoin", "usdt-tether": "tether", "ethereum": "ethereum"}[id]
	}}
	for _, c := range schemas.Coins().All() {
		m.Coins[c.ID] = oracle.MarketCoin{Symbol: c.Symbol, Name: c.Name, Stablecoin: c.Kind == schemas.KindStablecoin, Peg: c.Peg}
	}
	return m
}
