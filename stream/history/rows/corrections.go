package rows

import (
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// correctionRows are rows of corrections.
type correctionRows struct {
	rows columnBatch[*eventsv1.CorrectionRecord]
}

func newCorrectionRows() topicRows {
	type record = *eventsv1.CorrectionRecord
	return &correctionRows{newColumnBatch("corrections",
		stringOf("id", record.GetId), instantOf("time", record.GetTime), lowCardinalityOf("kind", record.GetKind),
		lowCardinalityOf("venue", record.GetVenue), stringOf("symbol", record.GetSymbol),
		instantOf("valid_from", record.GetFrom), instantOf("valid_to", record.GetTo),
		stringOf("author", record.GetAuthor), stringOf("reason", record.GetReason), stringOf("evidence", record.GetEvidence),
		stringOf("withdraws", record.GetWithdraws))}
}

func (t *correctionRows) all() []native.Rows { return []native.Rows{&t.rows} }

func (t *correctionRows) add(p Place, record eventsv1.Marked) bool {
	t.rows.appendRaw(p, record.(*eventsv1.CorrectionRecord))
	return true
}
