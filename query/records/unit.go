// Package records answers what the log holds at an offset, so that every offset in an explanation can be followed.
package records

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// Log reads single records; an error is a *views.AbsentError where there is none.
type Log interface {
	Record(ctx context.Context, topic string, partition int32, offset int64) (views.LogRecord, error)
}

// Unit answers the endpoint.
type Unit struct {
	log       Log
	simulated func() bool
	reading   chan struct{}
}

// readers is how many records are read at once: a segment is decoded for one record, which takes some megabytes.
const readers = 2

// New makes the unit. Simulated reports whether what is in the log is invented.
func New(log Log, simulated func() bool) *Unit {
	return &Unit{log: log, simulated: simulated, reading: make(chan struct{}, readers)}
}

// Body answers GET /api/v1/log/{topic}/{partition}/{offset}.
type Body struct {
	Data Record `json:"data"`
}

// Record is one record of the log.
type Record struct {
	Topic     string `json:"topic" example:"prices.v1"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset" doc:"Offset of the record in its partition"`
	Timestamp string `json:"timestamp" format:"date-time" doc:"The record's own time in the log"`
	Key       string `json:"key,omitempty" doc:"Hexadecimal after 0x where it is not UTF-8"`
	Message   string `json:"message" example:"PriceRecord" doc:"The protobuf message, of package marketlog.events.v1, that the value is"`
	// Value is of another form in each topic.
	Value  json.RawMessage `json:"value" doc:"The value by protobuf's rules for JSON: 64-bit integers are strings, bytes base64. Base64 of the bytes where it cannot be decoded"`
	Error  string          `json:"error,omitempty" doc:"Why the value cannot be decoded"`
	Bytes  int             `json:"bytes" doc:"Size of the value"`
	SHA256 string          `json:"sha256" doc:"SHA-256 of the value's bytes, hexadecimal"`
	Found  string          `json:"found" enum:"broker,archive" doc:"Which part of the log the record was read from"`
	// Segment is only there for archive.
	Segment *Segment `json:"segment,omitempty" doc:"The segment of the archive that holds the record"`
}

// Segment is a file of the archive.
type Segment struct {
	File   string `json:"file" doc:"Its Parquet file, below archive.dir"`
	First  int64  `json:"first" doc:"Offset of its first record"`
	Next   int64  `json:"next" doc:"Offset behind its last record"`
	Digest string `json:"digest" doc:"SHA-256 of its records"`
	Chain  string `json:"chain" doc:"SHA-256 of the chain of the segment before and the digest"`
}

// maxOffset is the greatest integer that every reader of JSON has exactly.
const maxOffset = 1<<53 - 1

// secret topics are about people.
func secret(topic schemas.Topic) bool {
	return topic.Name == schemas.TopicKeys || topic.Name == schemas.TopicUsage
}

// topics are those whose records are shown.
func topics() (names []string) {
	for _, topic := range schemas.Topics {
		if !secret(topic) {
			names = append(names, topic.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{{
		Method: http.MethodGet, Path: "/api/v1/log/{topic}/{partition}/{offset}", ID: "getLogRecord", Tag: "log",
		Summary: "A record of the log, by its offset",
		Description: "Explanations and rows name records by topic, partition and offset; this is the record itself, decoded, from the brokers or, where they " +
			"have it no longer, from the archive. It is counted as a chart. Keys and usage are not shown.",
		Params: []query.Param{
			{Name: "topic", In: query.Path, Kind: query.Text, Required: true, Allowed: topics(), Example: schemas.TopicPrices, Doc: "Topic of the log."},
			{Name: "partition", In: query.Path, Kind: query.Integer, Required: true, Min: 0, Max: math.MaxInt32, Example: "0", Doc: "Partition of the topic."},
			{Name: "offset", In: query.Path, Kind: query.Integer, Required: true, Min: 0, Max: maxOffset, Example: "0", Doc: "Offset of the record."},
		},
		Body: Body{}, NotFound: true, Class: limits.Charts, Handle: u.answer,
	}}
}

func (u *Unit) answer(ctx context.Context, r *query.Request) (query.Answer, error) {
	topic, err := schemas.TopicNamed(strings.Clone(r.Text("topic")))
	if err != nil || secret(topic) {
		return query.Answer{}, query.NotFound("there is no topic %q whose records are shown", r.Text("topic"))
	}
	partition, offset := r.Integer("partition"), r.Integer("offset")
	if partition >= int64(topic.Partitions) {
		return query.Answer{}, query.NotFound("%s has partitions 0 to %d", topic.Name, topic.Partitions-1)
	}
	select {
	case u.reading <- struct{}{}:
		defer func() { <-u.reading }()
	case <-ctx.Done():
		return query.Answer{}, ctx.Err()
	}
	found, err := u.log.Record(ctx, topic.Name, int32(partition), offset)
	if absent := (*views.AbsentError)(nil); errors.As(err, &absent) {
		return query.Answer{}, query.NotFound("%s", absent)
	}
	if err != nil {
		return query.Answer{}, err
	}
	sum := sha256.Sum256(found.Value)
	record := Record{
		Topic: topic.Name, Partition: int32(partition), Offset: offset, Timestamp: query.FormatTime(found.Timestamp.UnixNano()), Key: string(found.Key),
		Message: topic.Message(), Bytes: len(found.Value), SHA256: hex.EncodeToString(sum[:]), Found: "broker",
	}
	if !utf8.Valid(found.Key) {
		record.Key = fmt.Sprintf("%#x", found.Key)
	}
	if of := found.Segment; of != nil {
		record.Found, record.Segment = "archive", &Segment{File: of.Data, First: of.First, Next: of.Next, Digest: of.Digest, Chain: of.Chain}
	}
	if record.Value, err = topic.RecordJSON(found.Value); err != nil {
		record.Error = err.Error()
		record.Value, _ = json.Marshal(found.Value) // bytes become base64
	}
	answer, err := query.Encode(Body{record})
	answer.Simulated = u.simulated()
	return answer, err
}
