package oracle

import (
	"fmt"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Reference is what reference.raw.v1 holds, by kinds and in its order.
type Reference struct {
	Fixings   []*eventsv1.Fixing
	Fetches   []*eventsv1.Fetch
	Notices   []*eventsv1.SourceNotice
	Coins     []*eventsv1.Coin
	Indexes   []*eventsv1.FearGreed
	Overrides []*eventsv1.SymbolOverride
}

// ReadReference sorts the records of reference.raw.v1.
func ReadReference(records []Record) (Reference, error) {
	var reference Reference
	for _, r := range records {
		rec := &eventsv1.ReferenceRecord{}
		if err := rec.UnmarshalVT(r.Value); err != nil {
			return reference, fmt.Errorf("decoding the record %d: %w", r.Offset, err)
		}
		switch body := rec.Body.(type) {
		case *eventsv1.ReferenceRecord_Fixing:
			reference.Fixings = append(reference.Fixings, body.Fixing)
		case *eventsv1.ReferenceRecord_Fetch:
			reference.Fetches = append(reference.Fetches, body.Fetch)
		case *eventsv1.ReferenceRecord_Notice:
			reference.Notices = append(reference.Notices, body.Notice)
		case *eventsv1.ReferenceRecord_Coin:
			reference.Coins = append(reference.Coins, body.Coin)
		case *eventsv1.ReferenceRecord_FearGreed:
			reference.Indexes = append(reference.Indexes, body.FearGreed)
		case *eventsv1.ReferenceRecord_Override:
			reference.Overrides = append(reference.Overrides, body.Override)
		}
	}
	return reference, nil
}

// Derived is what the topics of ticks, prices and candles hold, each record that its mark admits once.
type Derived struct {
	Ticks   []*eventsv1.ResolvedTick
	Prices  []*eventsv1.Price
	Candles []*eventsv1.Candle
}

// ReadDerived sorts the records of ticks.v1, prices.v1 and candles.v1. Of ticks and prices only the whole days of the last seven
// before the newest tick are kept.
func ReadDerived(ticks, prices, candles map[int32][]Record) (Derived, error) {
	var d Derived
	for _, p := range partitionsOf(ticks) {
		resolved, err := admitted(ticks[p])
		if err != nil {
			return d, err
		}
		for _, r := range resolved {
			if t := r.rec.GetTick(); t != nil && t.Flags&flagRepeat == 0 {
				d.Ticks = append(d.Ticks, t)
			}
		}
	}
	for _, p := range partitionsOf(prices) {
		err := eachMarked(prices[p], func() marked { return &eventsv1.PriceRecord{} }, func(rec marked) {
			if price := rec.(*eventsv1.PriceRecord).GetPrice(); price != nil {
				d.Prices = append(d.Prices, price)
			}
		})
		if err != nil {
			return d, fmt.Errorf("reading prices.v1/%d: %w", p, err)
		}
	}
	for _, p := range partitionsOf(candles) {
		err := eachMarked(candles[p], func() marked { return &eventsv1.CandleRecord{} }, func(rec marked) {
			if candle := rec.(*eventsv1.CandleRecord).GetCandle(); candle != nil {
				d.Candles = append(d.Candles, candle)
			}
		})
		if err != nil {
			return d, fmt.Errorf("reading candles.v1/%d: %w", p, err)
		}
	}
	var end int64
	for _, t := range d.Ticks {
		end = max(end, t.Tick.IngestTime)
	}
	from := (end - 7*day) / day * day
	d.Ticks = since(d.Ticks, from, func(t *eventsv1.ResolvedTick) int64 { return t.Tick.IngestTime })
	d.Prices = since(d.Prices, from, (*eventsv1.Price).GetTime)
	return d, nil
}

func since[T any](list []T, from int64, at func(T) int64) []T {
	var kept []T
	for _, v := range list {
		if at(v) >= from {
			kept = append(kept, v)
		}
	}
	return kept
}

// marked is a record that says which input caused it.
type marked interface {
	UnmarshalVT([]byte) error
	GetMark() *eventsv1.Mark
}

// eachMarked hands over the records of a partition that lie after all before of the same input.
func eachMarked(records []Record, empty func() marked, use func(marked)) error {
	last := map[int32]*eventsv1.Mark{}
	for _, r := range records {
		rec := empty()
		if err := rec.UnmarshalVT(r.Value); err != nil {
			return fmt.Errorf("decoding the record %d: %w", r.Offset, err)
		}
		m := rec.GetMark()
		if m == nil { // a pulse of a fold that has read nothing yet
			use(rec)
			continue
		}
		if before := last[m.GetPartition()]; before != nil && (m.Offset < before.Offset || m.Offset == before.Offset && m.Index <= before.Index) {
			continue
		}
		last[m.GetPartition()] = m
		use(rec)
	}
	return nil
}
