package processors_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/quotes"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// The fold of quotes and the second opinion agree on every rate of random logs, in all its fields: clocks that
// leap and differ, spools that are emptied late, ticks out of order and ahead of now, trades that are read again,
// crossed quotes, absurd prices, markets that fall silent, fixings that come late; and a member that was killed.
func TestQuotesAgreeOnRandomLogs(t *testing.T) {
	methods := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		l, fixings, overrides := drawQuotesLog(t)
		raw := map[int32][]oracle.Record{}
		for p, records := range l {
			for _, r := range records {
				raw[int32(p)] = append(raw[int32(p)], oracle.Record{Offset: r.Offset, Value: r.Value})
			}
		}
		want, err := oracle.QuoteRates(raw, secondsPartitions, fixings, overrides)
		if err != nil {
			t.Fatal(err)
		}
		got := quotesOf(t, l, fixings, overrides)
		for i := range max(len(got), len(want)) {
			switch {
			case i >= len(got):
				t.Fatalf("output %d is missing, want %v", i, want[i])
			case i >= len(want):
				t.Fatalf("output %d should not be: got %v", i, got[i])
			case !proto.Equal(got[i], want[i]):
				t.Fatalf("output %d differs:\n got %v\nwant %v", i, got[i], want[i])
			}
			if rate := want[i].GetRate(); rate != nil {
				methods[rate.Method]++
			}
		}
	})
	if methods["market"] == 0 || methods["fixing"] == 0 {
		t.Errorf("all logs together gave rates by %v", methods)
	}
}

// quotesOf is what one member makes of a part of a log, and the next of the rest, without checkpoints.
func quotesOf(t *rapid.T, l *secondsLog, published []*eventsv1.Fixing, overrides []*eventsv1.SymbolOverride) []*eventsv1.QuoteRecord {
	var out secondsOutput
	noise := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed of reading"), 1))
	for _, ends := range []bool{false, true} {
		fixings := quotes.NewFixings()
		for _, i := range noise.Perm(len(published)) {
			value, _ := (&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: published[i]}}).MarshalVT()
			fixings.Apply(value)
		}
		fold := quotes.Seconds(schemas.Coins(), schemas.NewSymbolOverrides(overrides...), nil, fixings)
		last, checkpoint := out.applied(t)
		member := processors.TakeOverSeconds(fold, secondsPartitions, schemas.TopicQuotes, checkpoint, last, &out)
		var next [secondsPartitions]int
		for p := range next {
			next[p] = int(member.From(schemas.TopicTicksRaw, int32(p)))
		}
		for batches := noise.IntN(100); ends || batches > 0; batches-- {
			var batch []*kgo.Record
			left := 0
			for p := range next {
				n := min(noise.IntN(200), len(l[p])-next[p])
				batch = append(batch, l[p][next[p]:next[p]+n]...)
				next[p] += n
				left += len(l[p]) - next[p]
			}
			if err := member.Add(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			if left == 0 {
				break
			}
		}
		if !ends {
			out.values = out.values[:noise.IntN(len(out.values)+1)] // the rest was not durable
		}
	}
	var records []*eventsv1.QuoteRecord
	for _, value := range out.values {
		rec := &eventsv1.QuoteRecord{}
		if err := rec.UnmarshalVT(value); err != nil {
			t.Fatal(err)
		}
		if rec.GetPulse() != nil {
			rec.GetPulse().Checkpoint = nil
		}
		records = append(records, rec)
	}
	return records
}

// quoteMarket is one market of a random log: its values move by chance.
type quoteMarket struct {
	venue, symbol, base, quote string
	price                      float64
	silent                     int // until which second
	sent                       []*eventsv1.Tick
}

// quotesLog is a random log as it comes into being.
type quotesLog struct {
	t      *rapid.T
	noise  *rand.Rand
	log    *secondsLog
	ids    uint64
	epochs map[string]int64
}

