package rows

import (
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/native"
)

// breadthRows are the rows of the fold of breadth. A minute takes the place of the offset in their versions.
type breadthRows struct{ minutes columnBatch[segmentAt] }

func newBreadthRows() topicRows {
	return &breadthRows{newColumnBatch("breadth",
		secondOf("time", func(s segmentAt) int64 { return s.time }), countOf("rising", func(s segmentAt) uint32 { return s.Positive }),
		countOf("falling", func(s segmentAt) uint32 { return s.Negative }), countOf("unchanged", func(s segmentAt) uint32 { return s.Neutral }))}
}

func (r *breadthRows) all() []native.Rows { return []native.Rows{&r.minutes} }

func (r *breadthRows) add(_ Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.MarketRecord)
	for _, s := range rec.GetSummary().GetSentiment() {
		r.minutes.appendDerived(rec.Mark, segmentAt{s, rec.GetSummary().Time})
	}
	return rec.GetSummary() != nil
}
