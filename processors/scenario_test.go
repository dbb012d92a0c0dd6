package processors_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// scenarioPartitions is how many partitions of ticks.raw.v1 a scenario fills.
const scenarioPartitions = 2

// scenario is some minutes of a market as producers would have written it into ticks.raw.v1: clocks
// that differ, silence, restarts, spools that are emptied late, duplicates, prints from afar and
// what no venue should send.
type scenario struct {
	raw [scenarioPartitions][]*kgo.Record
	// written is when each raw record came into the log, in seconds of the script.
	written [scenarioPartitions][]float64
	// stuck are spans in which nobody folds a raw partition.
	stuck [scenarioPartitions][]span
}

// span is a part of the script, in seconds.
type span struct{ from, to float64 }

func (s span) holds(at float64) bool { return s.from <= at && at < s.to }

var scriptStart = time.Date(2026, 1, 5, 9, 58, 30, 250_000_000, time.UTC)

// scriptedProducer is one source in one process after the other.
type scriptedProducer struct {
	name string
	// skew is how far its clock is ahead.
	skew time.Duration
	// silent are spans in which it writes nothing; spooled ones, what it wrote comes at their end.
	silent, spooled []span
	// restarts are when it begins a new epoch.
	restarts []float64
	// ticks is how many ticks a second it hears, over all its markets.
	ticks   float64
	markets []*scriptedMarket
}

type scriptedMarket struct {
	symbol, base, quote string
	price               float64
	previous            *eventsv1.Tick
}

// sameTicksPartition are symbols of coins whose ticks share a partition, so that a test of one
// partition folds all of them.
func sameTicksPartition(n int) (partition int32, symbols []string) {
	topic, _ := schemas.TopicNamed(schemas.TopicTicks)
	partition = stream.PartitionFor("bitcoin", topic.Partitions)
	for _, c := range schemas.Coins().All() {
		byVenue, _, ok := schemas.Coins().Resolve("kraken", c.Symbol)
		if ok && byVenue.ID == c.ID && c.Kind == schemas.KindCoin && stream.PartitionFor(c.ID, topic.Partitions) == partition {
			if symbols = append(symbols, c.Symbol); len(symbols) == n {
				break
			}
		}
	}
	return partition, symbols
}

// drawScenario draws what happens; the noise of prices comes from a seed that is drawn too.
func drawScenario(t *rapid.T) *scenario {
	s := &scenario{}
	seconds := rapid.IntRange(260, 560).Draw(t, "seconds")
	noise := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed of noise"), 1))
	spanWithin := func(label string, longest float64) span {
		from := rapid.Float64Range(0, float64(seconds)).Draw(t, label+" from")
		return span{from, from + rapid.Float64Range(1, longest).Draw(t, label+" for")}
	}
	var all []span // everyone is away
	if leaps := rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "leaps"); leaps > 0 {
		// Whoever is up between two of them for some seconds only remembers the time before both.
		away := spanWithin("leap", 400)
		for range leaps {
			all = append(all, away)
			seconds += int(away.to - away.from)
			from := away.to + rapid.Float64Range(3, 60).Draw(t, "up for")
			away = span{from, from + rapid.Float64Range(1, 300).Draw(t, "leap for")}
		}
	}
	skews := []time.Duration{0, 0, 300 * time.Millisecond, -2 * time.Second, 9 * time.Second, -25 * time.Second, -50 * time.Second, 14 * time.Second, time.Hour}
	_, symbols := sameTicksPartition(3)
	var producers []*scriptedProducer
	for i, name := range []string{"kraken", "okx", "gemini", "bitstamp"}[:rapid.IntRange(1, 4).Draw(t, "producers")] {
		p := &scriptedProducer{name: name, silent: slices.Clone(all)}
		p.ticks = rapid.SampledFrom([]float64{1.5, 1.5, 0.3, 0.3, 0.1, 0.1, 0.04, 8}).Draw(t, name+" ticks a second")
		if i > 0 {
			p.skew = rapid.SampledFrom(skews).Draw(t, name+" skew")
		}
		switch rapid.IntRange(0, 4).Draw(t, name+" fate") {
		case 0:
			p.silent = append(p.silent, spanWithin(name+" silent", 200))
		case 1:
			p.spooled = append(p.spooled, spanWithin(name+" spooled", 200))
		case 2:
			away := spanWithin(name+" restarting", 40)
			p.silent = append(p.silent, away)
			p.restarts = append(p.restarts, away.to)
		}
		p.list(symbols, noise)
		producers = append(producers, p)
	}
	for p := range s.stuck {
		if rapid.IntRange(0, 2).Draw(t, fmt.Sprintf("partition %d stuck", p)) == 0 {
			s.stuck[p] = append(s.stuck[p], spanWithin(fmt.Sprintf("partition %d", p), 200))
		}
	}
	s.play(producers, seconds, noise)
	return s
}

