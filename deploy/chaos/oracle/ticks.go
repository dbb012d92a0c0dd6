package oracle

import (
	"fmt"
	"math/big"
	"sort"
	"strings"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Event is what must have become of one event id.
type Event struct {
	ID    string // 16 bytes
	Venue string
	// Reason is why it is refused; else it is a tick.
	Reason string
	Coin   string
	Trade  bool
}

// Events works out from ticks.raw.v1 what must have become of each event id: the first record with an
// id decides, later ones change nothing.
func Events(raw map[int32][]Record) (map[string]Event, error) {
	events := map[string]Event{}
	for p, records := range raw {
		for _, r := range records {
			rec := &eventsv1.RawRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				return nil, fmt.Errorf("decoding ticks.raw.v1/%d at %d: %w", p, r.Offset, err)
			}
			t := rec.GetTick()
			if t == nil {
				continue
			}
			id := string(t.EventId)
			if _, known := events[id]; known {
				continue
			}
			events[id] = Event{
				ID: id, Venue: t.Venue, Reason: refusal(t), Coin: coins[t.Base].id,
				Trade: t.Kind == eventsv1.TickKind_TICK_KIND_TRADE,
			}
		}
	}
	return events, nil
}

// refusal is why a tick must not become one; empty if it may.
func refusal(t *eventsv1.Tick) string {
	trade := t.Kind == eventsv1.TickKind_TICK_KIND_TRADE
	age := time.Duration(t.IngestTime - t.EventTime)
	if t.EventTime != 0 && age < -10*time.Second {
		return "future"
	}
	if t.EventTime != 0 && trade && age > 10*time.Minute {
		return "stale_source"
	}
	prices := []string{t.Bid, t.Ask, t.Last}
	if trade {
		prices = []string{t.Price}
	}
	for _, price := range prices {
		if price == "" && !trade {
			continue
		}
		if reason := refuseNumber(price, "1e-18", "1e12"); reason != "" {
			return reason
		}
	}
	if trade {
		return refuseNumber(t.Size, "", "1e18")
	}
	return ""
}

func refuseNumber(text, least, most string) string {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return "not_a_number"
	}
	if n.Sign() <= 0 {
		return "non_positive"
	}
	if !new(big.Rat).Mul(n, rat("1e18")).IsInt() {
		return "precision"
	}
	if least != "" && n.Cmp(rat(least)) < 0 || n.Cmp(rat(most)) > 0 {
		return "absurd"
	}
	return ""
}

func rat(text string) *big.Rat {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		panic("not a number: " + text)
	}
	return n
}

// Joined checks the records of ticks.v1 against what caused them and what they were joined with:
// each names its coin and its quote, and repeats the rate that quotes.v1 holds at the offset it names,
// which was at most a minute old by the log's now. It returns what is wrong.
func Joined(ticks map[int32][]Record, quotes []Record) ([]string, error) {
	rates := map[int64]*eventsv1.QuoteRate{}
	for _, r := range quotes {
		rec := &eventsv1.QuoteRecord{}
		if err := rec.UnmarshalVT(r.Value); err != nil {
			return nil, fmt.Errorf("decoding quotes.v1 at %d: %w", r.Offset, err)
		}
		rates[r.Offset] = rec.GetRate()
	}
	var wrong []string
	for _, p := range partitionsOf(ticks) {
		// A pulse records the now of those that joined, each for its own partition, once a second of it.
		nows := map[int32]int64{}
		for _, r := range ticks[p] {
			rec := &eventsv1.ResolvedRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				return nil, fmt.Errorf("decoding ticks.v1/%d at %d: %w", p, r.Offset, err)
			}
			if pulse := rec.GetPulse(); pulse != nil {
				nows[rec.Mark.Partition] = pulse.Now
			}
			if t := rec.GetTick(); t != nil {
				if why := joinedWrongly(t, rates, nows[rec.Mark.Partition]); why != "" {
					wrong = append(wrong, fmt.Sprintf("ticks.v1/%d at %d: %s", p, r.Offset, why))
				}
			}
		}
	}
	return wrong, nil
}

