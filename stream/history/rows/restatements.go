package rows

import (
	"encoding/json"
	"strings"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// restatementTables are rows of restatements and restated_tables.
type restatementTables struct {
	rows   columnBatch[restated]
	tables columnBatch[*eventsv1.RestatementRecord]
}

// restated is a record and the restatement in it.
type restated struct {
	*eventsv1.RestatementRecord
	row *eventsv1.Restatement
}

func newRestatementRows() topicRows {
	row := func(of func(*eventsv1.Restatement) string) func(restated) string {
		return func(r restated) string { return of(r.row) }
	}
	values := func(name string, of func(restated) []*eventsv1.RestatedValue) []field[restated] {
		return nestedOf(name, of, lowCardinalityOf("name", (*eventsv1.RestatedValue).GetName), stringOf("value", (*eventsv1.RestatedValue).GetValue))
	}
	type record = *eventsv1.RestatementRecord
	number := func(name string, of func(*eventsv1.RestatedTable) int64) []field[record] {
		return integerOf(name, func(r record) int64 { return of(r.GetTable()) })
	}
	return &restatementTables{
		newColumnBatch("restatements",
			instantOf("time", func(r restated) int64 { return r.Time }), lowCardinalityOf("run", func(r restated) string { return r.Run }),
			countOf("attempt", func(r restated) uint32 { return r.Attempt }), lowCardinalityOf("table_name", row((*eventsv1.Restatement).GetTable)),
			lowCardinalityOf("coin_id", row((*eventsv1.Restatement).GetCoinId)), instantOf("event_time", func(r restated) int64 { return r.row.EventTime }),
			stringOf("key", func(r restated) string { return keyText(r.row.Key) }), lowCardinalityOf("view_name", row((*eventsv1.Restatement).GetView)),
			lowCardinalityOf("kind", row((*eventsv1.Restatement).GetKind)), lowCardinalityOf("cause", row((*eventsv1.Restatement).GetCause)),
			countOf("logic_before", func(r restated) uint32 { return r.row.LogicBefore }), countOf("logic_after", func(r restated) uint32 { return r.row.LogicAfter }),
			values("before", func(r restated) []*eventsv1.RestatedValue { return r.row.Before }),
			values("after", func(r restated) []*eventsv1.RestatedValue { return r.row.After }),
			listOf("others", func(r restated) []string { return r.row.Others }),
			stringOf("digest_before", row((*eventsv1.Restatement).GetDigestBefore)), stringOf("digest_after", row((*eventsv1.Restatement).GetDigestAfter))),
		newColumnBatch("restated_tables",
			lowCardinalityOf("run", record.GetRun), lowCardinalityOf("table_name", func(r record) string { return r.GetTable().Table }),
			countOf("attempt", record.GetAttempt), instantOf("time", record.GetTime), lowCardinalityOf("view_name", func(r record) string { return r.GetTable().View }),
			number("added", (*eventsv1.RestatedTable).GetAdded), number("removed", (*eventsv1.RestatedTable).GetRemoved),
			number("changed", (*eventsv1.RestatedTable).GetChanged), number("renewed", (*eventsv1.RestatedTable).GetRenewed),
			number("listed", (*eventsv1.RestatedTable).GetListed)),
	}
}

func (t *restatementTables) all() []native.Rows { return []native.Rows{&t.rows, &t.tables} }

func (t *restatementTables) add(p Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.RestatementRecord)
	switch body := rec.Body.(type) {
	case *eventsv1.RestatementRecord_Restatement:
		t.rows.appendRaw(p, restated{rec, body.Restatement})
	case *eventsv1.RestatementRecord_Table:
		t.tables.appendRaw(p, rec)
	default:
		return false
	}
	return true
}

// keyText is a JSON object of texts in their order.
func keyText(key []*eventsv1.RestatedValue) string {
	var text strings.Builder
	for i, v := range key {
		text.WriteByte("{,"[min(i, 1)])
		name, _ := json.Marshal(v.Name) // a text always can be
		value, _ := json.Marshal(v.Value)
		text.Write(name)
		text.WriteByte(':')
		text.Write(value)
	}
	return text.String() + "}"
}
