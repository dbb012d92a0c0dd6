package explain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// reportedRate is a rate of the past as its row has it, and the same of its record; again is nil where the log no longer has that, or where it is no number.
type reportedRate struct {
	row   views.RatePoint
	again *views.RatePoint
	at    Place
}

// reportedRates are what a source reported afterwards of a rate of a time, or in the step that starts then, oldest first.
func (w *work) reportedRates(ctx context.Context, of pastRate, start time.Time) ([]reportedRate, error) {
	from := start.Truncate(time.Second) // tables are asked for whole seconds
	found, err := w.History.ReportedRates(ctx, of.source, of.pool, of.category, from, from.Add(max(of.step, time.Second)))
	if err != nil {
		return nil, err
	}
	if of.step == 0 {
		found = slices.DeleteFunc(found, func(r views.ReportedRate) bool { return !r.Time.Equal(start) })
	}
	places := make([]Place, len(found))
	for i, r := range found {
		if w.past && r.Reported.After(w.asOf) {
			return nil, query.NotFound("%s had not reported it by %s: it did at %s", of.source, query.FormatTime(w.asOf.UnixNano()), query.FormatTime(r.Reported.UnixNano()))
		}
		places[i] = place(schemas.TopicRatesRaw, r.Partition, r.Offset)
	}
	if err := w.readReported(ctx, places); err != nil && lacks(err) == "" {
		return nil, err
	}
	rates := make([]reportedRate, len(found))
	for i, r := range found {
		rates[i] = reportedRate{row: ratePointOf(r.Time, r.APR, r.APY, r.TVL), at: places[i]}
		reported := w.reportedRecords[places[i]].GetRate()
		rule, isKnown := schemas.RateRuleBy(r.Method)
		if reported == nil || !isKnown || reported.EventTime != r.Time.UnixNano() {
			continue
		}
		if apr, apy, err := rule.Yearly(reported.Raw, reported.RawUnit, reported.Compounding); err == nil {
			again := ratePointOf(r.Time, apr, apy, nil)
			if tvl, err := strconv.ParseFloat(reported.TvlUsd, 64); err == nil {
				again.TVL = &tvl
			}
			rates[i].again = &again
		}
	}
	return rates, nil
}

func ratePointOf(at time.Time, apr, apy float64, tvl *float64) views.RatePoint {
	return views.RatePoint{Start: at, Open: apy, High: apy, Low: apy, Close: apy, Mean: apy, APR: &apr, TVL: tvl}
}

// reportedPoint explains a point of a history that its source reported afterwards: of one report, or what several in an hour or a day make.
func (w *work) reportedPoint(ctx context.Context, n *Node, of pastRate, p views.RatePoint, field rateHistoryField, depth int) error {
	n.Method = &Method{Name: "reported-afterwards", Version: 1, Formula: "what " + of.source + " reported afterwards, by the year"}
	if of.step > 0 {
		n.Method.Formula = "of what " + of.source + " reported afterwards: " + field.formula
		if field.name == "mean" {
			n.Method.Formula = "of what " + of.source + " reported afterwards: mean of the rates, added up from the least on"
		}
	}
	reported, err := w.reportedRates(ctx, of, p.Start)
	if err != nil {
		return err
	}
	if len(reported) != max(int(p.N), 1) {
		n.Note = fmt.Sprintf("not computed again: it is of %d reports, of which %d are there", p.N, len(reported))
		return nil
	}
	var rows, again []views.RatePoint
	for _, r := range reported {
		rows = append(rows, r.row)
		if r.again != nil {
			again = append(again, *r.again)
		}
	}
	switch {
	case len(again) < len(reported):
		n.Note = fmt.Sprintf("not computed again: the log no longer has the records of %d of %d reports", len(reported)-len(again), len(reported))
	case of.step == 0:
		n.compare(field.value(again[0]))
		n.Records = []Place{reported[0].at}
		return nil
	case field.name == "mean":
		n.compare(known(meanFromLeast(again)))
	default:
		n.compare(field.rolled(again))
	}
	if depth <= 0 {
		return nil
	}
	name := "rate"
	if field.term != "" {
		name = field.name
	}
	input := rateHistoryFields[slices.Index(rateHistoryFieldNames(), name)].value
	for i, r := range reported {
		n.Inputs = append(n.Inputs, stated(of.number(name, r.row.Start, 0), input(rows[i]), n.Unit, r.row.Start.UnixNano(), r.at))
	}
	n.fewer(false)
	return nil
}

// meanFromLeast is the mean of rates as the view of what was reported adds them up.
func meanFromLeast(points []views.RatePoint) float64 {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Close
	}
	return sumFromLeast(values) / float64(len(values))
}
