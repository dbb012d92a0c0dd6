package instance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
)

// ReasonRetention is a gap's reason where records left the log before they were archived.
const ReasonRetention = "retention"

// archiveState is how the archiver of this process fares; nil where the log is not archived. Safe for concurrent use.
type archiveState struct {
	in *Instance

	mu       sync.Mutex
	failing  error // what the store failed with, until it works again
	since    time.Time
	failures int
	// beyond says by how much the log exceeds its bound, since it waits for the archive or those who read it; empty: it does not.
	beyond string
	topics map[string]*archivedTopic
	opened map[archive.Partition]bool
	next   map[archive.Partition]int64 // the offset after the last archived record
}

// archivedTopic is what the archive has of a topic.
type archivedTopic struct {
	segments int
	bytes    int64
	newest   int64 // Unix milliseconds
}

func newArchiveState(in *Instance) *archiveState {
	return &archiveState{in: in, topics: map[string]*archivedTopic{}, opened: map[archive.Partition]bool{}, next: map[archive.Partition]int64{}}
}

// Waiting reports why the log is not archived; empty: it is, or that is not known yet.
func (s *archiveState) Waiting() string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != nil {
		text := fmt.Sprintf("archiving fails since %s: %v. Records stay in the log; the archive is %s", s.since.UTC().Format(time.RFC3339), s.failing, s.in.Config.ArchivePlace())
		if s.beyond != "" {
			text += "; " + s.beyond
		}
		return text
	}
	return s.beyond
}

// Opened implements archive.Observer.
func (s *archiveState) Opened(c archive.Catalog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[c.Partition] = c.Next()
	if s.opened[c.Partition] {
		return // it went to another process and came back: what that one wrote is not counted here
	}
	s.opened[c.Partition] = true
	for _, segment := range c.Segments {
		s.add(segment)
	}
}

// Committed implements archive.Observer.
func (s *archiveState) Committed(segment archive.Segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = nil
	s.next[segment.Source()] = segment.Next
	s.add(segment)
}

// works reports that the store took an object.
func (s *archiveState) works() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = nil
}

// upTo is the offset after the last record of a partition that this process saw archived.
func (s *archiveState) upTo(topic string, partition int32) (next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, at := range s.next { // a topic that was made again has another id, and is another log
		if of.Topic == topic && of.Number == partition {
			next = at
		}
	}
	return next
}

func (s *archiveState) add(segment archive.Segment) {
	topic := s.topics[segment.Topic]
	if topic == nil {
		topic = &archivedTopic{}
		s.topics[segment.Topic] = topic
	}
	topic.segments++
	topic.bytes += segment.Size
	topic.newest = max(topic.newest, segment.MaxTime)
}

// size is how large the archive is, as far as this process knows.
func (s *archiveState) size() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, topic := range s.topics {
		bytes += topic.bytes
	}
	return bytes
}

// pruned takes out what was deleted.
func (s *archiveState) pruned(segments []archive.Segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, segment := range segments {
		if topic := s.topics[segment.Topic]; topic != nil && s.opened[segment.Source()] {
			topic.segments--
			topic.bytes -= segment.Size
		}
	}
}

// Failed implements archive.Observer.
func (s *archiveState) Failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing == nil {
		s.since = time.Now()
	}
	s.failing = err
	s.failures++
}

// setBeyond notes by what the log exceeds its bound.
func (s *archiveState) setBeyond(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beyond = text
}

// Lost implements archive.Observer: what was not archived in time becomes a gap, exact in offsets by its count and in time by
// the records on both sides. Written again it is the same row.
func (s *archiveState) Lost(ctx context.Context, last archive.Segment, next int64) error {
	gap := &eventsv1.Gap{
		Venue: VenueLog, Symbol: last.Source().String(), Reason: ReasonRetention,
		FromTime: time.UnixMilli(last.MaxTime).UnixNano(), ToTime: time.UnixMilli(last.MaxTime).UnixNano(), Missed: uint64(next - last.Next),
	}
	_, ends, err := s.in.Stream.Bounds(ctx, last.Topic)
	if err != nil {
		return err
	}
	if next < ends[last.Topic][last.Partition] {
		err := stream.ReadBroker(ctx, s.in.Stream, last.Topic, last.Partition, next, next+1, func(r *kgo.Record) error {
			gap.ToTime = max(gap.ToTime, r.Timestamp.UnixNano())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.in.WriteGaps(ctx, []*eventsv1.Gap{gap})
}