// drawQuotesLog draws some minutes of ticks.raw.v1, the central bank's fixings and the operators' overrides meanwhile. Its noise comes
// from a seed that is drawn too.
func drawQuotesLog(t *rapid.T) (*secondsLog, []*eventsv1.Fixing, []*eventsv1.SymbolOverride) {
	q := &quotesLog{
		t: t, noise: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed of noise"), 1)), log: &secondsLog{},
		epochs: map[string]int64{"coinbase": 1, "kraken": 1, "okx": 1, "upbit": 1},
	}
	markets := []*quoteMarket{
		{venue: "kraken", symbol: "USDT/USD", base: "USDT", quote: "USD", price: 0.999},
		{venue: "coinbase", symbol: "USDT-USD", base: "USDT", quote: "USD", price: 0.998},
		{venue: "kraken", symbol: "USDC/USD", base: "USDC", quote: "USD", price: 1.001}, // the only one
		{venue: "okx", symbol: "USDC-USDT", base: "USDC", quote: "USDT", price: 1.002},
		{venue: "kraken", symbol: "EUR/USD", base: "EUR", quote: "USD", price: 1.1}, // the only one
		{venue: "kraken", symbol: "XBT/USD", base: "XBT", quote: "USD", price: 60000},
		{venue: "coinbase", symbol: "BTC-USD", base: "BTC", quote: "USD", price: 60010},
		{venue: "coinbase", symbol: "BTC-USDC", base: "BTC", quote: "USDC", price: 60020},
		{venue: "okx", symbol: "BTC-USDT", base: "BTC", quote: "USDT", price: 60100},
		{venue: "kraken", symbol: "ETH/EUR", base: "ETH", quote: "EUR", price: 2000},
		{venue: "kraken", symbol: "ETH/XBT", base: "ETH", quote: "XBT", price: 0.036},
		{venue: "upbit", symbol: "KRW-ETH", base: "ETH", quote: "KRW", price: 3_100_000},
		{venue: "okx", symbol: "SOL-USDT", base: "SOL", quote: "USDT", price: 150},
	}
	type late struct {
		due, market int
		tick        *eventsv1.Tick
	}
	var spool []late
	wall := secondsBegin.Add(time.Duration(q.noise.IntN(3*86400)) * time.Second)
	fixings, overrides := q.fixings(wall), q.overrides(wall)
	for second := range rapid.IntRange(20, 150).Draw(t, "seconds") {
		wall = wall.Add(time.Second)
		switch q.noise.IntN(150) {
		case 0, 1: // all were away
			wall = wall.Add(time.Duration(q.noise.IntN(200)) * time.Second)
		case 2:
			wall = wall.Add(time.Duration(q.noise.IntN(60)) * time.Hour)
		case 3:
			q.epochs["kraken"]++
		}
		for range 1 + q.noise.IntN(8) {
			i := q.noise.IntN(len(markets))
			m := markets[i]
			if m.silent > second {
				continue
			}
			if q.noise.IntN(100) == 0 {
				m.silent = second + q.noise.IntN(200)
			}
			at := wall.Add(time.Duration(q.noise.IntN(1000)) * time.Millisecond)
			if q.noise.IntN(100) == 0 { // by a clock that is fast, and does not count
				at = at.Add(time.Duration(q.noise.IntN(50)) * time.Second)
			}
			tick := q.send(m, at)
			if q.noise.IntN(20) == 0 {
				spool = append(spool, late{second + q.noise.IntN(150), i, tick})
				continue
			}
			q.add(i, tick)
		}
		waiting := spool[:0]
		for _, l := range spool {
			if l.due > second {
				waiting = append(waiting, l)
				continue
			}
			q.add(l.market, l.tick)
		}
		spool = waiting
		if q.noise.IntN(5) != 0 { // else the clocks come after more ticks
			q.clocks(wall)
		}
	}
	return q.log, fixings, overrides
}

func (q *quotesLog) add(market int, tick *eventsv1.Tick) {
	q.log.add(q.t, market%secondsPartitions, &eventsv1.RawRecord{
		Producer: tick.Venue, Epoch: q.epochs[tick.Venue], Body: &eventsv1.RawRecord_Tick{Tick: tick},
	})
}

// clocks writes what the producers' clocks show: some are silent, some behind and some fast.
func (q *quotesLog) clocks(wall time.Time) {
	for p := range secondsPartitions {
		for _, i := range q.noise.Perm(4) {
			producer := [...]string{"coinbase", "kraken", "okx", "upbit"}[i]
			at := wall.Add(-time.Duration(q.noise.IntN(1500)) * time.Millisecond)
			switch q.noise.IntN(100) {
			case 0, 1, 2:
				continue
			case 3:
				at = at.Add(time.Duration(q.noise.IntN(40)) * time.Second)
			case 4:
				at = at.Add(-time.Duration(q.noise.IntN(100)) * time.Second)
			}
			q.log.add(q.t, p, &eventsv1.RawRecord{
				Producer: producer, Epoch: q.epochs[producer], Body: &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: at.UnixNano()}},
			})
		}
	}
}

