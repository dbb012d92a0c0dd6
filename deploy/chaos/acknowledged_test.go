package chaos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
)

// place is where a record is.
type place struct {
	topic     string
	partition int32
	offset    int64
}

// ackedRecords are what brokers acknowledged to any process, with the digest of its value.
func (in *installation) ackedRecords(t *testing.T) map[place]uint64 {
	t.Helper()
	content, err := os.ReadFile(in.acks + ".records")
	if err != nil {
		t.Fatal(err)
	}
	return ackedIn(t, content)
}

// ackedLine is one record. Of a process that was killed while it wrote one, a line may be cut anywhere: what it says is not counted.
var ackedLine = regexp.MustCompile(`^(\S+) (\d+) (\d+) ([0-9a-f]{16})$`)

func ackedIn(t *testing.T, content []byte) map[place]uint64 {
	t.Helper()
	acked := map[place]uint64{}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		if !ackedLine.Match(lines.Bytes()) {
			continue
		}
		var at place
		var digest uint64
		if _, err := fmt.Sscanf(lines.Text(), "%s %d %d %x", &at.topic, &at.partition, &at.offset, &digest); err != nil {
			t.Fatalf("reading %q of what was acknowledged: %v", lines.Text(), err)
		}
		acked[at] = digest
	}
	return acked
}

// checkAcknowledged asks whether the log holds every record that was acknowledged, of every topic, where it was acknowledged and
// with the same value, and returns how many there are of each topic.
func (s *scene) checkAcknowledged() map[string]int {
	t := s.t
	t.Helper()
	acked := s.in.ackedRecords(t)
	counts, ends := map[string]int{}, map[string]map[int32]int64{}
	for at := range acked {
		counts[at.topic]++
		if ends[at.topic] == nil {
			ends[at.topic] = map[int32]int64{}
		}
		ends[at.topic][at.partition] = max(ends[at.topic][at.partition], at.offset+1)
	}
	var wrong []string
	err := readAll(t.Context(), s.in.kafka, ends, func(r *kgo.Record) {
		at := place{r.Topic, r.Partition, r.Offset}
		want, ok := acked[at]
		delete(acked, at)
		digest := fnv.New64a()
		_, _ = digest.Write(r.Value)
		if ok && digest.Sum64() != want {
			wrong = append(wrong, fmt.Sprintf("%v holds another record than was acknowledged", at))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for at := range acked {
		if topic, err := schemas.TopicNamed(at.topic); err != nil || !topic.Compacted {
			wrong = append(wrong, fmt.Sprintf("the acknowledged record at %v is gone", at))
		}
	}
	slices.Sort(wrong)
	for _, w := range first(wrong) {
		t.Error(w)
	}
	t.Logf("acknowledged records by topic: %v; %d of them are not there", counts, len(wrong))
	return counts
}

// readAll reads partitions from their first record up to given ends, which are below theirs.
func readAll(ctx context.Context, broker string, ends map[string]map[int32]int64, visit func(*kgo.Record)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.FetchMaxWait(250*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	var names []string
	for topic := range ends {
		names = append(names, topic)
	}
	bounds, err := kadm.NewClient(client).ListEndOffsets(ctx, names...)
	if err == nil {
		err = bounds.Error()
	}
	if err != nil {
		return fmt.Errorf("asking for the ends of the log: %w", err)
	}
	from, left := map[string]map[int32]kgo.Offset{}, map[string]map[int32]int64{}
	for topic, partitions := range ends {
		from[topic], left[topic] = map[int32]kgo.Offset{}, map[int32]int64{}
		for p, end := range partitions {
			there, _ := bounds.Lookup(topic, p)
			if there.Offset < end {
				return fmt.Errorf("%s/%d ends at %d, and the record at %d was acknowledged", topic, p, there.Offset, end-1)
			}
			from[topic][p], left[topic][p] = kgo.NewOffset().AtStart(), end
		}
	}
	client.AddConsumePartitions(from)
	for len(left) > 0 {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err0(); err != nil {
			return fmt.Errorf("reading the log, with %v left: %w", left, err)
		}
		fetched.EachError(func(topic string, p int32, failed error) {
			err = errors.Join(err, fmt.Errorf("reading %s/%d: %w", topic, p, failed))
		})
		if err != nil {
			return err
		}
		fetched.EachRecord(func(r *kgo.Record) {
			visit(r)
			if end, ok := left[r.Topic][r.Partition]; ok && r.Offset >= end-1 {
				delete(left[r.Topic], r.Partition)
				if len(left[r.Topic]) == 0 {
					delete(left, r.Topic)
				}
			}
		})
	}
	return nil
}

// A process is killed after each byte of its last line, and another goes on in the same file.
func TestWhatAKillCutsHidesNoOtherRecord(t *testing.T) {
	const cut, whole = "\nticks.v1 6 1813 d03330191064461e\n", "\nticks.v1 6 1814 85944171f73967e8\n"
	for n := range len(cut) + 1 {
		acked := ackedIn(t, []byte(cut[:n]+whole))
		if acked[place{"ticks.v1", 6, 1814}] != 0x85944171f73967e8 || len(acked) > 2 || len(acked) == 2 && acked[place{"ticks.v1", 6, 1813}] != 0xd03330191064461e {
			t.Errorf("cut after %d bytes: %v", n, acked)
		}
	}
}
