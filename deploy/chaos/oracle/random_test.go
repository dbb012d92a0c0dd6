package oracle_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/candles"
	"github.com/marketlog/marketlog/processors/median"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// The folds and the second opinion agree on every price and candle of random logs: clocks that leap and
// differ, spools that are emptied late, trades out of order, markets that fall silent. A kill test comes
// to such a place once in hundreds of kills.
func TestFoldsAgreeOnRandomLogs(t *testing.T) {
	prices, minutes := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		want, err := oracle.Fold(map[int32][]oracle.Record{0: log})
		if err != nil {
			t.Fatal(err)
		}
		got := folded(t, log)
		prices, minutes = prices+len(got.Prices), minutes+len(got.Candles)
		if wrong := oracle.Compare(want, got); len(wrong) > 0 {
			t.Fatalf("%d differences, of which the first:\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 3)], "\n"))
		}
	})
	if prices == 0 || minutes == 0 {
		t.Errorf("all logs together gave %d prices and %d candles", prices, minutes)
	}
}

// origins is how many partitions ticks.raw.v1 has.
const origins = 8

// folded is what the processors make of a partition of ticks.v1.
func folded(t *rapid.T, log []oracle.Record) oracle.Views {
	fold := processors.Chain(median.New(schemas.Coins(), origins), candles.New(origins))
	var v oracle.Views
	var out processors.Outputs
	for _, r := range log {
		rec := &eventsv1.ResolvedRecord{}
		if err := rec.UnmarshalVT(r.Value); err != nil {
			t.Fatal(err)
		}
		in := processors.Input{Topic: schemas.TopicTicks, Offset: r.Offset, Value: r.Value, Record: rec}
		out.Begin(in)
		if err := fold.Apply(in, &out); err != nil {
			t.Fatal(err)
		}
		for _, o := range out.List {
			switch body := proto.Clone(o.Record.(proto.Message)).(type) {
			case *eventsv1.PriceRecord:
				if body.GetPrice() != nil {
					v.Prices = append(v.Prices, priceRow(body.GetPrice(), r.Offset))
				}
			case *eventsv1.CandleRecord:
				if c := body.GetCandle(); c != nil {
					v.Candles = append(v.Candles, oracle.Candle{
						Coin: c.CoinId, Start: c.Start / int64(time.Second), Open: c.Open, High: c.High, Low: c.Low, Close: c.Close,
						Volume: ratio(c.Volume), VolumeUSD: c.VolumeUsd, Trades: c.Trades,
					})
				}
				if c := body.GetVenueCandle(); c != nil {
					v.VenueCandles = append(v.VenueCandles, oracle.VenueCandle{
						Venue: c.Venue, Symbol: c.Symbol, Coin: c.CoinId, Quote: c.QuoteId, Start: c.Start / int64(time.Second),
						Open: ratio(c.Open), High: ratio(c.High), Low: ratio(c.Low), Close: ratio(c.Close), Volume: ratio(c.Volume), Trades: c.Trades,
					})
				}
			}
		}
	}
	return v
}

func priceRow(p *eventsv1.Price, offset int64) oracle.Price {
	row := oracle.Price{
		Coin: p.CoinId, Symbol: p.Symbol, Second: p.Time / int64(time.Second), Price: p.Price, Median0: p.Median0, Min: p.Min, Max: p.Max,
		Confidence: p.Confidence, Score: p.Score, Accepted: p.Accepted, Rejected: p.Rejected, Volume24h: p.Volume24H,
		Source: p.Source, Reason: p.Reason, Offset: offset,
	}
	if p.Reason != "" {
		row.Median0 = 0 // as its row has none
	}
	for _, in := range p.Inputs {
		row.Inputs = append(row.Inputs, oracle.Input{
			Provider: in.Provider, Symbol: in.Symbol, Quote: in.QuoteId, Value: in.Value, Rate: in.Rate, PriceUSD: in.PriceUsd,
			Accepted: in.Accepted, Reason: in.Reason, Basis: in.Basis, Partition: in.Partition, Offset: in.Offset,
		})
	}
	return row
}

func ratio(text string) *big.Rat {
	n, _ := new(big.Rat).SetString(text)
	return n
}

// randomMarket is one market of a random log: its values move by chance.
type randomMarket struct {
	venue, symbol, base, coin, quote, quoteID string
	origin                                    int32
	price                                     float64
}

