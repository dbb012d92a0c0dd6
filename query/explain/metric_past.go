package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// pastValue is a metric at a moment, as a source reported it afterwards.
type pastValue struct {
	metricValue
	source string
	// told is the total that it covers by the newest that its source reported, and coverage that as a share of the total that was measured last, nil where there is none.
	told     float64
	coverage *float64
}

// pastOf is how a metric follows from what a source reported of coins at a full hour: sums over the coins, or the share of one of them in percent.
type pastOf struct {
	formula string
	served  func(views.GlobalPast) float64
	share   string
	volume  bool
}

var pastMetrics = map[string]pastOf{
	"total_market_cap": {"sum of the market caps of the coins that the source reported of the hour, of each the first in it, added up from the least on", func(p views.GlobalPast) float64 { return p.TotalMarketCap }, "", false},
	"total_volume_24h": {"sum of the volumes of the coins that the source reported of the hour, of each the first in it, added up from the least on", func(p views.GlobalPast) float64 { return p.TotalVolume24h }, "", true},
	"btc_dominance":    {"100 x market cap of bitcoin / sum of the market caps of the coins that the source reported of the hour", func(p views.GlobalPast) float64 { return p.BTCDominance }, "bitcoin", false},
	"eth_dominance":    {"100 x market cap of ether / sum of the market caps of the coins that the source reported of the hour", func(p views.GlobalPast) float64 { return p.ETHDominance }, "ethereum", false},
}

// pastOfDefi is the metric of DeFi that a source reports the past of.
const pastOfDefi = "defi_tvl"

func (of seriesMetric) hasPast() bool { return of.defi == "" || of.name == pastOfDefi }

// metricPast are the values of a metric in (from, to] that a source reported afterwards, oldest first; none where something was measured in between, with which they
// are never mixed. As of an instant it fails where what was known then is not kept: the tables keep the newest report of each moment.
func (w *work) metricPast(ctx context.Context, of seriesMetric, from, to time.Time) (values []pastValue, err error) {
	if !of.hasPast() {
		return nil, nil
	}
	if of.defi != "" {
		days, err := w.History.DefiPast(ctx, from, to)
		if err != nil {
			return nil, err
		}
		for _, d := range days {
			values = append(values, pastValue{metricValue{d.Time, d.TotalTVL}, d.Source, d.Told, d.Coverage})
		}
	} else {
		hours, err := w.History.GlobalPast(ctx, from, to)
		if err != nil {
			return nil, err
		}
		for _, h := range hours {
			values = append(values, pastValue{metricValue{h.Time, pastMetrics[of.name].served(h)}, h.Source, h.Told, h.Coverage})
		}
	}
	if !w.past || len(values) == 0 {
		return values, nil
	}
	return values, query.FaultOfPast(w.reportedSince(ctx, of.defi != "", from, to), w.asOf)
}

const (
	// reportedFor is for how long before an instant something must have been reported to count as of it, as in the series.
	reportedFor   = time.Minute
	seriesInstead = "without asOf series have what is known now of the time before"
)

// reportedSince fails where a replay has changed what was measured in (from, to] since the instant asked for, or sources have reported of the past since, so that what the
// tables have may not be what they had then.
func (w *work) reportedSince(ctx context.Context, ofDefi bool, from, to time.Time) error {
	table, begin := "summaries", from
	if ofDefi {
		table, begin = "defi", time.Unix(0, 0) // where anything was measured first ends what counts
	}
	restated, err := w.History.Restated(ctx, []string{table}, nil, begin, to.Add(time.Nanosecond), w.asOf)
	if err == nil && !restated.IsZero() {
		err = &views.AgedOutError{Kept: "what no replay has changed afterwards is kept", Since: restated, Instead: seriesInstead}
	}
	if err != nil {
		return err
	}
	until := w.asOf.Add(-reportedFor)
	written, err := w.History.ReportedWritten(ctx)
	if err == nil && !written.IsZero() && written.UnixNano() < min(until.UnixNano(), w.snapshot.SourcesTime) {
		err = views.ErrHistoryBehind
	}
	if err != nil {
		return err
	}
	last, _, err := w.History.ReportedSince(ctx, ofDefi, from, to, until)
	if err == nil && !last.IsZero() {
		err = &views.AgedOutError{Kept: "what sources reported of the past until now is kept", Since: last.Add(reportedFor).UTC(), Instead: seriesInstead}
	}
	return err
}

