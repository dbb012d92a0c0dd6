package backfill

import (
	"slices"
	"time"

	"github.com/marketlog/marketlog/producers/adapter"
)

const day = 24 * time.Hour

// Reach is how far back candles of an interval are read.
type Reach struct {
	Interval time.Duration
	// Back is counted from now; 0 is as far as asked for.
	Back time.Duration
}

// Reaches is what is read, the longest interval first, so that every chart has something soon.
var Reaches = []Reach{{day, 0}, {time.Hour, 365 * day}, {time.Minute, 30 * day}}

// settle is how long after its end a candle counts as closed at the venue.
const settle = time.Minute

// Range is a time of one market's candles: those of Interval that start in [From, To). Of a polled source it is the time of
// a series' values, and Market names the series.
type Range struct {
	Market   adapter.Instrument
	Interval time.Duration
	From, To time.Time
}

// CallsOf is how many calls a range takes that was not cut yet.
func (p Plan) CallsOf(r Range) int64 {
	if p.Rows == 0 {
		return 1
	}
	return (r.Candles() + int64(p.Rows) - 1) / int64(p.Rows)
}

// Candles is how many fit into the range.
func (r Range) Candles() int64 { return int64(r.To.Sub(r.From) / r.Interval) }

// Absence is a range that the venue does not have, and why.
type Absence struct {
	Range
	Reason string
}

// Plan is what is left to do.
type Plan struct {
	// Source is the venue or the polled source; Markets is how many markets or series were looked at.
	Source  string
	Markets int
	// Rows is how many candles or values an answer holds at most; 0 is any number.
	Rows int
	// Calls are the ranges to ask for, each within what one answer holds, in the order of asking.
	Calls []Range
	// Missing is the same before it was cut into calls.
	Missing []Range
	// Unavailable is what the venue no longer has, or never had.
	Unavailable []Absence
	// LagLimiter is how many calls may be made a second.
	Pace float64
}

// Duration is how long the calls take at their pace.
func (p Plan) Duration() time.Duration {
	return time.Duration(float64(len(p.Calls)) / p.Pace * float64(time.Second))
}

// plan compares what is wanted with what the log holds. All times it speaks of are whole intervals.
func (j *Job) plan(known State) Plan {
	p := Plan{Source: j.Venue.Slug, Markets: len(j.Markets), Rows: j.Venue.History.Rows, Pace: j.Pace}
	now := j.Clock.Now()
	reaches := j.Reaches
	if reaches == nil {
		reaches = Reaches
	}
	// minutes are those of a market that are read, or will be.
	minutes := func(m adapter.Instrument) (spans []span) {
		for _, reach := range reaches {
			if reach.Interval == time.Minute {
				s := j.wanted(now, reach)
				spans = append(spans, span{max(s.from, j.oldest(now, reach.Interval)), s.to})
			}
		}
		if one := known[j.key(m, time.Minute)]; one != nil {
			spans = append(spans, one.read...)
		}
		return spans
	}
	for _, reach := range reaches {
		wanted := j.wanted(now, reach)
		oldest := j.oldest(now, reach.Interval)
		for _, m := range j.Markets {
			var read, empty []span
			if one := known[j.key(m, reach.Interval)]; one != nil {
				read, empty = one.read, one.empty
			}
			absent := func(spans []span, reason string) {
				for _, s := range spans {
					p.Unavailable = append(p.Unavailable, Absence{newRange(m, reach.Interval, s), reason})
				}
			}
			absent(subtract(span{wanted.from, min(wanted.to, oldest)}, read), "the venue no longer has it")
			absent(intersect(wanted, empty), "read, and the venue had nothing")
			for _, s := range subtract(span{max(wanted.from, oldest), wanted.to}, read) {
				if j.Folded && reach.Interval > time.Minute && len(subtract(s, minutes(m))) == 0 {
					continue
				}
				p.Missing = append(p.Missing, newRange(m, reach.Interval, s))
				step := int64(reach.Interval) * int64(j.Venue.History.Rows)
				for from := s.from; from < s.to; from += step {
					p.Calls = append(p.Calls, newRange(m, reach.Interval, span{from, min(from+step, s.to)}))
				}
			}
		}
	}
	p.fit(j.Markets, j.MaxCalls)
	return p
}

// fit leaves only the first markets in, as many as can be read to their ends in so many calls, and reads one after the
// other: whatever ends it early has read most of them whole. 0 is any number.
func (p *Plan) fit(markets []adapter.Instrument, calls int) {
	if calls == 0 {
		return
	}
	needs := map[string]int{}
	for _, c := range p.Calls {
		needs[c.Market.Symbol]++
	}
	place := map[string]int{}
	for i, m := range markets {
		if calls -= needs[m.Symbol]; calls < 0 {
			break
		}
		place[m.Symbol] = i
	}
	beyond := func(r Range) bool { _, fits := place[r.Market.Symbol]; return !fits }
	p.Calls, p.Missing = slices.DeleteFunc(p.Calls, beyond), slices.DeleteFunc(p.Missing, beyond)
	slices.SortStableFunc(p.Calls, func(a, b Range) int { return place[a.Market.Symbol] - place[b.Market.Symbol] })
}

// wanted is the time whose candles of an interval are wanted.
func (j *Job) wanted(now time.Time, reach Reach) span {
	step := int64(reach.Interval)
	wanted := span{ceil(j.From, reach.Interval), min(j.To.UnixNano(), now.Add(-settle).UnixNano()) / step * step}
	if reach.Back > 0 {
		wanted.from = max(wanted.from, ceil(now.Add(-reach.Back), reach.Interval))
	}
	return wanted
}

// oldest is the start of the oldest candle that the venue still has, in Unix nanoseconds.
func (j *Job) oldest(now time.Time, interval time.Duration) int64 {
	if j.Venue.History.Newest == 0 {
		return 0
	}
	return ceil(now.Add(-interval*time.Duration(j.Venue.History.Newest)), interval)
}

func (j *Job) key(m adapter.Instrument, interval time.Duration) seriesKey {
	return seriesKey{j.Producer, j.Venue.Slug, m.Symbol, interval}
}

func newRange(m adapter.Instrument, interval time.Duration, s span) Range {
	return Range{m, interval, time.Unix(0, s.from).UTC(), time.Unix(0, s.to).UTC()}
}

func ceil(t time.Time, interval time.Duration) int64 {
	step := int64(interval)
	return (t.UnixNano() + step - 1) / step * step
}
