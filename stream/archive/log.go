package archive

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream"
)

// Log reads the archive as the part of the log that the broker has no longer: it is a stream.Archive. Its methods are
// safe for concurrent use.
type Log struct {
	store  Store
	log    stream.Config
	topics map[string]Rule

	mu    sync.Mutex
	ids   map[string]string
	known map[Partition]map[string]Segment // the sidecars that were read, by their names
}

// NewLog reads the archived topics of a store beside the broker of log, which gives the ids of its topics.
func NewLog(store Store, log stream.Config, topics map[string]Rule) *Log {
	return &Log{store: store, log: log, topics: topics, ids: map[string]string{}, known: map[Partition]map[string]Segment{}}
}

// Covers implements stream.Archive.
func (l *Log) Covers(topic string) bool {
	_, ok := l.topics[topic]
	return ok
}

func (l *Log) partition(ctx context.Context, topic string, number int32) (Partition, error) {
	l.mu.Lock()
	id, ok := l.ids[topic]
	l.mu.Unlock()
	if !ok {
		ids, err := stream.TopicIDs(ctx, l.log, topic)
		if err != nil {
			return Partition{}, err
		}
		l.mu.Lock()
		id, l.ids[topic] = ids[topic], ids[topic]
		l.mu.Unlock()
	}
	return Partition{Topic: topic, TopicID: id, Number: number}, nil
}

// Catalog is what the archive has of a partition at this moment.
func (l *Log) Catalog(ctx context.Context, topic string, number int32) (Catalog, error) {
	of, err := l.partition(ctx, topic, number)
	if err != nil {
		return Catalog{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[of] == nil {
		l.known[of] = map[string]Segment{}
	}
	return load(ctx, l.store, of, l.known[of])
}

// Start implements stream.Archive.
func (l *Log) Start(ctx context.Context, topic string, number int32, before int64) (int64, error) {
	catalog, err := l.Catalog(ctx, topic, number)
	if err != nil {
		return before, err
	}
	start := before
	for i := len(catalog.Segments) - 1; i >= 0; i-- {
		s := catalog.Segments[i]
		if s.First >= start {
			continue
		}
		if s.Next < start {
			break
		}
		start = s.First
	}
	return start, nil
}

// Read implements stream.Archive.
func (l *Log) Read(ctx context.Context, topic string, number int32, from, to int64, visit func(*kgo.Record) error) (int64, error) {
	catalog, err := l.Catalog(ctx, topic, number)
	if err != nil {
		return from, err
	}
	return catalog.Read(ctx, l.store, from, to, visit)
}

// Segment implements stream.Archive.
func (l *Log) Segment(ctx context.Context, topic string, number int32, from, to int64) (records []*kgo.Record, err error) {
	catalog, err := l.Catalog(ctx, topic, number)
	if err != nil {
		return nil, err
	}
	of, ok := catalog.find(from)
	if !ok {
		return nil, nil
	}
	_, err = readSegment(ctx, l.store, of, of.First, of.Next, func(r *kgo.Record) error {
		if r.Offset >= from && r.Offset < to {
			records = append(records, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// After implements stream.Archive.
func (l *Log) After(ctx context.Context, topic string, number int32, at time.Time, from, to int64) (int64, error) {
	catalog, err := l.Catalog(ctx, topic, number)
	if err != nil {
		return to, err
	}
	for i := catalog.search(from); i < len(catalog.Segments) && catalog.Segments[i].First < to; i++ {
		if catalog.Segments[i].MaxTime < at.UnixMilli() {
			continue
		}
		found := to
		_, err := readSegment(ctx, l.store, catalog.Segments[i], max(from, catalog.Segments[i].First), to, func(r *kgo.Record) error {
			if r.Timestamp.UnixMilli() < at.UnixMilli() {
				return nil
			}
			found = r.Offset
			return errFound
		})
		if found < to || err != nil && !errors.Is(err, errFound) {
			return found, ignore(err, errFound)
		}
	}
	return to, nil
}

// errFound ends a read that has what it looked for.
var errFound = errors.New("found")

// Record reads one archived record, and the segment that has it; the error is ErrMissing where none has.
func (l *Log) Record(ctx context.Context, topic string, number int32, offset int64) (record *kgo.Record, of Segment, err error) {
	catalog, err := l.Catalog(ctx, topic, number)
	if err != nil {
		return nil, of, err
	}
	of, ok := catalog.find(offset)
	if !ok || of.First > offset {
		return nil, of, ErrMissing
	}
	_, err = readSegment(ctx, l.store, of, offset, offset+1, func(r *kgo.Record) error {
		record = r
		return nil
	})
	return record, of, err
}
