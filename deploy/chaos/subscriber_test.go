package chaos

import (
	"context"
	"fmt"
	"hash/crc32"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// subscriber follows prices.v1 from its beginning through every kill, as the price stream does: with
// explicit offsets, and dropping what lies at or below the last mark.
type subscriber struct {
	broker string

	mu    sync.Mutex
	seen  map[int32][]uint32 // the checksum of each record, by offset
	times map[string]int64
	count int
	wrong []string
}

// follow reads all partitions until the context ends.
func follow(ctx context.Context, broker string) *subscriber {
	s := &subscriber{broker: broker, seen: map[int32][]uint32{}, times: map[string]int64{}}
	topic, _ := schemas.TopicNamed(schemas.TopicPrices)
	for p := range topic.Partitions {
		go s.partition(ctx, p)
	}
	return s
}

func (s *subscriber) partition(ctx context.Context, p int32) {
	var last *eventsv1.Mark
	next := int64(0)
	for ctx.Err() == nil {
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{s.broker}, Topic: schemas.TopicPrices, Partition: int(p),
			MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 250 * time.Millisecond,
			ReadBackoffMin: 20 * time.Millisecond, ReadBackoffMax: 200 * time.Millisecond,
			Dialer: &kafka.Dialer{Timeout: time.Second},
		})
		_ = reader.SetOffset(next) // fails only on a closed reader
		for {
			m, err := reader.ReadMessage(ctx)
			if err != nil {
				break
			}
			last = s.take(p, m, last)
			next = m.Offset + 1
		}
		_ = reader.Close()
	}
}

func (s *subscriber) take(p int32, m kafka.Message, last *eventsv1.Mark) *eventsv1.Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := int64(len(s.seen[p])); m.Offset != want {
		s.wrong = append(s.wrong, fmt.Sprintf("prices.v1/%d: got offset %d, want %d", p, m.Offset, want))
	}
	s.seen[p] = append(s.seen[p], crc32.ChecksumIEEE(m.Value))
	rec := &eventsv1.PriceRecord{}
	if err := rec.UnmarshalVT(m.Value); err != nil {
		s.wrong = append(s.wrong, fmt.Sprintf("prices.v1/%d at %d: %v", p, m.Offset, err))
		return last
	}
	if rec.GetControl() != nil {
		return last // a replay's word to the sinks: no input caused it
	}
	if last != nil && (rec.Mark.Offset < last.Offset || rec.Mark.Offset == last.Offset && rec.Mark.Index <= last.Index) {
		return last
	}
	if price := rec.GetPrice(); price != nil {
		s.count++
		if before := s.times[price.CoinId]; price.Time <= before {
			s.wrong = append(s.wrong, fmt.Sprintf("%s: %v came after %v", price.CoinId, time.Unix(0, price.Time).UTC(), time.Unix(0, before).UTC()))
		}
		s.times[price.CoinId] = price.Time
	}
	return rec.Mark
}

// check reports what went wrong, and whether the log still holds what the subscriber saw.
func (s *subscriber) check(t *testing.T, log map[int32][]oracle.Record) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range first(s.wrong) {
		t.Errorf("a subscriber saw: %s", w)
	}
	for p, sums := range s.seen {
		if len(sums) > len(log[p]) {
			t.Errorf("a subscriber saw %d records of prices.v1/%d, and the log holds %d", len(sums), p, len(log[p]))
			continue
		}
		for offset, sum := range sums {
			if crc32.ChecksumIEEE(log[p][offset].Value) != sum {
				t.Errorf("a subscriber saw another record in prices.v1/%d at %d than the log holds", p, offset)
				break
			}
		}
	}
	if s.count == 0 {
		t.Error("a subscriber saw no price")
	}
	t.Logf("a subscriber saw %d prices", s.count)
}

// first keeps a message readable.
func first(list []string) []string {
	const most = 10
	if len(list) <= most {
		return list
	}
	return append(list[:most:most], fmt.Sprintf("and %d more", len(list)-most))
}
