package explain

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// scan reads a span of the log within the bounds of an answer.
func (w *work) scan(ctx context.Context, topic string, partition int32, from, to int64, visit func(*kgo.Record) bool) (first int64, err error) {
	if w.reads++; w.reads > mostReads {
		return 0, errTooManyReads
	}
	return w.Log.Scan(ctx, views.LogSpan{Topic: topic, Partition: partition, From: time.Unix(0, from), To: time.Unix(0, to), Most: mostRecords}, visit)
}

// endless is the end of a span that visit ends.
const endless = 1 << 62

// kept reports whether the log still has a record that was written.
func (w *work) kept(ctx context.Context, topic string, partition int32, offset int64) bool {
	first, known := w.beginning(ctx, topic)[partition]
	return known && offset >= first
}

// reachesBack reports whether the log has all of a span of which an offset is the first record: it has older ones, or none was ever dropped.
func (w *work) reachesBack(ctx context.Context, topic string, partition int32, offset int64) bool {
	first, known := w.beginning(ctx, topic)[partition]
	return known && (first == 0 || offset > first)
}

// comesTo reports whether the log comes to a record that is named by a table: a table may have outlived a log that began anew.
func (w *work) comesTo(ctx context.Context, at Place) bool {
	ends, read := w.ends[at.Topic]
	if !read {
		ends, _ = w.Log.Ends(ctx, at.Topic)
		w.ends[at.Topic] = ends
	}
	return at.Offset < ends[at.Partition]
}

// beginning is the first offset that the log has of each partition; none where that is not known.
func (w *work) beginning(ctx context.Context, topic string) map[int32]int64 {
	begins, read := w.begins[topic]
	if !read {
		begins, _ = w.Log.Begins(ctx, topic)
		w.begins[topic] = begins
	}
	return begins
}

// find returns the place of the first record of a span with a key that match accepts; false where there is none.
func (w *work) find(ctx context.Context, topic string, partition int32, from, to int64, key string, match func(eventsv1.Marked) bool) (found Place, ok bool, err error) {
	_, err = w.scan(ctx, topic, partition, from, to, func(r *kgo.Record) bool {
		if string(r.Key) != key {
			return true
		}
		if rec, err := schemas.DecodeRecord(topic, r.Value); err == nil && match(rec) {
			found, ok = place(topic, partition, r.Offset), true
		}
		return !ok
	})
	return found, ok, err
}
