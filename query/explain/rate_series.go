package explain

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	rateSeriesForm, rateChartForm = "rate-series", "rate-chart"
	// sampledFor is how far before a moment the last row of a rate that holds lies.
	sampledFor = 62 * time.Minute
)

// rateSeriesFields are the numbers of a point of a series of rates.
var rateSeriesFields = []string{"open", "high", "low", "close"}

// rateLine is a point of the series of rates of providers of a coin in a category: of one, or of all where provider is empty.
type rateLine struct {
	coinID, category, provider, interval string
	step                                 time.Duration
	start                                time.Time
}

func (l rateLine) number(provider, field string) string {
	return strings.Join([]string{rateSeriesForm, provider, l.coinID, l.category, l.interval, l.start.Format(time.RFC3339), field}, "/")
}

// providerPoint is a provider's point: as it is served, and made again with what it is made of; note says why it could not be.
type providerPoint struct {
	served views.RateSeriesPoint
	again  *views.RateSeriesPoint
	inputs []*Node
	note   string
}

// valueOf is a number of a point.
func rateSeriesValue(p views.RateSeriesPoint, field string) float64 {
	switch field {
	case "open":
		return p.Open
	case "high":
		return p.High
	case "low":
		return p.Low
	}
	return p.Close
}

// rateLineNamed reads the interval and its start, the fifth and sixth parts of a name, whose coin and category are known.
func (w *work) rateLineNamed(name string, parts []string, coin, category string) (l rateLine, err error) {
	interval, ok := chartIntervals[parts[4]]
	switch {
	case !slices.Contains(schemas.RateCategories, category):
		return l, w.nearField(name, parts, slices.Index(parts, category), schemas.RateCategories)
	case !ok:
		return l, w.nearField(name, parts, 4, chartIntervalNames)
	}
	l = rateLine{coinID: coin, category: category, interval: interval, step: intervals[interval]}
	if found, ok := w.snapshot.Find(coin); ok { // some coins have rates and are in no list of coins
		l.coinID = found.ID
	}
	if l.start, ok = instant(parts[5]); !ok || !l.start.Truncate(l.step).Equal(l.start) {
		return l, w.notABeginning(interval, l.step)
	}
	if back := w.now.Sub(l.start) / l.step; back > mostIntervals || l.step < time.Hour && back > mostUnclosed {
		return l, query.Invalid("number", "the start is more intervals of %s ago than charts have", interval)
	}
	return l, nil
}

// underWay means that the interval has not ended.
func (l rateLine) underWay(now time.Time) bool { return l.start.Add(l.step).After(now) }

// seriesPoint explains a number of a point of the series of a provider's rates of a coin.
func (w *work) seriesPoint(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	field := "close"
	if len(parts) == 7 {
		field = parts[6]
	}
	if !slices.Contains(rateSeriesFields, field) {
		return nil, w.nearField(name, parts, 6, rateSeriesFields)
	}
	l, err := w.rateLineNamed(name, parts, parts[2], parts[3])
	if err != nil {
		return nil, err
	}
	l.provider = parts[1]
	points, err := w.rateLine(ctx, l, field)
	if err != nil {
		return nil, err
	}
	p := points[l.provider]
	if p == nil {
		return nil, query.NotFound("there is no series of rates of %s of %s in %s with a point at %s", strings.ToValidUTF8(l.provider, "�"), strings.ToValidUTF8(l.coinID, "�"), l.category,
			l.start.Format(time.RFC3339))
	}
	return w.providerNode(l, p, field, depth), nil
}

// providerNode is a number of a provider's point.
func (w *work) providerNode(l rateLine, p *providerPoint, field string, depth int) *Node {
	n := headline(l.number(l.provider, field), known(rateSeriesValue(p.served, field)), percent, l.start.UnixNano())
	n.Method = &Method{Name: "provider-mean", Version: 1, Formula: "mean of the provider's rates by their TVL, of all alike where none has one: of their " + field + " in the interval, in steps of minutes and in the interval under way of the rates that hold"}
	if n.Note = p.note; p.again != nil {
		n.compare(known(rateSeriesValue(*p.again, field)))
	}
	if depth > 0 {
		n.Inputs = slices.Clone(p.inputs)
		n.fewer(false)
	}
	return n
}

