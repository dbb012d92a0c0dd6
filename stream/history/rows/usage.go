package rows

import (
	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// usageRows are rows of usage. A record's number takes the place of the offset in its version: of two of a process the one that it
// wrote later stays, wherever they lie in the log.
type usageRows struct {
	days columnBatch[*eventsv1.UsageRecord]
}

func newUsageRows() topicRows {
	type usage = *eventsv1.UsageRecord
	number := func(name string, of func(usage) uint64) []field[usage] {
		return plain(name, "UInt64", of, &proto.ColUInt64{})
	}
	return &usageRows{newColumnBatch("usage",
		dayOf("day", usage.GetDay), stringOf("budget", usage.GetBudget), lowCardinalityOf("plan", usage.GetPlan), stringOf("replica", usage.GetReplica),
		number("requests", usage.GetRequests), number("charts", usage.GetCharts), instantOf("time", usage.GetTime))}
}

func (r *usageRows) all() []native.Rows { return []native.Rows{&r.days} }

func (r *usageRows) add(p Place, record eventsv1.Marked) bool {
	rec, at := record.(*eventsv1.UsageRecord), &r.days.place
	r.days.take(rec)
	at.partition = append(at.partition, p.Partition)
	at.offset = append(at.offset, p.Offset)
	at.version = append(at.version, version(0, rec.Number))
	return true
}
