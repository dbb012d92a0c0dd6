package rows

import (
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/native"
)

// breadthRows are the rows of the fold of breadth. A minute takes the place of the offset in their versions.
type breadthRows struct {
	minutes columnBatch[*eventsv1.Breadth]
}

func newBreadthRows() topicRows {
	return &breadthRows{newColumnBatch("breadth",
		secondOf("time", (*eventsv1.Breadth).GetTime), countOf("rising", (*eventsv1.Breadth).GetRising),
		countOf("falling", (*eventsv1.Breadth).GetFalling), countOf("unchanged", (*eventsv1.Breadth).GetUnchanged))}
}

func (r *breadthRows) all() []native.Rows { return []native.Rows{&r.minutes} }

func (r *breadthRows) add(_ Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.BreadthRecord)
	if rec.GetBreadth() != nil {
		r.minutes.appendDerived(rec.Mark, rec.GetBreadth())
	}
	return rec.GetBreadth() != nil
}