// calmScenario is a market in which nothing is out of order but some ticks.
func calmScenario(seconds int) *scenario {
	s := &scenario{}
	noise := rand.New(rand.NewPCG(7, 1))
	_, symbols := sameTicksPartition(3)
	var producers []*scriptedProducer
	for i, name := range []string{"kraken", "okx", "gemini"} {
		p := &scriptedProducer{name: name, skew: time.Duration(i) * 300 * time.Millisecond, ticks: 1.5}
		p.list(symbols, noise)
		producers = append(producers, p)
	}
	s.play(producers, seconds, noise)
	return s
}

// list gives a producer some markets of each coin.
func (p *scriptedProducer) list(symbols []string, noise *rand.Rand) {
	for i, base := range symbols {
		for _, quote := range []string{"USD", "USDT", "EUR"}[:1+noise.IntN(3)] {
			p.markets = append(p.markets, &scriptedMarket{
				symbol: base + "-" + quote, base: base, quote: quote, price: 100 * float64(i+1) * (0.99 + 0.02*noise.Float64()),
			})
		}
	}
}

// entry is a raw record on its way into the log.
type entry struct {
	partition int32
	at        float64
	record    *eventsv1.RawRecord
}

func (s *scenario) play(producers []*scriptedProducer, seconds int, noise *rand.Rand) {
	var entries []entry
	events := uint64(0)
	for second := range seconds {
		order := noise.Perm(len(producers))
		for _, i := range order {
			p := producers[i]
			wall := float64(second) + 0.9*noise.Float64()
			if slices.ContainsFunc(p.silent, func(s span) bool { return s.holds(wall) }) {
				continue
			}
			at := wall
			for _, spool := range p.spooled {
				if spool.holds(wall) {
					at = spool.to
				}
			}
			ingest := scriptStart.Add(time.Duration(wall*float64(time.Second)) + p.skew)
			epoch := scriptStart
			for _, restart := range p.restarts {
				if restart <= wall {
					epoch = scriptStart.Add(time.Duration(restart * float64(time.Second)))
				}
			}
			raw := func() *eventsv1.RawRecord { return &eventsv1.RawRecord{Producer: p.name, Epoch: epoch.UnixNano()} }
			for range int(p.ticks*2*noise.Float64() + noise.Float64()) {
				m := p.markets[noise.IntN(len(p.markets))]
				events++
				rec := raw()
				tick := m.tick(p.name, ingest, events, noise)
				rec.Body = &eventsv1.RawRecord_Tick{Tick: tick}
				partition := stream.PartitionFor(p.name+"|"+m.base, scenarioPartitions)
				entries = append(entries, entry{partition, at, rec})
				if noise.IntN(12) == 0 { // an outbox that lost an acknowledgement writes again, soon or late
					entries = append(entries, entry{partition, at + []float64{0, 3, 100, 178, 183, 250}[noise.IntN(6)], rec})
				}
			}
			for partition := range int32(scenarioPartitions) {
				rec := raw()
				rec.Body = &eventsv1.RawRecord_Clock{Clock: &eventsv1.Clock{Time: ingest.UnixNano()}}
				entries = append(entries, entry{partition, at, rec})
			}
			if noise.IntN(60) == 0 {
				rec := raw()
				rec.Body = &eventsv1.RawRecord_Gap{Gap: &eventsv1.Gap{Venue: p.name, Reason: "sequence", ToTime: ingest.UnixNano()}}
				entries = append(entries, entry{0, at, rec})
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	for _, e := range entries {
		value, err := e.record.MarshalVT()
		if err != nil {
			panic(err)
		}
		s.raw[e.partition] = append(s.raw[e.partition], &kgo.Record{
			Topic: schemas.TopicTicksRaw, Partition: e.partition, Offset: int64(len(s.raw[e.partition])), Value: value,
		})
		s.written[e.partition] = append(s.written[e.partition], e.at)
	}
}

func (m *scriptedMarket) tick(venue string, ingest time.Time, event uint64, noise *rand.Rand) *eventsv1.Tick {
	var id schemas.EventID
	binary.BigEndian.PutUint64(id[:], event)
	t := &eventsv1.Tick{
		Venue: venue, Symbol: m.symbol, Base: m.base, Quote: m.quote, EventId: id[:],
		IngestTime: ingest.UnixNano(), EventTime: ingest.Add(-time.Duration(noise.IntN(900)) * time.Millisecond).UnixNano(),
	}
	switch noise.IntN(20) {
	case 0:
		t.EventTime = 0
	case 1:
		t.EventTime = ingest.Add(4 * time.Second).UnixNano()
	case 2:
		t.EventTime = ingest.Add(-time.Duration(noise.IntN(100)) * time.Second).UnixNano()
	}
	if m.previous != nil && noise.IntN(10) == 0 { // the state as it was, received again
		repeated := proto.CloneOf(m.previous)
		repeated.IngestTime = t.IngestTime
		return repeated
	}
	if noise.IntN(3) > 0 {
		m.price *= 1 + 0.004*(noise.Float64()-0.5)
	}
	price := m.price
	if noise.IntN(25) == 0 {
		price *= 3
	}
	text := func(f float64) string { return strconv.FormatFloat(f, 'f', 6, 64) }
	switch noise.IntN(20) {
	default:
		t.Kind, t.Price, t.Size = eventsv1.TickKind_TICK_KIND_TRADE, text(price), text(0.000001+noise.Float64())
	case 0, 1, 2, 3, 4, 5, 6:
		t.Kind, t.Bid, t.Ask = eventsv1.TickKind_TICK_KIND_QUOTE, text(price*0.999), text(price*1.001)
		m.previous = t
	case 7, 8:
		t.Kind, t.Last, t.VolumeBase = eventsv1.TickKind_TICK_KIND_TICKER, text(price), text(1000*noise.Float64())
	case 9:
		t.Kind, t.Bid, t.Ask = eventsv1.TickKind_TICK_KIND_QUOTE, text(price*1.001), text(price*0.999)
	case 10:
		t.Kind, t.Price, t.Size = eventsv1.TickKind_TICK_KIND_TRADE, "NaN", "1"
	}
	return t
}

// folded is when a raw record that came into the log at a second is folded.
func (s *scenario) folded(partition int32, offset int64) float64 {
	at := s.written[partition][offset]
	for _, stuck := range s.stuck[partition] {
		if stuck.holds(at) {
			at = stuck.to
		}
	}
	return at + 0.01*float64(partition)
}

// ticks is one partition of ticks.v1 as the folds of all raw partitions write it side by side.
func (s *scenario) ticks(partition int32, resolved [scenarioPartitions]memoryLog) []*kgo.Record {
	var all []*kgo.Record
	at := place{schemas.TopicTicks, partition}
	for _, log := range resolved {
		all = append(all, log[at]...)
	}
	slices.SortStableFunc(all, func(a, b *kgo.Record) int {
		ma, mb := decode(a).GetMark(), decode(b).GetMark()
		return cmp.Compare(s.folded(ma.Partition, ma.Offset), s.folded(mb.Partition, mb.Offset))
	})
	log := memoryLog{}
	for _, rec := range all {
		log.append(rec)
	}
	return log[at]
}