// pastPoint explains a value that a source reported afterwards; parts are what the values of its step are made of.
func (w *work) pastPoint(ctx context.Context, of seriesMetric, is pastValue, parts []views.ReportedPart, depth int) (*Node, error) {
	n := headline(of.point(is.at), &is.value, of.unit(), is.at.UnixNano())
	n.Method = &Method{Name: "reported-afterwards", Version: 1, Formula: "what " + is.source + " reported afterwards, by its own count"}
	if of.defi == "" {
		n.Method.Formula = pastMetrics[of.name].formula
	}
	if !w.expands(depth) {
		return n, nil
	}
	parts = slices.DeleteFunc(slices.Clone(parts), func(p views.ReportedPart) bool { return p.Source != is.source || !p.At.Equal(is.at) })
	again, err := w.reportedAgain(ctx, parts)
	if err != nil {
		why := lacks(err)
		if why == "" {
			return nil, err
		}
		n.notReproduced("not computed again: " + why)
		return n, nil
	}
	n.compare(of.pastAgain(again))
	n.Note = "origin backfill: " + is.source + " reported it afterwards, nothing was measured here"
	for _, p := range again {
		n.Inputs = append(n.Inputs, p.node(pastMetrics[of.name].volume))
	}
	n.fewer(of.defi == "" && pastMetrics[of.name].share == "")
	return n, nil
}

// reportedPart is what the record of a part states of it.
type reportedPart struct {
	views.ReportedPart
	// value and volume are as the record has them; nil where it has none.
	value, volume *float64
	at            Place
}

// node is a part among inputs: the market cap or the volume of a coin, or what was locked.
func (p reportedPart) node(volume bool) *Node {
	what, value := "market_cap", p.Value
	switch {
	case volume:
		what, value = "volume_24h", p.Volume
	case p.SourceID == "":
		return stated("reported/"+p.Source+"/total_tvl", &p.Value, usd, p.Time.UnixNano(), p.at)
	}
	return stated("reported/"+p.Source+"/"+p.SourceID+"/"+what, &value, usd, p.Time.UnixNano(), p.at)
}

// pastAgain makes a value again of what records state; nil where there are none.
func (of seriesMetric) pastAgain(parts []reportedPart) *float64 {
	if len(parts) == 0 {
		return nil
	}
	if of.defi != "" {
		return parts[0].value
	}
	var caps, volumes []float64
	share := 0.0
	for _, p := range parts {
		if p.value == nil {
			return nil
		}
		caps, volumes = append(caps, *p.value), append(volumes, orZero(p.volume))
		if p.CoinID == pastMetrics[of.name].share {
			share += *p.value
		}
	}
	switch {
	case pastMetrics[of.name].volume:
		return known(sumFromLeast(volumes))
	case pastMetrics[of.name].share != "":
		return known(100 * share / sumFromLeast(caps))
	}
	return known(sumFromLeast(caps))
}

// sumFromLeast adds numbers up from the least on.
func sumFromLeast(values []float64) float64 {
	sum := 0.0
	for _, value := range slices.Sorted(slices.Values(values)) {
		sum += value
	}
	return sum
}

// nearOffsets is how far apart offsets lie at most that are read in one stretch.
const nearOffsets = 5_000

// reportedAgain reads the records of parts.
func (w *work) reportedAgain(ctx context.Context, parts []views.ReportedPart) ([]reportedPart, error) {
	places := make([]Place, len(parts))
	for i, p := range parts {
		places[i] = place(schemas.TopicReferenceRaw, p.Partition, p.Offset)
	}
	if err := w.readReported(ctx, places); err != nil {
		return nil, err
	}
	again := make([]reportedPart, len(parts))
	for i, p := range parts {
		again[i] = reportedPart{ReportedPart: p, at: place(schemas.TopicReferenceRaw, p.Partition, p.Offset)}
		again[i].read(w.reportedRecords[again[i].at])
	}
	return again, nil
}