// send is the next tick of a market, or one of its last again.
func (q *quotesLog) send(m *quoteMarket, at time.Time) *eventsv1.Tick {
	if n := len(m.sent); n > 0 && q.noise.IntN(15) == 0 {
		again := proto.Clone(m.sent[max(0, n-1-q.noise.IntN(10))]).(*eventsv1.Tick)
		if q.noise.IntN(3) > 0 { // as a venue sends its last trades to those who come back
			again.IngestTime = at.UnixNano()
		}
		return again
	}
	m.price *= 1 + 0.001*(q.noise.Float64()-0.5)
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', 8, 64) }
	price := m.price
	if q.noise.IntN(40) == 0 {
		price *= 3
	}
	q.ids++
	t := &eventsv1.Tick{
		Venue: m.venue, Symbol: m.symbol, Base: m.base, Quote: m.quote, IngestTime: at.UnixNano(),
		EventId: fmt.Appendf(nil, "%016d", q.ids), EventTime: at.Add(-time.Duration(q.noise.IntN(900)) * time.Millisecond).UnixNano(),
	}
	m.sent = append(m.sent, t)
	switch q.noise.IntN(20) {
	case 0, 1:
		t.EventTime = 0
	case 2, 3:
		t.EventTime = at.Add(-time.Duration(q.noise.IntN(200)) * time.Second).UnixNano()
	case 4, 5:
		t.EventTime = at.Add(-400 * time.Millisecond).UnixNano()
	case 6:
		t.EventTime = at.Add(time.Duration(q.noise.IntN(20)) * time.Second).UnixNano()
	}
	half := 0.0001
	switch q.noise.IntN(20) {
	case 0:
		half = -half // crossed
	case 1:
		half = 0.06 // too wide
	}
	middle := price * (1 + 0.0002*(q.noise.Float64()-0.5))
	bid, ask := text(middle*(1-half)), text(middle*(1+half))
	switch q.noise.IntN(30) {
	case 0:
		bid = ""
	case 1:
		ask = ""
	}
	number := text(price)
	if q.noise.IntN(50) == 0 {
		number = [...]string{"0", "-1", "NaN", "1e13", "1e-19", "0.1234567890123456789"}[q.noise.IntN(6)]
	}
	switch q.noise.IntN(6) {
	case 0, 1:
		t.Kind, t.Price, t.Size = eventsv1.TickKind_TICK_KIND_TRADE, number, text(0.0001+q.noise.Float64())
	case 2, 3:
		t.Kind, t.Bid, t.Ask = eventsv1.TickKind_TICK_KIND_QUOTE, bid, ask
	default:
		t.Kind, t.Last, t.Bid, t.Ask = eventsv1.TickKind_TICK_KIND_TICKER, number, bid, ask
		switch q.noise.IntN(4) {
		case 0:
			t.VolumeBase = text(1000 * q.noise.Float64())
		case 1:
			t.VolumeBase, t.VolumeQuote = text(1000*q.noise.Float64()), text(1000*q.noise.Float64())
		case 2:
			t.VolumeQuote = text(float64(q.noise.IntN(2)))
		}
	}
	return t
}

// fixings are what the central bank publishes: of the days before and, in the course of the log, of new ones, one
// currency at a time and at times the last days again.
func (q *quotesLog) fixings(wall time.Time) []*eventsv1.Fixing {
	var fixings []*eventsv1.Fixing
	for range q.noise.IntN(25) {
		day := wall.AddDate(0, 0, 2-q.noise.IntN(11))
		currency := [...]string{"USD", "USD", "USD", "KRW", "KRW", "GBP", "JPY", "XYZ"}[q.noise.IntN(8)]
		rate := map[string]float64{"USD": 1.1, "KRW": 1600, "GBP": 0.85, "JPY": 160, "XYZ": 3}[currency] * (1 + 0.02*q.noise.Float64())
		text := strconv.FormatFloat(rate, 'f', 4, 64)
		if q.noise.IntN(20) == 0 {
			text = "0"
		}
		fixings = append(fixings, &eventsv1.Fixing{
			Source: "bank", Base: [...]string{"EUR", "EUR", "EUR", "EUR", "USD"}[q.noise.IntN(5)], Quote: currency,
			Rate: text, Date: day.Format(time.DateOnly), IngestTime: wall.Add(time.Duration(q.noise.IntN(300)-130) * time.Second).UnixNano(),
		})
	}
	return fixings
}

// overrides are what operators set of coins' symbols now and then, and take back.
func (q *quotesLog) overrides(wall time.Time) []*eventsv1.SymbolOverride {
	var overrides []*eventsv1.SymbolOverride
	for range max(0, q.noise.IntN(9)-4) {
		overrides = append(overrides, &eventsv1.SymbolOverride{
			Source: [...]string{"kraken", "coinbase", "okx", schemas.GeneralSource}[q.noise.IntN(4)],
			Symbol: [...]string{"USDT", "USDC", "BTC", "XBT", "ETH", "SOL", "EUR"}[q.noise.IntN(7)],
			CoinId: [...]string{schemas.NoCoin, "", "tether", "bitcoin", "solana"}[q.noise.IntN(5)],
			Time:   wall.Add(time.Duration(q.noise.IntN(250)-80) * time.Second).UnixNano(),
		})
	}
	return overrides
}
