package schemas

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// FiatSource is what a currency costs by one source.
type FiatSource struct {
	Source string
	// Rate is units of the currency for one US dollar.
	Rate float64
	// Date is the day it holds for, ISO 8601.
	Date string
	// Time is when the source set it, or was last read with it; of a daily rate the beginning of its day. Unix nanoseconds.
	Time int64
	// Daily rates are fixed once a working day.
	Daily bool
	// Providers are whom the source blended it from, if it names them.
	Providers []string
	// Reason says why it did not count, empty if it did: a FiatStale, FiatOutlier or FiatRepeats.
	Reason string
}

// Why the rate of a source does not count.
const (
	FiatStale   = "stale"   // too old
	FiatOutlier = "outlier" // more than half of the first median away from it
	FiatRepeats = "repeats" // blended from nothing but sources that count themselves
)

// FiatRate is what a currency costs, blended from the sources.
type FiatRate struct {
	Code string
	// Rate is units of the currency for one US dollar.
	Rate float64
	// Time is the newest of the sources that count.
	Time int64
	// Stale means that no source counts: the rate is the newest that was published.
	Stale bool
	// Sources in alphabetical order.
	Sources []FiatSource
}

// FiatReading says when a source was last read and how often it is, both as Unix nanoseconds; 0 is not known.
type FiatReading struct{ Read, Interval int64 }

// fiatInterval is how often a source that sets rates within a day is taken to be read if nothing says it.
const fiatInterval = int64(15 * time.Minute)

// BlendFiat makes one rate a currency of the newest fixings of each source, at a time (Unix nanoseconds).
//
// Each source has one vote a currency: its rate for one US dollar, or what its rates of one and the same day for
// another base make of it. A daily fixing counts for FixingDays after its own; a rate set within a day for three
// intervals of its source after it was set, or was last read unchanged on the day of the reading or the day before.
// A blend of nothing but sources that vote themselves does not vote. The rate is the median of the votes after those
// more than half of the first median away were left out, the mean of the middle two where their number is even: the
// rule of prices. Where no vote is left, since none is fresh or two contradict each other, the newest is served as stale.
// The US dollar is not among the currencies.
//
// Fixings may come in any order; of two of one source, base and quote the one of the later day and time counts.
func BlendFiat(fixings []*eventsv1.Fixing, receivedAt map[string]FiatReading, now int64) []FiatRate {
	bySource := map[string]map[[2]string]*eventsv1.Fixing{}
	for _, f := range fixings {
		pairs := bySource[f.Source]
		if pairs == nil {
			pairs = map[[2]string]*eventsv1.Fixing{}
			bySource[f.Source] = pairs
		}
		pair := [2]string{f.Base, f.Quote}
		if before := pairs[pair]; before == nil || cmp.Or(strings.Compare(before.Date, f.Date), cmp.Compare(before.EventTime, f.EventTime)) <= 0 {
			pairs[pair] = f
		}
	}
	votes := map[string][]FiatSource{}
	for source, pairs := range bySource {
		for code, vote := range perDollar(pairs) {
			vote.Source = source
			vote.judgeAge(receivedAt[source], now)
			votes[code] = append(votes[code], vote)
		}
	}
	rates := make([]FiatRate, 0, len(votes))
	for code, sources := range votes {
		rates = append(rates, blendOne(code, sources))
	}
	slices.SortFunc(rates, func(a, b FiatRate) int { return strings.Compare(a.Code, b.Code) })
	return rates
}

// perDollar finds what one US dollar costs by a source's pairs, by currency: as they are, inverted, or by way of
// the first base that has both of the same day.
func perDollar(pairs map[[2]string]*eventsv1.Fixing) map[string]FiatSource {
	found := map[string]FiatSource{}
	add := func(code string, rate float64, f *eventsv1.Fixing, at int64) {
		if _, known := found[code]; known || code == USD || !(rate > 0) || math.IsInf(rate, 0) {
			return
		}
		vote := FiatSource{Rate: rate, Date: f.Date, Time: at, Daily: at == 0, Providers: f.Providers}
		if day, err := time.Parse(time.DateOnly, f.Date); err == nil && vote.Daily {
			vote.Time = day.UnixNano()
		}
		found[code] = vote
	}
	ordered := slices.SortedFunc(maps.Keys(pairs), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, pair := range ordered {
		if pair[0] == USD {
			add(pair[1], Float(pairs[pair].Rate), pairs[pair], pairs[pair].EventTime)
		}
	}
	for _, pair := range ordered {
		if pair[1] == USD {
			add(pair[0], 1/Float(pairs[pair].Rate), pairs[pair], pairs[pair].EventTime)
		}
	}
	for _, pair := range ordered {
		f, dollar := pairs[pair], pairs[[2]string{pair[0], USD}]
		if dollar != nil && dollar.Date == f.Date {
			add(pair[1], Float(f.Rate)/Float(dollar.Rate), f, min(f.EventTime, dollar.EventTime))
		}
	}
	return found
}

// judgeAge reports whether a vote is too old.
func (v *FiatSource) judgeAge(receivedAt FiatReading, now int64) {
	if v.Daily {
		if now-v.Time > FixingDays*int64(day) {
			v.Reason = FiatStale
		}
		return
	}
	// A rate that has not changed is not published again within its day, and is as good as when it was last read.
	if set, err := time.Parse(time.DateOnly, v.Date); err == nil && receivedAt.Read-set.UnixNano() < int64(2*day) {
		v.Time = max(v.Time, receivedAt.Read)
	}
	if now-v.Time > 3*cmp.Or(receivedAt.Interval, fiatInterval) {
		v.Reason = FiatStale
	}
}

// blendOne makes the rate of a currency from its votes.
func blendOne(code string, sources []FiatSource) FiatRate {
	slices.SortFunc(sources, func(a, b FiatSource) int { return strings.Compare(a.Source, b.Source) })
	rate := FiatRate{Code: code, Sources: sources}
	leaveOutRepeats(sources)
	votes := countingRates(sources)
	if len(votes) > 0 {
		first := median(votes)
		for i := range sources {
			if s := &sources[i]; s.Reason == "" && math.Abs(s.Rate-first) > first/2 {
				s.Reason = FiatOutlier
			}
		}
		votes = countingRates(sources)
	}
	if rate.Stale = len(votes) == 0; rate.Stale {
		newest := slices.MaxFunc(sources, func(a, b FiatSource) int {
			return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(b.Source, a.Source))
		})
		rate.Rate, rate.Time = newest.Rate, newest.Time
		return rate
	}
	rate.Rate = median(votes)
	for _, s := range sources {
		if s.Reason == "" {
			rate.Time = max(rate.Time, s.Time)
		}
	}
	return rate
}

// leaveOutRepeats takes the vote from blends of nothing but sources that vote themselves.
func leaveOutRepeats(sources []FiatSource) {
	votes := map[string]bool{}
	for _, s := range sources {
		votes[s.Source] = s.Reason == "" && len(s.Providers) == 0
	}
	for i := range sources {
		s := &sources[i]
		if s.Reason == "" && len(s.Providers) > 0 && !slices.ContainsFunc(s.Providers, func(p string) bool { return !votes[strings.ToLower(p)] }) {
			s.Reason = FiatRepeats
		}
	}
}

func countingRates(sources []FiatSource) []float64 {
	var rates []float64
	for _, s := range sources {
		if s.Reason == "" {
			rates = append(rates, s.Rate)
		}
	}
	return rates
}