// drawLog draws some minutes of one partition of ticks.v1. Its noise comes from a seed that is drawn too.
func drawLog(t *rapid.T) []oracle.Record {
	noise := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed of noise"), 1))
	seconds := rapid.IntRange(60, 300).Draw(t, "seconds")
	markets := []*randomMarket{
		{"coinbase", "UNI-USD", "UNI", "uniswap", "USD", "USD", 1, 12},
		{"coinbase", "SOL-USD", "SOL", "solana", "USD", "USD", 1, 188},
		{"coinbase", "SOL-USDT", "SOL", "solana", "USDT", "tether", 1, 188},
		{"kraken", "UNI/USD", "UNI", "uniswap", "USD", "USD", 2, 12.01},
		{"kraken", "SOL/USD", "SOL", "solana", "USD", "USD", 3, 188.2},
	}
	var log []oracle.Record
	add := func(origin int32, rec *eventsv1.ResolvedRecord) {
		rec.Mark = &eventsv1.Mark{Partition: origin, Offset: int64(len(log))}
		value, err := rec.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, oracle.Record{Offset: int64(len(log)), Value: value})
	}
	type late struct {
		due  int
		tick *eventsv1.ResolvedTick
		from int32
	}
	var spool []late
	wall := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	silence := map[*randomMarket]int{} // until which second
	known, unknown := wall, 0          // the time by the clocks that count, and for how many seconds they do not know of a leap
	for second := range seconds {
		wall = wall.Add(time.Second)
		if noise.IntN(60) == 0 { // all were away
			wall = wall.Add(time.Duration(noise.IntN(200)) * time.Second)
			unknown = noise.IntN(4)
		}
		if unknown--; unknown < 0 {
			known = wall
		}
		for range 1 + noise.IntN(8) {
			m := markets[noise.IntN(len(markets))]
			if silence[m] > second {
				continue
			}
			if noise.IntN(200) == 0 {
				silence[m] = second + noise.IntN(200)
			}
			at := wall.Add(time.Duration(noise.IntN(1000)) * time.Millisecond)
			if noise.IntN(100) == 0 { // by a clock that is fast, and does not count
				at = at.Add(time.Duration(noise.IntN(50)) * time.Second)
				if noise.IntN(4) == 0 { // far
					at = at.Add(2 * time.Minute)
				}
			}
			tick := m.tick(noise, at)
			if noise.IntN(20) == 0 {
				spool = append(spool, late{second + noise.IntN(150), tick, m.origin})
				continue
			}
			add(m.origin, &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Tick{Tick: tick}})
		}
		waiting := spool[:0]
		for _, l := range spool {
			if l.due > second {
				waiting = append(waiting, l)
				continue
			}
			add(l.from, &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Tick{Tick: l.tick}})
		}
		spool = waiting
		if noise.IntN(5) == 0 {
			continue // the clocks come after more ticks
		}
		for _, origin := range noise.Perm(origins) {
			lag := time.Duration(noise.IntN(1500)) * time.Millisecond
			add(int32(origin), &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Pulse{Pulse: &eventsv1.Pulse{
				Now: known.Add(-lag).UnixNano(), Watermark: known.Add(-lag - time.Second).UnixNano(),
			}}})
		}
	}
	return log
}

func (m *randomMarket) tick(noise *rand.Rand, at time.Time) *eventsv1.ResolvedTick {
	m.price *= 1 + 0.001*(noise.Float64()-0.5)
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', 4, 64) }
	price := m.price
	if noise.IntN(40) == 0 {
		price *= 3
	}
	t := &eventsv1.Tick{
		Venue: m.venue, Symbol: m.symbol, Base: m.base, Quote: m.quote, IngestTime: at.UnixNano(),
		EventTime: at.Add(-time.Duration(noise.IntN(900)) * time.Millisecond).UnixNano(),
	}
	switch noise.IntN(12) {
	case 0:
		t.EventTime = 0
	case 1:
		t.EventTime = at.Add(-time.Duration(noise.IntN(200)) * time.Second).UnixNano()
	case 2:
		t.EventTime = at.Add(-400 * time.Millisecond).UnixNano()
	}
	middle := price * (1 + 0.0002*(noise.Float64()-0.5))
	switch noise.IntN(6) {
	case 0, 1:
		t.Kind, t.Price, t.Size, t.TradeId = eventsv1.TickKind_TICK_KIND_TRADE, text(price), text(0.0001+noise.Float64()), fmt.Sprint(noise.Int64())
	case 2, 3:
		t.Kind, t.Bid, t.Ask = eventsv1.TickKind_TICK_KIND_QUOTE, text(middle*0.9999), text(middle*1.0001)
	default:
		t.Kind, t.Last, t.Bid, t.Ask, t.VolumeBase = eventsv1.TickKind_TICK_KIND_TICKER, text(price), text(middle*0.9999), text(middle*1.0001), text(1000*noise.Float64())
	}
	r := &eventsv1.ResolvedTick{Tick: t, CoinId: m.coin, QuoteId: m.quoteID, Rate: 1}
	if m.quoteID != schemas.USD {
		r.Rate = 0.999 + 0.002*noise.Float64()
	}
	return r
}
