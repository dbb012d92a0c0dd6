package explain

import (
	"context"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// sentimentField is a number of a segment of ranks.
type sentimentField struct {
	name, unit, formula string
	value               func(*eventsv1.Sentiment) *float64
}

func counted(n uint32) *float64 {
	f := float64(n)
	return &f
}

var sentimentFields = []sentimentField{
	{"positive", "", "number of coins of these ranks that rose", func(s *eventsv1.Sentiment) *float64 { return counted(s.Positive) }},
	{"negative", "", "number of coins of these ranks that fell", func(s *eventsv1.Sentiment) *float64 { return counted(s.Negative) }},
	{"neutral", "", "number of coins of these ranks that did not move", func(s *eventsv1.Sentiment) *float64 { return counted(s.Neutral) }},
	{"total", "", "number of coins of these ranks with a known change", func(s *eventsv1.Sentiment) *float64 { return counted(s.Total) }},
	{"moved", "", "positive + negative", func(s *eventsv1.Sentiment) *float64 { return counted(s.Positive + s.Negative) }},
	{"sentimentRatio", "", "positive / (positive + negative), 0.5 if none moved", func(s *eventsv1.Sentiment) *float64 { return &s.Ratio }},
	{"averageChange24h", percent, "mean of change24h over the coins of these ranks", func(s *eventsv1.Sentiment) *float64 { return &s.AverageChange24H }},
	{"medianChange24h", percent, "median of change24h over the coins of these ranks", func(s *eventsv1.Sentiment) *float64 { return &s.MedianChange24H }},
}

func sentimentFieldNames() []string {
	return namesOf(sentimentFields, func(f sentimentField) string { return f.name })
}

// sentiment explains a number of a segment of ranks.
func (w *work) sentiment(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	ranges := []string{schemas.AllRanks.String()}
	for _, r := range schemas.RankRanges {
		ranges = append(ranges, r.String())
	}
	i := slices.IndexFunc(sentimentFields, func(f sentimentField) bool { return f.name == parts[2] })
	switch {
	case !slices.Contains(ranges, parts[1]):
		return nil, w.nearField(name, parts, 1, ranges)
	case i < 0:
		return nil, w.nearField(name, parts, 2, sentimentFieldNames())
	}
	field := sentimentFields[i]
	m, err := w.whole(ctx)
	if err != nil {
		return nil, err
	}
	of := func(s *eventsv1.Summary) *float64 {
		for _, segment := range s.Sentiment {
			if segment.Range == parts[1] {
				return field.value(segment)
			}
		}
		return nil
	}
	n := m.node(strings.Join(parts, "/"), of(m.summary), field.unit, field.formula)
	n.compare(of(m.again))
	segment, _ := schemas.ParseRankRange(parts[1])
	for i := range m.ranked {
		if row := m.ranked[i].Row; segment.Holds(row.Rank) && row.Change24H != nil {
			n.Inputs = append(n.Inputs, headline("market/"+row.CoinId+"/change24h", row.Change24H, percent, row.Time))
		}
	}
	n.fewer(false)
	return n, w.deepen(ctx, m, n.Inputs, depth-1)
}

// fearGreed explains the index of fear and greed.
func (w *work) fearGreed(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	if len(parts) == 1 {
		return w.servedFearGreed(ctx, depth)
	}
	if parts[1] == fearGreedDays {
		return w.fearGreedDay(ctx, name, parts)
	}
	if parts[1] != "computed" {
		return nil, unknown(name, nearFearGreed(parts))
	}
	m, err := w.whole(ctx)
	if err != nil {
		return nil, err
	}
	number := strings.Join(parts, "/")
	if len(parts) == 3 {
		value := component(m.summary, parts[2])
		if value == nil {
			var names []string
			for _, c := range m.summary.GetFearGreed().GetComponents() {
				names = append(names, c.Name)
			}
			return nil, w.nearField(name, parts, 2, names)
		}
		n := m.node(number, value, "", "0 to 100; see docs/formulas")
		n.compare(component(m.again, parts[2]))
		return n, w.fearGreedInputs(ctx, m, n, depth)
	}
	value := func(s *eventsv1.Summary) *float64 {
		if s.FearGreed == nil {
			return nil
		}
		return counted(s.FearGreed.Value)
	}
	n := m.node(number, value(m.summary), "", "mean of the components that are known, rounded")
	n.compare(value(m.again))
	for _, c := range m.summary.GetFearGreed().GetComponents() {
		in := m.node(number+"/"+c.Name, &c.Value, "", "0 to 100; see docs/formulas")
		in.compare(component(m.again, c.Name))
		if depth > 1 {
			if err := w.fearGreedInputs(ctx, m, in, depth-1); err != nil {
				return nil, err
			}
		}
		n.Inputs = append(n.Inputs, in)
	}
	return n, nil
}

func nearFearGreed(parts []string) string {
	near := slices.Clone(parts)
	near[1] = "computed"
	return strings.Join(near, "/")
}

func component(s *eventsv1.Summary, name string) *float64 {
	for _, c := range s.GetFearGreed().GetComponents() {
		if c.Name == name {
			return &c.Value
		}
	}
	return nil
}

// fearGreedInputs are the changes of the largest coins, of which all components but that of volatility are made.
func (w *work) fearGreedInputs(ctx context.Context, m *wholeMarket, n *Node, depth int) error {
	for i := range m.ranked {
		if row := m.ranked[i].Row; row.Change24H != nil {
			n.Inputs = append(n.Inputs, headline("market/"+row.CoinId+"/change24h", row.Change24H, percent, row.Time))
		}
	}
	n.fewer(false)
	return w.deepen(ctx, m, n.Inputs, depth-1)
}

// fearGreedFor is how long the source's value of a day is served.
const fearGreedFor = 26 * hour

// fearGreedKept is how many days back a source's value is served where we have none of our own.
const fearGreedKept = 31

// servedFearGreed explains the index that is served: the source's while it is fresh, else our own.
func (w *work) servedFearGreed(ctx context.Context, depth int) (*Node, error) {
	at, days, summary := w.now, w.snapshot.FearGreed, w.snapshot.Summary
	if w.past {
		m, err := w.whole(ctx)
		if err != nil {
			return nil, err
		}
		at, summary = w.asOf, m.summary
		if days, err = w.publishedFearGreed(ctx, at.AddDate(0, 0, -fearGreedKept), at.Add(oneDay)); err != nil {
			return nil, err
		}
	}
	var newest *eventsv1.FearGreed
	for _, day := range days {
		if newest == nil || day.EventTime >= newest.EventTime {
			newest = day
		}
	}
	own := summary.GetFearGreed()
	if newest != nil && (own == nil || schemas.Minute(at.UnixNano())-newest.EventTime <= fearGreedFor) {
		n, err := w.sourcedFearGreed(ctx, newest)
		if err == nil {
			n.Number = "fear-greed"
			n.Method.Formula += ", for 26 hours from the beginning of its day"
		}
		return n, err
	}
	in, err := w.fearGreed(ctx, "fear-greed/computed", []string{"fear-greed", "computed"}, depth)
	if err != nil {
		return nil, err
	}
	n := headline("fear-greed", in.Value, "", summary.GetTime())
	n.Method = &Method{Name: "computed", Version: 1, Formula: "our own index: no source has a value of the last 26 hours"}
	n.compare(in.Value)
	n.Inputs = []*Node{in}
	return n, nil
}
