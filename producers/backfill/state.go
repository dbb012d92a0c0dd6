package backfill

import (
	"context"
	"fmt"
	"slices"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// span is [from, to) in Unix nanoseconds.
type span struct{ from, to int64 }

type seriesKey struct {
	producer, venue, symbol string
	interval                time.Duration
}

// series is what the log holds of one market's candles of one interval.
type series struct {
	read []span
	// empty are the ranges read in which the venue had nothing.
	empty []span
	// loose are the starts of candles in no range that was read to its end.
	loose map[int64]bool
}

// State is what the log holds of all venues. Safe for concurrent use while it is only read.
type State map[seriesKey]*series

// ReadState reads all of the log.
func ReadState(ctx context.Context, log Log) (State, error) {
	known := State{}
	err := log.Read(ctx, func(rec *eventsv1.BackfillRecord) error {
		known.apply(rec)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading earlier backfills: %w", err)
	}
	return known, nil
}

// Markets are the symbols with any backfilled range of a producer, by venue.
func (s State) Markets(producer func(venue string) string) map[string]map[string]bool {
	markets := map[string]map[string]bool{}
	for k, one := range s {
		if len(one.read) == 0 || k.producer != producer(k.venue) {
			continue
		}
		if markets[k.venue] == nil {
			markets[k.venue] = map[string]bool{}
		}
		markets[k.venue][k.symbol] = true
	}
	return markets
}

func (s State) series(k seriesKey) *series {
	if s[k] == nil {
		s[k] = &series{loose: map[int64]bool{}}
	}
	return s[k]
}

// apply takes over a record; those of a series come in their order.
func (s State) apply(rec *eventsv1.BackfillRecord) {
	switch {
	case rec.GetCandle() != nil:
		c := rec.GetCandle()
		if c.Origin != "" {
			return // a file's: it says nothing of what was asked of the venue
		}
		k := seriesKey{rec.Producer, c.Venue, c.Symbol, time.Duration(c.Interval) * time.Second}
		s.series(k).loose[c.Start] = true
	case rec.GetRange() != nil:
		r := rec.GetRange()
		one := s.series(seriesKey{rec.Producer, r.Venue, r.Symbol, time.Duration(r.Interval) * time.Second})
		read := span{r.FromTime, r.ToTime}
		one.read = append(one.read, read)
		if r.Rows == 0 {
			one.empty = append(one.empty, read)
		}
		for start := range one.loose {
			if read.from <= start && start < read.to {
				delete(one.loose, start)
			}
		}
	}
}

// merge sorts spans and joins those that meet.
func merge(spans []span) []span {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return int(min(max(a.from-b.from, -1), 1)) })
	var merged []span
	for _, s := range spans {
		if n := len(merged); n > 0 && s.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, s.to)
		} else if s.from < s.to {
			merged = append(merged, s)
		}
	}
	return merged
}

// subtract returns what of whole is in none of the spans.
func subtract(whole span, spans []span) []span {
	var rest []span
	for _, s := range merge(spans) {
		if s.to <= whole.from || s.from >= whole.to {
			continue
		}
		if whole.from < s.from {
			rest = append(rest, span{whole.from, s.from})
		}
		whole.from = s.to
	}
	if whole.from < whole.to {
		rest = append(rest, whole)
	}
	return rest
}

// intersect returns what of whole is in one of the spans.
func intersect(whole span, spans []span) []span {
	var inside []span
	for _, s := range merge(spans) {
		if s = (span{max(s.from, whole.from), min(s.to, whole.to)}); s.from < s.to {
			inside = append(inside, s)
		}
	}
	return inside
}
