package stream

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

type topicPartition struct {
	topic  string
	number int32
}

// Splicer makes what a consumer polls one log: where the brokers begin after a reader's position, or retention was faster
// than it, the records between come from the archive first, a segment at a time. It is used by one goroutine at a time.
type Splicer struct {
	cfg    Config
	at     map[topicPartition]*splicedPartition
	behind int              // partitions whose records wait
	ended  []topicPartition // those that were paused when they ended
}

// splicedPartition is where a reader is in a partition.
type splicedPartition struct {
	next int64
	// waiting are records that were polled and come after those of the archive. The partition is paused meanwhile, so they
	// are what the client had fetched already.
	waiting []*kgo.Record
}

// NewSplicer makes one for the partitions that Begin names.
func NewSplicer(cfg Config) *Splicer {
	return &Splicer{cfg: cfg, at: map[topicPartition]*splicedPartition{}}
}

// Begin announces that a partition is read from an offset on. Of topics that are not archived, nothing is spliced, and nothing for a
// reader that begins at the end, which is an offset below 0: it wants no record that there was.
func (s *Splicer) Begin(topic string, partition int32, next int64) {
	if s.cfg.archives(topic) && next >= 0 {
		s.End(topic, partition)
		s.at[topicPartition{topic, partition}] = &splicedPartition{next: next}
	}
}

// End forgets a partition.
func (s *Splicer) End(topic string, partition int32) {
	at := topicPartition{topic, partition}
	if p := s.at[at]; p != nil && p.waiting != nil {
		s.behind--
		s.ended = append(s.ended, at)
	}
	delete(s.at, at)
}

// Behind reports whether records of the archive are to be handed over: the next poll need not wait.
func (s *Splicer) Behind() bool { return s.behind > 0 }

// Visit gets records of a partition in their order.
type Visit func(topic string, partition int32, records []*kgo.Record) error

// Take hands what the client polled to visit, and of partitions that lack what is before it a segment of the archive instead.
// Those for which full reports it get none now. What neither the brokers nor the archive has is left out: a reader sees it by the
// offsets.
func (s *Splicer) Take(ctx context.Context, client *kgo.Client, fetches kgo.Fetches, full func(topic string, partition int32) bool, visit Visit) error {
	for _, at := range s.ended {
		client.ResumeFetchPartitions(map[string][]int32{at.topic: {at.number}})
	}
	s.ended = nil
	var err error
	fetches.EachPartition(func(fetched kgo.FetchTopicPartition) {
		if err != nil || len(fetched.Records) == 0 {
			return
		}
		p := s.at[topicPartition{fetched.Topic, fetched.Partition}]
		switch {
		case p == nil:
			err = visit(fetched.Topic, fetched.Partition, fetched.Records)
		case p.waiting != nil:
			p.waiting = append(p.waiting, fetched.Records...)
		case fetched.Records[0].Offset > p.next:
			p.waiting = fetched.Records
			s.behind++
		default:
			p.next = fetched.Records[len(fetched.Records)-1].Offset + 1
			err = visit(fetched.Topic, fetched.Partition, fetched.Records)
		}
	})
	if err != nil || s.behind == 0 {
		return err
	}
	for at, p := range s.at {
		if p.waiting == nil {
			continue
		}
		client.PauseFetchPartitions(map[string][]int32{at.topic: {at.number}}) // who holds back may have resumed it
		if full(at.topic, at.number) {
			continue
		}
		if err := s.fill(ctx, at, p, visit); err != nil {
			return err
		}
		if p.waiting == nil {
			client.ResumeFetchPartitions(map[string][]int32{at.topic: {at.number}})
		}
	}
	return nil
}

// fill hands over the next segment, and what waits once nothing is between.
func (s *Splicer) fill(ctx context.Context, at topicPartition, p *splicedPartition, visit Visit) error {
	end := p.waiting[0].Offset
	records, err := s.cfg.Archive.Segment(ctx, at.topic, at.number, p.next, end)
	if err != nil {
		return fmt.Errorf("reading %s/%d from the archive: %w", at.topic, at.number, err)
	}
	if len(records) > 0 {
		p.next = records[len(records)-1].Offset + 1
		if err := visit(at.topic, at.number, records); err != nil {
			return err
		}
		if p.next < end {
			return nil
		}
	}
	waiting := p.waiting
	p.waiting, p.next = nil, waiting[len(waiting)-1].Offset+1
	s.behind--
	return visit(at.topic, at.number, waiting)
}
