package explain

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// dayRate explains what a currency cost on a day by central banks' rates: the newest of the day, or of the last before it, that had been stated by a record of the log
// of an offset before the given one. They state units of a currency for a euro.
func (w *work) dayRate(ctx context.Context, number, currency string, day time.Time, value float64, before int64, depth int) (*Node, error) {
	day = day.UTC().Truncate(oneDay)
	n := headline(number, &value, usd, day.UnixNano())
	n.Method = &Method{Name: "fixing", Version: 1, Formula: "USD for a euro / units of the currency for a euro, of the day, or of the newest of the " + fmt.Sprint(schemas.FixingDays) + " days before that has both"}
	if !w.expands(depth) {
		return n, nil
	}
	fixings, err := w.History.Fixings(ctx, currency, day, before)
	if err != nil {
		return nil, err
	}
	if len(fixings) == 0 { // the median of what other sources give for a dollar
		n.Method = &Method{Name: "fiat-median", Version: 1, Formula: "1 / median over the sources of the units of the currency for a dollar that each stated last for the day"}
		n.Note = "not computed again: no central bank states a rate of the currency"
		return n, nil
	}
	var dollar, units float64
	read := true
	for _, f := range fixings {
		in, recorded, err := w.fixingAt(ctx, f)
		if err != nil {
			return nil, err
		}
		n.Inputs = append(n.Inputs, in)
		read = read && recorded != nil
		if f.Quote == schemas.USD {
			dollar = *in.Value
		}
		if units = *in.Value; currency == schemas.EUR {
			units = 1
		}
	}
	if !read {
		n.Note = "not computed again: " + noRecords
		return n, nil
	}
	again := dollar / units
	n.compare(&again)
	return n, nil
}

// fixingAt is a rate that a central bank stated, as its record has it; nil where the log no longer has it.
func (w *work) fixingAt(ctx context.Context, f views.StatedFixing) (n *Node, recorded *eventsv1.Fixing, err error) {
	at := place(schemas.TopicReferenceRaw, f.Partition, f.Offset)
	n = stated("fixing/"+f.Source+"/"+schemas.EUR+f.Quote, &f.Rate, f.Quote, f.Day.UnixNano(), at)
	w.reads++
	if !w.comesTo(ctx, at) {
		n.Records, n.Note = nil, "its record is not in the log any more"
		return n, nil, nil
	}
	err = w.Log.Range(ctx, at.Topic, at.Partition, at.Offset, at.Offset, func(r *kgo.Record) error {
		record, err := schemas.DecodeRecord(at.Topic, r.Value)
		if err != nil {
			return fmt.Errorf("reading a rate of %s: %w", f.Quote, err)
		}
		of, _ := record.(*eventsv1.ReferenceRecord)
		if stated := of.GetFixing(); stated.GetBase() == schemas.EUR && stated.GetQuote() == f.Quote && stated.GetDate() == f.Day.Format(time.DateOnly) {
			recorded = stated
		}
		return nil
	})
	if err != nil && lacks(err) == "" {
		return nil, nil, err
	}
	if recorded == nil {
		n.Records, n.Note = nil, "its record is not in the log any more"
		return n, nil, nil
	}
	value := columnFloat(recorded.Rate)
	n.Value, n.Time = &value, query.FormatTime(f.Day.UnixNano())
	return n, recorded, nil
}