func joinedWrongly(t *eventsv1.ResolvedTick, rates map[int64]*eventsv1.QuoteRate, now int64) string {
	quote := quoteID(t.Tick.Quote)
	switch {
	case t.CoinId != coins[t.Tick.Base].id:
		return fmt.Sprintf("coin %q for base %s", t.CoinId, t.Tick.Base)
	case t.QuoteId != quote:
		return fmt.Sprintf("quote %q for %s", t.QuoteId, t.Tick.Quote)
	case quote == "USD" && t.Rate == 1, t.Flags&flagNoRate != 0 && t.Rate == 0:
		return ""
	}
	rate := rates[t.RateOffset]
	switch {
	case rate == nil || rate.QuoteId != quote || rate.Rate != t.Rate || rate.Time != t.RateTime:
		return fmt.Sprintf("rate %v of %s at %d, and quotes.v1 holds %v", t.Rate, quote, t.RateOffset, rate)
	case now-t.RateTime > int64(time.Minute):
		return fmt.Sprintf("a rate of %s ago", time.Duration(now-t.RateTime))
	}
	return ""
}

func partitionsOf[T any](topic map[int32]T) []int32 {
	var list []int32
	for p := range topic {
		list = append(list, p)
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return list
}

// Flags of a resolved tick, as the record's documentation lists them.
const (
	flagCrossed = 1 << iota
	flagLate
	flagUnmapped
	flagNoRate
	flagNotSpot
	flagRepeat
)

// Rows counts the rows that ticks.v1 must have made, by coin, kind and flags; of duplicate records the first
// counts.
func Rows(ticks map[int32][]Record) (map[string]int, error) {
	counts := map[string]int{}
	for _, p := range partitionsOf(ticks) {
		resolved, err := admitted(ticks[p])
		if err != nil {
			return nil, err
		}
		for _, r := range resolved {
			if t := r.rec.GetTick(); t != nil && t.Flags&flagRepeat == 0 {
				counts[rowKey(t)]++
			}
		}
	}
	return counts, nil
}

func rowKey(t *eventsv1.ResolvedTick) string {
	kind := map[eventsv1.TickKind]string{1: "trade", 2: "quote", 3: "ticker"}[t.Tick.Kind]
	var flags []string
	for i, name := range []string{"crossed", "late", "unmapped", "no_rate", "not_spot"} {
		if t.Flags&(1<<i) != 0 {
			flags = append(flags, name)
		}
	}
	return t.CoinId + " " + kind + " " + strings.Join(flags, ",")
}

// resolved is one record of ticks.v1 that counts.
type resolved struct {
	offset int64
	rec    *eventsv1.ResolvedRecord
}

// admitted drops the records at or below the last mark of their origin: the duplicates that a restarted
// writer left.
func admitted(records []Record) ([]resolved, error) {
	type mark struct {
		offset int64
		index  uint32
	}
	last := map[int32]mark{}
	var list []resolved
	for _, r := range records {
		rec := &eventsv1.ResolvedRecord{}
		if err := rec.UnmarshalVT(r.Value); err != nil {
			return nil, fmt.Errorf("decoding ticks.v1 at %d: %w", r.Offset, err)
		}
		if rec.GetControl() != nil {
			continue // a replay's word to the sinks: no input caused it
		}
		if rec.Mark == nil {
			return nil, fmt.Errorf("the record of ticks.v1 at %d has no mark", r.Offset)
		}
		before, known := last[rec.Mark.Partition]
		now := mark{rec.Mark.Offset, rec.Mark.Index}
		if known && (now.offset < before.offset || now.offset == before.offset && now.index <= before.index) {
			continue
		}
		last[rec.Mark.Partition] = now
		list = append(list, resolved{r.Offset, rec})
	}
	return list, nil
}
