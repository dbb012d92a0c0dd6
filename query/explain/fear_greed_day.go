package explain

import (
	"context"
	"slices"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// fearGreedDays is the part of a name before the time of a value of the history.
const fearGreedDays = "days"

// fearGreedDay explains a value of the history of the index of fear and greed, by the time that its source has of it.
func (w *work) fearGreedDay(ctx context.Context, name string, parts []string) (*Node, error) {
	if len(parts) != 3 {
		return nil, unknown(name, "")
	}
	at, ok := instant(parts[2])
	if !ok {
		return nil, query.Invalid("number", "the time of a value must be as the history has it, as Unix seconds or as 2026-01-31T00:00:00Z")
	}
	days, err := w.publishedFearGreed(ctx, at.Truncate(oneDay), at.Truncate(oneDay).Add(oneDay))
	if err != nil {
		return nil, err
	}
	found := (*eventsv1.FearGreed)(nil)
	for _, day := range days {
		if day.EventTime == at.UnixNano() {
			found = day
		}
	}
	if found == nil {
		return nil, query.NotFound("no source has a value of fear and greed of %s", at.Format(time.RFC3339))
	}
	n, err := w.sourcedFearGreed(ctx, found)
	if err == nil {
		n.Number = "fear-greed/" + fearGreedDays + "/" + at.Format(time.RFC3339)
	}
	return n, err
}

// publishedFearGreed are values of days in [from, to), and later ones, as they had been published by when they are asked for. Of a day that history and what was
// published lately have, the latter is last and counts, as in answers.
func (w *work) publishedFearGreed(ctx context.Context, from, to time.Time) ([]*eventsv1.FearGreed, error) {
	days, err := w.History.FearGreedHistory(ctx, from, to)
	if err != nil {
		return nil, err
	}
	stated, err := w.sources(ctx)
	if err != nil {
		return nil, err
	}
	if w.past {
		days = slices.DeleteFunc(days, func(day *eventsv1.FearGreed) bool { return day.IngestTime > w.asOf.UnixNano() })
	}
	return slices.Concat(days, stated.snapshot.FearGreed), nil
}

// sourcedFearGreed explains a source's value of a day, without its name: by the record that has it.
func (w *work) sourcedFearGreed(ctx context.Context, of *eventsv1.FearGreed) (*Node, error) {
	n := headline("", counted(of.Value), "", of.EventTime)
	n.Method = &Method{Name: "source", Version: 1, Formula: "the value of " + of.Source}
	recorded := (*eventsv1.FearGreed)(nil)
	at, ok, err := w.find(ctx, schemas.TopicReferenceRaw, 0, of.IngestTime-minute, of.IngestTime+minute, of.Source, func(rec eventsv1.Marked) bool {
		reference, is := rec.(*eventsv1.ReferenceRecord)
		if day := reference.GetFearGreed(); is && day != nil && day.EventTime == of.EventTime && day.IngestTime == of.IngestTime {
			recorded = day
		}
		return recorded != nil
	})
	switch {
	case err != nil:
		return nil, err
	case !ok:
		n.notReproduced("the record that states it is not in the log any more")
		return n, nil
	}
	n.recorded(counted(recorded.Value))
	n.Inputs = []*Node{stated("observation/"+of.Source+"/fear-greed", counted(recorded.Value), "", of.EventTime, at)}
	return n, nil
}
