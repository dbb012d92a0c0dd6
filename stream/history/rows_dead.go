package history

import (
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// deadTables are the rows of dead letters, and of what became of them.
type deadTables struct {
	letters deadRows
	retries retryRows
}

func (t *deadTables) all() []rows { return []rows{&t.letters, &t.retries} }

func (t *deadTables) add(p Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.DeadRecord)
	if rec.Letter != nil {
		t.letters.add(p, rec.Letter)
	}
	if rec.Retry != nil {
		t.retries.add(p, rec.Retry)
	}
	return rec.Letter != nil || rec.Retry != nil
}

// InPlace stands for the topic of a dead letter that is no record of its own: the partition in which the record lies that
// could not be decoded. The offset there is that of the letter.
func InPlace(topic string, partition int32) string {
	return topic + "/" + strconv.Itoa(int(partition))
}

// deadRows are rows of dead_letters. A dead letter topic has one partition.
type deadRows struct {
	topic           lowCardinality
	logOffset       proto.ColInt64
	eventID         proto.ColStr
	source, reason  lowCardinality
	detail          proto.ColStr
	adapterVersion  proto.ColUInt32
	ingestTime      proto.ColInt64
	payload         proto.ColStr
	truncated       proto.ColBool
	originTopic     lowCardinality
	originPartition proto.ColInt32
	originOffset    proto.ColInt64
	version         proto.ColUInt128
}

func (r *deadRows) table() string { return "dead_letters" }
func (r *deadRows) len() int      { return len(r.logOffset) }

func (r *deadRows) add(p Place, l *eventsv1.DeadLetter) {
	r.topic.add(p.Topic)
	r.logOffset = append(r.logOffset, p.Offset)
	r.eventID.Append(hex.EncodeToString(l.EventId))
	r.source.add(l.Source)
	r.reason.add(l.Reason)
	r.detail.Append(l.Detail)
	r.adapterVersion = append(r.adapterVersion, l.AdapterVersion)
	r.ingestTime = append(r.ingestTime, l.IngestTime)
	r.payload.AppendBytes(l.Payload)
	r.truncated = append(r.truncated, l.Truncated)
	r.originTopic.add(l.Topic)
	r.originPartition = append(r.originPartition, l.Partition)
	r.originOffset = append(r.originOffset, l.Offset)
	r.version = append(r.version, version(0, p.Offset))
}

func (r *deadRows) columns() []column {
	const text = "LowCardinality(String)"
	return []column{
		{"topic", text, &r.topic},
		{"log_offset", "Int64", &r.logOffset},
		{"event_id", "String", &r.eventID},
		{"source", text, &r.source},
		{"reason", text, &r.reason},
		{"detail", "String", &r.detail},
		{"adapter_version", "UInt32", &r.adapterVersion},
		{"ingest_time", "DateTime64(9, 'UTC')", &r.ingestTime},
		{"payload", "String", &r.payload},
		{"truncated", "Bool", &r.truncated},
		{"origin_topic", text, &r.originTopic},
		{"origin_partition", "Int32", &r.originPartition},
		{"origin_offset", "Int64", &r.originOffset},
		{"version", "UInt128", &r.version},
	}
}

func (r *deadRows) reset() {
	reset(&r.topic, &r.logOffset, &r.eventID, &r.source, &r.reason, &r.detail, &r.adapterVersion, &r.ingestTime,
		&r.payload, &r.truncated, &r.originTopic, &r.originPartition, &r.originOffset, &r.version)
}

// retryRows are rows of dead_retries.
type retryRows struct {
	topic          lowCardinality
	letterOffset   proto.ColInt64
	retriedAt      proto.ColInt64
	ticks          proto.ColUInt32
	adapterVersion proto.ColUInt32
	version        proto.ColUInt128
}

func (r *retryRows) table() string { return "dead_retries" }
func (r *retryRows) len() int      { return len(r.ticks) }

func (r *retryRows) add(p Place, t *eventsv1.DeadRetry) {
	r.topic.add(p.Topic)
	r.letterOffset = append(r.letterOffset, t.Offset)
	r.retriedAt = append(r.retriedAt, t.Time)
	r.ticks = append(r.ticks, t.Ticks)
	r.adapterVersion = append(r.adapterVersion, t.AdapterVersion)
	r.version = append(r.version, version(0, p.Offset))
}

func (r *retryRows) columns() []column {
	return []column{
		{"topic", "LowCardinality(String)", &r.topic},
		{"letter_offset", "Int64", &r.letterOffset},
		{"retried_at", "DateTime64(9, 'UTC')", &r.retriedAt},
		{"ticks", "UInt32", &r.ticks},
		{"adapter_version", "UInt32", &r.adapterVersion},
		{"version", "UInt128", &r.version},
	}
}

func (r *retryRows) reset() {
	reset(&r.topic, &r.letterOffset, &r.retriedAt, &r.ticks, &r.adapterVersion, &r.version)
}

// gapRows are rows of gaps.
type gapRows struct {
	venue, symbol, reason lowCardinality
	from, to              proto.ColInt64
	missed                proto.ColUInt64
	place                 place
}

func (r *gapRows) table() string { return "gaps" }
func (r *gapRows) len() int      { return len(r.missed) }

func (r *gapRows) add(p Place, g *eventsv1.Gap) {
	r.venue.add(g.Venue)
	r.symbol.add(g.Symbol)
	r.reason.add(g.Reason)
	r.from = append(r.from, g.FromTime)
	r.to = append(r.to, g.ToTime)
	r.missed = append(r.missed, g.Missed)
	r.place.add(0, p.Partition, p.Offset)
}

func (r *gapRows) columns() []column {
	const text = "LowCardinality(String)"
	return slices.Concat([]column{
		{"venue", text, &r.venue},
		{"symbol", text, &r.symbol},
		{"reason", text, &r.reason},
		{"from_time", "DateTime64(9, 'UTC')", &r.from},
		{"to_time", "DateTime64(9, 'UTC')", &r.to},
		{"missed", "UInt64", &r.missed},
	}, r.place.columns())
}

func (r *gapRows) reset() {
	reset(&r.venue, &r.symbol, &r.reason, &r.from, &r.to, &r.missed)
	r.place.reset()
}