// readReported reads records of what sources reported, those of one topic, into reportedRecords.
func (w *work) readReported(ctx context.Context, places []Place) error {
	missing := slices.DeleteFunc(slices.Clone(places), func(at Place) bool { return w.reportedRecords[at] != nil || !w.comesTo(ctx, at) })
	slices.SortFunc(missing, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	missing = slices.Compact(missing)
	for len(missing) > 0 {
		n, topic := 1, missing[0].Topic
		for n < len(missing) && missing[n].Partition == missing[0].Partition && missing[n].Offset-missing[n-1].Offset <= nearOffsets {
			n++
		}
		if w.reads++; w.reads > mostReads {
			return errTooManyReads
		}
		err := w.Log.Range(ctx, topic, missing[0].Partition, missing[0].Offset, missing[n-1].Offset, func(r *kgo.Record) error {
			at := place(topic, r.Partition, r.Offset)
			if _, wanted := slices.BinarySearchFunc(missing[:n], at.Offset, func(p Place, offset int64) int { return cmp.Compare(p.Offset, offset) }); !wanted {
				return nil
			}
			rec, err := schemas.DecodeRecord(topic, r.Value)
			if reference, is := rec.(*eventsv1.ReferenceRecord); err == nil && is {
				w.reportedRecords[at] = reference
			}
			return nil
		})
		if err != nil {
			return err
		}
		missing = missing[n:]
	}
	return nil
}

// read takes what a record states of the part: of a coin its first point with a market cap within the hour.
func (p *reportedPart) read(rec *eventsv1.ReferenceRecord) {
	if defi := rec.GetDefiPast(); defi != nil && p.SourceID == "" && defi.Source == p.Source && defi.EventTime == p.Time.UnixNano() {
		p.value = reportedNumber(defi.TotalTvl)
	}
	coin := rec.GetCoinPast()
	if coin == nil || coin.Source != p.Source || coin.SourceId != p.SourceID {
		return
	}
	first := int64(0)
	for _, point := range coin.Points {
		value := reportedNumber(point.MarketCap)
		if at := time.Unix(0, point.Time).UTC(); value != nil && *value > 0 && at.Truncate(time.Hour).Equal(p.At) && (first == 0 || point.Time < first) {
			first, p.value, p.volume = point.Time, value, reportedNumber(point.Volume24H)
		}
	}
	if first != p.Time.UnixNano() {
		p.value = nil
	}
}

// reportedNumber reads a number as a source wrote it; nil for none.
func reportedNumber(text string) *float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &value
}

// pastCandle explains what a metric did in a step of which a source reported values afterwards: it is joined again of these values, each made again of its records.
func (w *work) pastCandle(ctx context.Context, of seriesMetric, number string, field metricCandleField, start time.Time, step time.Duration, values []pastValue, depth int) (*Node, error) {
	served := make([]metricValue, len(values))
	for i, v := range values {
		served[i] = v.metricValue
	}
	value, unit := field.value(joinedPast(served)), of.unit()
	if field.name == "samples" {
		unit = ""
	}
	n := headline(number, &value, unit, start.UnixNano())
	n.Method = &Method{Name: "joined-hours", Version: 1, Formula: "of what a source reported afterwards, instead of minutes: " + field.formula}
	if field.name == "avg" {
		n.Method.Formula = "mean of what a source reported afterwards, added up in the order of time"
	}
	n.Note = "origin backfill: nothing was measured here in the step"
	if !w.expands(depth) {
		return n, nil
	}
	parts, err := w.History.ReportedParts(ctx, of.defi != "", start, start.Add(step))
	if err != nil {
		return nil, err
	}
	again := make([]metricValue, 0, len(values))
	for _, v := range values {
		in, err := w.pastPoint(ctx, of, v, parts, max(depth-1, 1))
		if err != nil {
			return nil, err
		}
		if recomputed := in.again(); recomputed != nil {
			again = append(again, metricValue{v.at, *recomputed})
		}
		if depth <= 1 {
			in.Inputs, in.LeftOut = nil, nil
		}
		n.Inputs = append(n.Inputs, in)
	}
	if len(again) < len(values) {
		n.notReproduced(fmt.Sprintf("%d of its %d values could not be computed again", len(values)-len(again), len(values)))
	} else {
		n.compare(known(field.value(joinedPast(again))))
	}
	n.fewer(false)
	return n, nil
}

// joinedPast is what a metric did of which at least one value was reported, as answers have it: the mean is added up in the order of time.
func joinedPast(values []metricValue) views.SummaryOHLC {
	c := joined(values)
	c.Average = 0
	for _, v := range values {
		c.Average += v.value
	}
	c.Average = views.Mean(c.Average, len(values), c.Low, c.High)
	return c
}
