package rows

import (
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// deadTables are the rows of dead letters, and of what became of them.
type deadTables struct {
	letters deadRows
	retries retryRows
}

func (t *deadTables) all() []native.Rows { return []native.Rows{&t.letters, &t.retries} }

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

// inPlace is used as the topic of a dead letter that is not a record of its own: the partition in which the record lies that
// could not be decoded. The offset there is that of the letter.
func inPlace(topic string, partition int32) string {
	return topic + "/" + strconv.Itoa(int(partition))
}

// deadRows are rows of dead_letters. A dead letter topic has one partition.
type deadRows struct {
	topic           native.LowCardinality
	logOffset       proto.ColInt64
	eventID         proto.ColStr
	source, reason  native.LowCardinality
	detail          proto.ColStr
	adapterVersion  proto.ColUInt32
	ingestTime      proto.ColInt64
	payload         proto.ColStr
	truncated       proto.ColBool
	originTopic     native.LowCardinality
	originPartition proto.ColInt32
	originOffset    proto.ColInt64
	version         proto.ColUInt128
}

func (r *deadRows) Table() string { return "dead_letters" }
func (r *deadRows) Len() int      { return len(r.logOffset) }

func (r *deadRows) add(p Place, l *eventsv1.DeadLetter) {
	r.topic.Add(p.Topic)
	r.logOffset = append(r.logOffset, p.Offset)
	r.eventID.Append(hex.EncodeToString(l.EventId))
	r.source.Add(l.Source)
	r.reason.Add(l.Reason)
	r.detail.Append(l.Detail)
	r.adapterVersion = append(r.adapterVersion, l.AdapterVersion)
	r.ingestTime = append(r.ingestTime, l.IngestTime)
	r.payload.AppendBytes(l.Payload)
	r.truncated = append(r.truncated, l.Truncated)
	r.originTopic.Add(l.Topic)
	r.originPartition = append(r.originPartition, l.Partition)
	r.originOffset = append(r.originOffset, l.Offset)
	r.version = append(r.version, version(0, p.Offset))
}

func (r *deadRows) Columns() []native.Column {
	const text = "LowCardinality(String)"
	return []native.Column{
		native.Col("topic", text, &r.topic),
		native.Col("log_offset", "Int64", &r.logOffset),
		native.Col("event_id", "String", &r.eventID),
		native.Col("source", text, &r.source),
		native.Col("reason", text, &r.reason),
		native.Col("detail", "String", &r.detail),
		native.Col("adapter_version", "UInt32", &r.adapterVersion),
		native.Col("ingest_time", "DateTime64(9, 'UTC')", &r.ingestTime),
		native.Col("payload", "String", &r.payload),
		native.Col("truncated", "Bool", &r.truncated),
		native.Col("origin_topic", text, &r.originTopic),
		native.Col("origin_partition", "Int32", &r.originPartition),
		native.Col("origin_offset", "Int64", &r.originOffset),
		native.Col("version", "UInt128", &r.version),
	}
}

func (r *deadRows) Reset() {
	native.Reset(&r.topic, &r.logOffset, &r.eventID, &r.source, &r.reason, &r.detail, &r.adapterVersion, &r.ingestTime,
		&r.payload, &r.truncated, &r.originTopic, &r.originPartition, &r.originOffset, &r.version)
}

// retryRows are rows of dead_retries.
type retryRows struct {
	topic          native.LowCardinality
	letterOffset   proto.ColInt64
	retriedAt      proto.ColInt64
	ticks          proto.ColUInt32
	adapterVersion proto.ColUInt32
	version        proto.ColUInt128
}

func (r *retryRows) Table() string { return "dead_retries" }
func (r *retryRows) Len() int      { return len(r.ticks) }

func (r *retryRows) add(p Place, t *eventsv1.DeadRetry) {
	r.topic.Add(p.Topic)
	r.letterOffset = append(r.letterOffset, t.Offset)
	r.retriedAt = append(r.retriedAt, t.Time)
	r.ticks = append(r.ticks, t.Ticks)
	r.adapterVersion = append(r.adapterVersion, t.AdapterVersion)
	r.version = append(r.version, version(0, p.Offset))
}

func (r *retryRows) Columns() []native.Column {
	return []native.Column{
		native.Col("topic", "LowCardinality(String)", &r.topic),
		native.Col("letter_offset", "Int64", &r.letterOffset),
		native.Col("retried_at", "DateTime64(9, 'UTC')", &r.retriedAt),
		native.Col("ticks", "UInt32", &r.ticks),
		native.Col("adapter_version", "UInt32", &r.adapterVersion),
		native.Col("version", "UInt128", &r.version),
	}
}

func (r *retryRows) Reset() {
	native.Reset(&r.topic, &r.letterOffset, &r.retriedAt, &r.ticks, &r.adapterVersion, &r.version)
}

// gapRows are rows of gaps.
type gapRows struct {
	venue, symbol, reason native.LowCardinality
	from, to              proto.ColInt64
	missed                proto.ColUInt64
	place                 place
}

func (r *gapRows) Table() string { return "gaps" }
func (r *gapRows) Len() int      { return len(r.missed) }

func (r *gapRows) add(p Place, g *eventsv1.Gap) {
	r.venue.Add(g.Venue)
	r.symbol.Add(g.Symbol)
	r.reason.Add(g.Reason)
	r.from = append(r.from, g.FromTime)
	r.to = append(r.to, g.ToTime)
	r.missed = append(r.missed, g.Missed)
	r.place.add(0, p.Partition, p.Offset)
}

func (r *gapRows) Columns() []native.Column {
	const text = "LowCardinality(String)"
	return slices.Concat([]native.Column{
		native.Col("venue", text, &r.venue),
		native.Col("symbol", text, &r.symbol),
		native.Col("reason", text, &r.reason),
		native.Col("from_time", "DateTime64(9, 'UTC')", &r.from),
		native.Col("to_time", "DateTime64(9, 'UTC')", &r.to),
		native.Col("missed", "UInt64", &r.missed),
	}, r.place.columns())
}

func (r *gapRows) Reset() {
	native.Reset(&r.venue, &r.symbol, &r.reason, &r.from, &r.to, &r.missed)
	r.place.reset()
}
