package read

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history"
)

// rateRepeats is how far before a moment the last row of a rate that holds lies: it is written once an hour at least, in
// the first minute after it.
const rateRepeats = time.Hour + 2*time.Minute

// rateHolds is how many intervals of its source a rate holds without being reported again.
const rateHolds = 3

// sampledRates reads series in steps shorter than an hour: at the end of each step all rates that hold then; at q.To in
// one that goes beyond.
func (r Reader) sampledRates(ctx context.Context, q RateQuery) ([]RateSeries, error) {
	if err := checkSeries(q.From, q.To, q.Step); err != nil {
		return nil, fmt.Errorf("reading series of rates: %w", err)
	}
	where, args := q.conditions()
	entries, err := history.Select(ctx, r.store, "SELECT "+entryColumns+" FROM rates FINAL WHERE "+where+` AND time > ? AND time <= ?
		ORDER BY time, source, category, pool`, append(args, q.From.Add(-rateRepeats), q.To), scanEntry)
	if err != nil {
		return nil, fmt.Errorf("reading series of rates: %w", err)
	}
	type key struct{ source, category, pool string }
	last := map[key]*eventsv1.RateEntry{}
	var order []key // sums of floats depend on it, and must not on how far back the series reaches
	b := newSeriesBuilder()
	next := 0
	for start := ceilTo(q.From, q.Step); start.Before(q.To); start = start.Add(q.Step) {
		end := min(start.Add(q.Step).UnixNano(), q.To.UnixNano())
		for ; next < len(entries) && entries[next].Time <= end; next++ {
			k := key{entries[next].Source, entries[next].Category, entries[next].Pool}
			if last[k] == nil {
				i, _ := slices.BinarySearchFunc(order, k, func(a, b key) int {
					return cmp.Or(strings.Compare(a.source, b.source), strings.Compare(a.category, b.category), strings.Compare(a.pool, b.pool))
				})
				order = slices.Insert(order, i, k)
			}
			last[k] = entries[next]
		}
		means := map[[3]string]*providerMean{}
		var providers [][3]string
		for _, k := range order {
			e := last[k]
			if e.Ended || end-e.Heard > rateHolds*e.Said.Interval || e.Time < end-int64(rateRepeats) {
				continue
			}
			of := [3]string{e.Provider, e.CoinId, e.Category}
			if means[of] == nil {
				means[of] = &providerMean{series: RateSeries{Provider: e.Provider, CoinID: e.CoinId, Symbol: e.Symbol, Category: e.Category}}
				providers = append(providers, of)
			}
			means[of].add(e)
		}
		for _, of := range providers {
			b.add(means[of].series, means[of].point(start))
		}
	}
	all := b.list()
	for i := range all {
		if points := all[i].Points; q.Limit > 0 && len(points) > q.Limit {
			all[i].Points = points[len(points)-q.Limit:]
		}
	}
	return all, nil
}

// providerMean is a provider's rates of a coin at one moment.
type providerMean struct {
	series             RateSeries
	sum, weighted, tvl float64
	hasTVL             bool // a TVL
	n                  int
}

func (m *providerMean) add(e *eventsv1.RateEntry) {
	m.series.Simulated = m.series.Simulated || e.Simulated
	m.sum += e.Apy
	m.n++
	if e.TvlUsd != nil {
		m.hasTVL = true
		m.tvl += *e.TvlUsd
		m.weighted += float64(e.Apy * *e.TvlUsd)
	}
}

func (m *providerMean) point(start time.Time) RateSeriesPoint {
	mean := m.sum / float64(m.n)
	if m.tvl > 0 {
		mean = m.weighted / m.tvl
	}
	p := RateSeriesPoint{Start: start, Open: mean, High: mean, Low: mean, Close: mean, Mean: mean, Rates: m.n}
	if m.hasTVL {
		p.TVL = &m.tvl
	}
	return p
}
