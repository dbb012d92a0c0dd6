// Package resolve turns what venues sent into ticks of coins: it names the coin and the quote of
// each market, records the USD rate of the quote that was known at that moment, refuses what cannot
// be a price with a reason, and lets each event through once.
//
// ticks.v1 is log, not view: it records the join with quotes.v1, and prices and candles are
// replayed from there. Resolving again from raw ticks is a new generation.
package resolve

import (
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// RateFor is how long a rate of quotes.v1 counts after its second, by the log's now.
	RateFor = 60 * time.Second
	// deadPulse is how often a pulse goes to the dead letter topic: recovery finds its place there
	// without reading far, and the topic stays small.
	deadPulse = 10
)

// Rate is what one unit of a quote asset costs in USD, and where quotes.v1 reports it.
type Rate struct {
	USD float64
	// Time is the second that the rate was evaluated in, Unix nanoseconds.
	Time   int64
	Offset int64
}

// Rates holds the newest rate of each quote asset. Safe for concurrent use.
type Rates interface {
	Rate(quoteID string) (Rate, bool)
}

// Name is the consumer group.
const Name = "resolve"

// Unit is the declaration of this processor.
// Corrections nil exclude nothing, conflicts nil doubts no market.
func Unit(coins *schemas.CoinTable, overrides *schemas.SymbolOverrides, corrections *schemas.Corrections, rates Rates, conflicts *ConflictFilter) processors.Unit {
	ticks, _ := schemas.TopicNamed(schemas.TopicTicks)
	return processors.Unit{
		Name:    Name,
		Input:   schemas.TopicTicksRaw,
		Outputs: []processors.Route{{Topic: schemas.TopicTicks}, {Topic: schemas.TopicTicksRawDead}},
		New: func(int32) processors.Fold {
			return &fold{
				names: names{coins, overrides}, corrections: corrections, rates: rates, conflicts: conflicts, decisions: map[marketKey]decision{},
				partitions: ticks.Partitions, seen: processors.NewEventIDs(),
			}
		},
	}
}

type fold struct {
	names       names
	corrections *schemas.Corrections
	rates       Rates
	conflicts   *ConflictFilter
	decisions   map[marketKey]decision
	partitions  int32
	clocks      schemas.Clocks
	seen        *processors.EventIDs
	// pulsed is the last tenth of a minute in which the dead letter topic got a pulse.
	pulsed int64
}

func (f *fold) Clocks() (now, watermark int64) { return f.clocks.Now(), f.clocks.Watermark() }

func (f *fold) Apply(in processors.Input, out *processors.Outputs) error {
	if in.Written && f.passed(in.Value) {
		return nil
	}
	record, err := schemas.DecodeRecord(schemas.TopicTicksRaw, in.Value)
	if err != nil {
		f.refuse(in, nil, schemas.Undecodable, err.Error(), out)
		return nil
	}
	rec, _ := record.(*eventsv1.RawRecord)
	switch body := rec.Body.(type) {
	case *eventsv1.RawRecord_Tick:
		f.tick(in, body.Tick, out)
	case *eventsv1.RawRecord_Clock:
		f.clock(in, rec, body.Clock, out)
	case *eventsv1.RawRecord_Gap:
		key := body.Gap.Venue + "|" + body.Gap.Symbol
		out.EmitByKey(schemas.TopicTicks, f.partitions, key, body.Gap.ToTime,
			&eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Gap{Gap: body.Gap}})
	case *eventsv1.RawRecord_Control:
		for p := range f.partitions {
			out.Emit(schemas.TopicTicks, p, "", f.clocks.Now(),
				&eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Control{Control: body.Control}})
		}
	}
	return nil
}

func (f *fold) clock(in processors.Input, rec *eventsv1.RawRecord, clock *eventsv1.Clock, out *processors.Outputs) {
	second, closed := f.clocks.Now()/int64(time.Second), f.clocks.Watermark()/int64(time.Second)
	if !f.clocks.Observe(rec.Producer, rec.Epoch, clock.Time) {
		return
	}
	now := f.clocks.Now()
	if now/int64(time.Second) == second && f.clocks.Watermark()/int64(time.Second) == closed {
		return
	}
	if second == 0 {
		f.seen.Begin(now)
	}
	f.seen.Forget(now - int64(processors.WindowMemory))
	if in.Written {
		f.pulsed = now / int64(time.Second) / deadPulse
		return
	}
	for p := range f.partitions {
		out.Emit(schemas.TopicTicks, p, "", now, &eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Pulse{Pulse: f.pulse()}})
	}
	if now/int64(time.Second)/deadPulse != f.pulsed {
		f.pulsed = now / int64(time.Second) / deadPulse
		out.Emit(schemas.TopicTicksRawDead, 0, "", now, &eventsv1.DeadRecord{Pulse: f.pulse()})
	}
}

func (f *fold) pulse() *eventsv1.Pulse {
	return &eventsv1.Pulse{Now: f.clocks.Now(), Watermark: f.clocks.Watermark()}
}

// passed takes of a tick of which the log has what was resolved all that is kept of it, its id, without decoding the rest. It is false
// for what has to be decoded.
func (f *fold) passed(value []byte) bool {
	head, ok := schemas.FindTickHead(value)
	if !ok || len(head.EventID) != len(schemas.EventID{}) || f.asks(head.Venue, head.Symbol) {
		return false
	}
	f.seen.Add(schemas.EventID(head.EventID), f.clocks.Now())
	return true
}