// rateLine reads the points of providers at the start of an interval, as charts have them now, and makes them again.
func (w *work) rateLine(ctx context.Context, l rateLine, field string) (map[string]*providerPoint, error) {
	end := l.start.Add(l.step)
	switch {
	case w.past && w.asOf.Before(end):
		return nil, query.NotFound("the interval had not ended by %s, and what it was before is explained as it is now only", query.FormatTime(w.asOf.UnixNano()))
	case l.underWay(w.now) && field != "close":
		return nil, query.NotFound("the interval ends at %s: until then only the last rate in it (close) is explained", end.Format(time.RFC3339))
	}
	holds := w.ratesHold(l)
	back := int(w.now.UTC().Truncate(l.step).Sub(l.start) / l.step)
	read, err := w.RateCharts.Read(ctx, views.RateChart{CoinID: l.coinID, Category: l.category, Provider: l.provider, Step: l.step, Intervals: back + int(holds/l.step) + 2},
		w.Yields.Snapshot(), w.now)
	if err != nil {
		return nil, err
	}
	points := map[string]*providerPoint{}
	for _, s := range read.Series {
		w.simulated = w.simulated || s.Simulated
		for _, p := range s.Points {
			if p.Start.Equal(l.start) {
				points[s.Provider] = &providerPoint{served: p}
			}
		}
	}
	switch {
	case len(points) == 0:
		return points, nil
	case l.underWay(w.now):
		current := w.Yields.Current(w.now)
		err = w.heldAgain(ctx, l, points, current.Time, func(e *eventsv1.RateEntry) bool { return views.RateCounts(e, w.now.UnixNano()) })
	case l.step < time.Hour:
		err = w.heldAgain(ctx, l, points, end.UnixNano(), func(e *eventsv1.RateEntry) bool {
			return views.RateCounts(e, end.UnixNano()) && e.Time >= end.Add(-sampledFor).UnixNano()
		})
	default:
		err = w.rolledAgain(ctx, l, points, holds, field)
	}
	return points, err
}

// ratesHold is for how long rates hold that are not reported again, at the longest, by what is known of their sources now.
func (w *work) ratesHold(l rateLine) (holds time.Duration) {
	for _, e := range w.Yields.Current(w.now).Counted {
		if e.CoinId == l.coinID && e.Category == l.category {
			holds = max(holds, views.RateHolds(e))
		}
	}
	return holds
}

// heldAgain makes points again of the rates that the log has at the end of a minute, as far as they count.
func (w *work) heldAgain(ctx context.Context, l rateLine, points map[string]*providerPoint, last int64, counts func(*eventsv1.RateEntry) bool) error {
	if err := w.agedOut(ctx, schemas.TopicRates, last); err != nil {
		return err
	}
	logged, err := w.loggedRates(ctx, last)
	if err != nil {
		return err
	}
	held := map[string][]*eventsv1.RateEntry{}
	for _, of := range logged {
		e := of.entry
		p := points[e.Provider]
		if e.CoinId != l.coinID || e.Category != l.category || p == nil || !counts(e) {
			continue
		}
		held[e.Provider] = append(held[e.Provider], e)
		p.inputs = append(p.inputs, stated(rateNumber(e), &e.Apy, percent, e.Time, of.at))
		if e.TvlUsd != nil {
			p.inputs = append(p.inputs, stated("weight/"+e.Provider+"/"+e.Category+"/"+e.Pool, e.TvlUsd, usd, e.Time, of.at))
		}
	}
	for provider, p := range points {
		rates := held[provider]
		if len(rates) == 0 {
			p.note = "not computed again: no rate of it holds any more, and the last one that did stands"
			continue
		}
		mean, tvl := views.MeanRate(rates)
		p.again = &views.RateSeriesPoint{Open: mean, High: mean, Low: mean, Close: mean, TVL: tvl}
	}
	return nil
}

// rolledAgain makes points again of what the rates of providers did in an hour or a day; where none was reported in it, of the last one in which one was.
func (w *work) rolledAgain(ctx context.Context, l rateLine, points map[string]*providerPoint, holds time.Duration, field string) error {
	q := views.RateQuery{CoinIDs: []string{l.coinID}, Categories: []string{l.category}, From: l.start.Add(-l.step - holds), To: l.start.Add(time.Second), Step: l.step, Limit: mostAnswers}
	if l.provider != "" {
		q.Providers = []string{l.provider}
	}
	rolled, err := w.History.RateHistory(ctx, q) // the newest first
	if err != nil {
		return err
	}
	byProvider := map[string][]views.RatePoint{}
	for _, p := range rolled {
		if of := byProvider[p.Provider]; len(of) == 0 || of[0].Start.Equal(p.Start) {
			byProvider[p.Provider] = append(of, p)
		}
	}
	for provider, p := range points {
		pools := byProvider[provider]
		if len(pools) == 0 {
			p.note = "not computed again: nothing is kept of it that was reported before"
			continue
		}
		p.again = views.MeanOfRolled(pools)
		made := field
		if carried := !pools[0].Start.Equal(l.start); carried {
			p.again, made = &views.RateSeriesPoint{Open: p.again.Close, High: p.again.Close, Low: p.again.Close, Close: p.again.Close}, "close"
			p.note = "nothing was reported in it: the last rate before holds, of " + query.FormatTime(pools[0].Start.UnixNano())
		}
		for _, pool := range pools {
			of := pastRate{pool.Provider, pool.Category, pool.Source, pool.Pool, pool.Start, l.step}
			p.inputs = append(p.inputs, headline(of.number(made, pool.Start, l.step), rateHistoryFields[slices.Index(rateHistoryFieldNames(), made)].value(pool), percent, pool.Start.UnixNano()))
			if pool.TVL != nil {
				p.inputs = append(p.inputs, headline(of.number("tvlUsd", pool.Start, l.step), pool.TVL, usd, pool.Start.UnixNano()))
			}
		}
	}
	return nil
}
