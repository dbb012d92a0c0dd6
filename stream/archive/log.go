package archive

import (
	"context"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/stream"
)

// Log reads the archive as the part of the log that the broker has no longer: it is a stream.Archive. Its methods are
// safe for concurrent use.
type Log struct {
	store  Store
	log    stream.Config
	topics map[string]Rule

	mu  sync.Mutex
	ids map[string]string
}

// NewLog reads the archived topics of a store beside the broker of log, which gives the ids of its topics.
func NewLog(store Store, log stream.Config, topics map[string]Rule) *Log {
	return &Log{store: store, log: log, topics: topics, ids: map[string]string{}}
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

// Start implements stream.Archive.
func (l *Log) Start(ctx context.Context, topic string, number int32, before int64) (int64, error) {
	of, err := l.partition(ctx, topic, number)
	if err != nil {
		return before, err
	}
	catalog, err := Load(ctx, l.store, of)
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
	of, err := l.partition(ctx, topic, number)
	if err != nil {
		return from, err
	}
	catalog, err := Load(ctx, l.store, of)
	if err != nil {
		return from, err
	}
	return catalog.Read(ctx, l.store, from, to, visit)
}