func (f *fold) tick(in processors.Input, t *eventsv1.Tick, out *processors.Outputs) {
	if len(t.EventId) != len(schemas.EventID{}) {
		f.refuse(in, t, schemas.Undecodable, "event_id must have 16 bytes", out)
		return
	}
	id := schemas.EventID(t.EventId)
	// Remembered by log time: by ingest time, a producer with a fast clock would keep all ids that
	// came after its own from being forgotten.
	known := f.seen.Add(id, f.clocks.Now())
	if known && t.Kind == eventsv1.TickKind_TICK_KIND_TRADE || in.Written && !f.asks(t.Venue, t.Symbol) {
		return
	}
	var flags schemas.Flag
	reason, detail := schemas.CheckTick(t)
	switch {
	case known && reason != "":
		return // refused when it was new
	case known:
		flags |= schemas.Repeat
	case reason != "":
		f.refuse(in, t, reason, detail, out)
		return
	}
	resolved := &eventsv1.ResolvedTick{Tick: t}
	flags |= join(f.names, f.rates, f.clocks.Now(), f.clocks.Now(), t, resolved)
	// What an operator excludes is neither doubted nor asked of others.
	if f.corrections.Excluded(t.Venue, t.Symbol, t.IngestTime, f.clocks.Now()) {
		flags |= schemas.Excluded
	}
	// What an operator or the table says of this very venue is not doubted, but counts against others.
	if flags&schemas.Excluded == 0 && f.doubted(resolved.CoinId, t, resolved.Rate) && f.names.bySymbol(t.Venue, t.Base, f.clocks.Now()) {
		resolved.CoinId = ""
		flags |= schemas.Unmapped | schemas.Doubtful
	}
	if in.Written {
		return // it was read for what the filter remembers
	}
	if t.Kind == eventsv1.TickKind_TICK_KIND_TRADE && schemas.MinuteClosed(schemas.TradeTime(t), f.clocks.Watermark()) {
		flags |= schemas.Late
	}
	if schemas.CrossedQuote(t) {
		flags |= schemas.Crossed
	}
	resolved.Flags = uint32(flags)
	key := resolved.CoinId
	if key == "" {
		key = t.Venue + "|" + t.Base
	}
	out.EmitByKey(schemas.TopicTicks, f.partitions, key, t.IngestTime,
		&eventsv1.ResolvedRecord{Body: &eventsv1.ResolvedRecord_Tick{Tick: resolved}})
}

// names state what venues' symbols mean.
type names struct {
	coins     *schemas.CoinTable
	overrides *schemas.SymbolOverrides
}

// coin is what a venue's symbol means at a log time: an operator's override, of the venue or of all, else the table.
func (n names) coin(venue, base string, at int64) (id string, ok bool) {
	if id, overridden := n.overrides.ForVenue(venue, base, at); overridden {
		if id == schemas.NoCoin {
			return "", false
		}
		return id, true
	}
	coin, _, ok := n.coins.Resolve(venue, base)
	return coin.ID, ok
}

// bySymbol reports that nothing but its symbol identifies the coin a venue means.
func (n names) bySymbol(venue, base string, at int64) bool {
	if _, overridden := n.overrides.ForVenue(venue, base, at); overridden {
		return false
	}
	_, method, _ := n.coins.Resolve(venue, base)
	return method == schemas.ResolvedBySymbol || method == schemas.ResolvedByRank
}

// join names the coin and the quote as of the log time at, with the quote's rate of the log time now.
func join(names names, rates Rates, at, now int64, t *eventsv1.Tick, resolved *eventsv1.ResolvedTick) (flags schemas.Flag) {
	if t.Base == "" || t.Quote == "" {
		return schemas.NotSpot
	}
	if id, ok := names.coin(t.Venue, t.Base, at); ok {
		resolved.CoinId = id
	} else {
		flags |= schemas.Unmapped
	}
	quote, ok := names.overrides.Quote(names.coins, t.Venue, t.Quote, at)
	if !ok {
		return flags | schemas.NoRate
	}
	resolved.QuoteId = quote.ID
	if quote.ID == schemas.USD {
		resolved.Rate, resolved.RateTime = 1, t.IngestTime
		return flags
	}
	rate, ok := rates.Rate(quote.ID)
	if !ok || now-rate.Time > int64(RateFor) {
		return flags | schemas.NoRate
	}
	resolved.Rate, resolved.RateTime, resolved.RateOffset = rate.USD, rate.Time, rate.Offset
	return flags
}

// maxPayload is how much of a refused message is kept.
const maxPayload = 64 << 10

func (f *fold) refuse(in processors.Input, t *eventsv1.Tick, reason schemas.Reason, detail string, out *processors.Outputs) {
	if in.Written {
		return
	}
	letter := &eventsv1.DeadLetter{
		Reason:     string(reason),
		Detail:     detail,
		Payload:    in.Value[:min(len(in.Value), maxPayload)],
		Truncated:  len(in.Value) > maxPayload,
		IngestTime: f.clocks.Now(),
		Topic:      in.Topic,
		Partition:  in.Partition,
		Offset:     in.Offset,
	}
	if t != nil {
		letter.Source, letter.EventId, letter.IngestTime = t.Venue, t.EventId, t.IngestTime
	}
	out.Emit(schemas.TopicTicksRawDead, 0, letter.Source, letter.IngestTime, &eventsv1.DeadRecord{Letter: letter})
}
