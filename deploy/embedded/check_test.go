package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
)

const (
	checkedTopic   = "ticks.raw.v1" // a name with a dot, as ours
	checkedRecords = 600
)

// stoppedLog makes a log of one partition in some segments, whose record n holds n, and stops its broker.
func stoppedLog(t *testing.T) (dir, partition string, bases []int64) {
	t.Helper()
	dir = t.TempDir()
	broker := startBroker(t, dir)
	// Segments of an eighth of the bound.
	createTopic(t, broker.Addr(), schemas.Topic{Name: checkedTopic, Partitions: 1, EmbeddedBytes: 512 << 10})
	producer := connect(t, broker.Addr(), kgo.DefaultProduceTopic(checkedTopic), kgo.ProducerBatchCompression(kgo.NoCompression()))
	filling := strings.Repeat("x", 1000)
	for n := 0; n < checkedRecords; n += 10 { // batches of ten
		var records []*kgo.Record
		for i := range 10 {
			records = append(records, &kgo.Record{Value: fmt.Appendf(nil, "%d %s", n+i, filling)})
		}
		if err := producer.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	broker.Close()
	partition = filepath.Join(dir, "partitions", checkedTopic+"-0")
	bases, err := segmentBases(partition)
	if err != nil || len(bases) < 5 {
		t.Fatalf("got segments %v, %v, want five or more", bases, err)
	}
	return dir, partition, bases
}

// readNumbers reads all records of a topic up to its end, with the client of folds and sinks.
func readNumbers(t *testing.T, addr string) (numbers []int64) {
	t.Helper()
	end := endOffset(t, addr, checkedTopic)
	reader := connect(t, addr, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{checkedTopic: {0: kgo.NewOffset().AtStart()}}))
	last := &kgo.Record{Topic: checkedTopic, Value: []byte("last")}
	if err := connect(t, addr).ProduceSync(t.Context(), last).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if last.Offset != end {
		t.Errorf("the next record got offset %d, want %d", last.Offset, end)
	}
	for t.Context().Err() == nil {
		fetches := reader.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		done := false
		fetches.EachRecord(func(r *kgo.Record) {
			if done = done || r.Offset == end; done {
				return
			}
			text, _, _ := strings.Cut(string(r.Value), " ")
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n != r.Offset {
				t.Fatalf("the record at %d says %q", r.Offset, text)
			}
			numbers = append(numbers, n)
		})
		if done {
			return numbers
		}
	}
	return numbers
}

func flip(t *testing.T, name string, at int64) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(4) {
		raw[at+i] ^= 0xff
	}
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is damaged while nobody looks is named by file and offsets at the start, and everything else can be read.
func TestDamageIsNamedAndTheRestIsRead(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, partition string, bases []int64)
		// segment is the damaged one, lost [from, next) what is gone; kept means that the file is there, set aside.
		segment int
		kept    bool
		lost    func(bases []int64) (from, next int64)
	}{
		{"bytes flipped in the middle of a sealed segment", func(t *testing.T, partition string, bases []int64) {
			flip(t, segmentName(partition, bases[1]), 30_000)
		}, 1, true, func(bases []int64) (int64, int64) { return bases[1] + 20, bases[1] + 30 }},
		{"bytes flipped at the head of a batch", func(t *testing.T, partition string, bases []int64) {
			flip(t, segmentName(partition, bases[1]), 8)
		}, 1, true, func(bases []int64) (int64, int64) { return bases[1], bases[1] + 10 }},
		{"a sealed segment cut short", func(t *testing.T, partition string, bases []int64) {
			name := segmentName(partition, bases[2])
			info, err := os.Stat(name)
			if err == nil {
				err = os.Truncate(name, info.Size()-37)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, 2, true, func(bases []int64) (int64, int64) { return bases[3] - 10, bases[3] }},
		{"a sealed segment deleted", func(t *testing.T, partition string, bases []int64) {
			remove(t, segmentName(partition, bases[2]))
		}, 2, false, func(bases []int64) (int64, int64) { return bases[2], bases[3] }},
		{"the first segment deleted", func(t *testing.T, partition string, bases []int64) {
			remove(t, segmentName(partition, bases[0]))
		}, 0, false, func(bases []int64) (int64, int64) { return bases[0], bases[1] }},
		{"the last segment deleted", func(t *testing.T, partition string, bases []int64) {
			remove(t, segmentName(partition, bases[len(bases)-1]))
		}, -1, false, func(bases []int64) (int64, int64) { return bases[len(bases)-1], checkedRecords }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir, partition, bases := stoppedLog(t)
			if found, err := CheckLog(dir); err != nil || len(found) > 0 {
				t.Fatalf("before it is damaged: got %v, %v", found, err)
			}
			segment := test.segment
			if segment < 0 {
				segment += len(bases)
			}
			name := segmentName(partition, bases[segment])
			test.damage(t, partition, bases)
			damaged, _ := os.ReadFile(name)
			from, next := test.lost(bases)

			named, err := CheckLog(dir)
			if err != nil || len(named) != 1 || named[0].From != from || named[0].Next != next {
				t.Errorf("the check of a stopped log: got %v, %v", named, err)
			}
			broker := startBroker(t, dir)
			found := broker.Damages()
			if len(found) != 1 {
				t.Fatalf("got %d damages, want 1: %v", len(found), found)
			}
			d := found[0]
			if d.Topic != checkedTopic || d.From != from || d.Next != next || !strings.HasSuffix(d.File, filepath.Base(name)) {
				t.Errorf("got %v, want offsets %d to %d of %s", d, from, next, filepath.Base(name))
			}
			if first, last := segment == 0, segment == len(bases)-1; d.After.IsZero() != (first || from == 0) || d.Before.IsZero() != last {
				t.Errorf("got the interval %v to %v", d.After, d.Before)
			}
			if test.kept {
				if aside, err := os.ReadFile(filepath.Join(dir, d.Kept)); err != nil || !bytes.Equal(aside, damaged) {
					t.Errorf("the damaged file is not kept whole: %v", err)
				}
			}
			var want []int64
			for n := range int64(checkedRecords) {
				if n < from || n >= next {
					want = append(want, n)
				}
			}
			if got := readNumbers(t, broker.Addr()); !slices.Equal(got, want) {
				t.Errorf("got %d records, want %d", len(got), len(want))
			}
			broker.Close()

			// It is reported until it is settled, and found once.
			broker = startBroker(t, dir)
			if again := broker.Damages(); len(again) != 1 || again[0].From != from {
				t.Errorf("at the next start: got %v", again)
			}
			if err := broker.Settle(); err != nil {
				t.Error(err)
			}
			broker.Close()
			broker = startBroker(t, dir)
			if settled := broker.Damages(); len(settled) > 0 {
				t.Errorf("after it was settled: got %v", settled)
			}
			broker.Close()
		})
	}
}

// While a broker has the log open, its sealed segments can be verified, and damage of them is found before the next start.
func TestSealedSegmentsAreVerifiedBesideTheBroker(t *testing.T) {
	t.Parallel()
	dir, partition, bases := stoppedLog(t)
	broker := startBroker(t, dir)
	defer broker.Close()
	check := func() string {
		t.Helper()
		if err := connect(t, broker.Addr()).ProduceSync(t.Context(), &kgo.Record{Topic: checkedTopic, Value: []byte("more")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		found, segments, err := CheckSealed(dir)
		if err != nil || segments < len(bases)-1 {
			t.Fatalf("got %d segments, %v, want %d or more", segments, err, len(bases)-1)
		}
		return fmt.Sprint(found)
	}
	if found := check(); found != "[]" {
		t.Errorf("before it is damaged: got %s", found)
	}
	flip(t, segmentName(partition, bases[1]), 30_000)
	if found, want := check(), fmt.Sprintf("%d.dat does not have its checksum any more: offsets %d to %d", bases[1], bases[1], bases[2]-1); !strings.Contains(found, want) {
		t.Errorf("got %s, want %q", found, want)
	}
	remove(t, segmentName(partition, bases[2]))
	if found, want := check(), fmt.Sprintf("%d.dat is missing", bases[2]); !strings.Contains(found, want) {
		t.Errorf("got %s, want %q", found, want)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

// The other client that reads the log passes over what keeps lost offsets as well.
func TestTailPassesOverLostOffsets(t *testing.T) {
	t.Parallel()
	dir, partition, bases := stoppedLog(t)
	remove(t, segmentName(partition, bases[len(bases)-1]))
	flip(t, segmentName(partition, bases[1]), 30_000)
	broker := startBroker(t, dir)
	defer broker.Close()
	if err := connect(t, broker.Addr()).ProduceSync(t.Context(), &kgo.Record{Topic: checkedTopic, Value: []byte("last")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	tail := stream.NewTail(stream.TailConfig{Brokers: []string{broker.Addr()}, Topic: checkedTopic, Rewind: time.Hour})
	read, last := 0, false
	_ = tail.Run(ctx, func(r stream.TailRecord) error {
		read++
		if last = string(r.Value) == "last"; last {
			stop()
		}
		return nil
	})
	if want := int(bases[len(bases)-1]) - 10 + 1; !last || read != want {
		t.Errorf("got %d records, the last one %v; want %d", read, last, want)
	}
}

// Retention drops segments, which is no damage.
func TestRetentionIsNoDamage(t *testing.T) {
	t.Parallel()
	dir, partition, bases := stoppedLog(t)
	broker := startBroker(t, dir)
	ctx, stop := context.WithCancel(t.Context())
	swept := make(chan struct{})
	go func() { defer close(swept); broker.Sweep(ctx, time.Hour) }()
	until(t, "the first segment to be dropped", func() bool {
		left, err := segmentBases(partition)
		return err == nil && left[0] > bases[0]
	})
	stop()
	<-swept
	broker.Close()
	if found, err := CheckLog(dir); err != nil || len(found) > 0 {
		t.Errorf("got %v, %v, want no damage", found, err)
	}
}

// Without its files of state the broker would not start, or begin a new log on the old one.
func TestStateIsMadeAnew(t *testing.T) {
	t.Parallel()
	for _, damage := range []func(name string) error{
		func(name string) error { return os.Truncate(name, 0) },
		os.Remove,
	} {
		for _, name := range []string{"topics.json", "meta.json"} {
			dir, _, _ := stoppedLog(t)
			if err := damage(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			broker := startBroker(t, dir)
			if got := readNumbers(t, broker.Addr()); len(got) != checkedRecords {
				t.Errorf("%s: got %d records, want %d", name, len(got), checkedRecords)
			}
			broker.Close()
		}
	}
}

// Whatever file beside the segments a failing disk left without a byte, the log starts, and has all records.
func TestEmptyFilesOfStateAreMadeAnew(t *testing.T) {
	t.Parallel()
	dir, partition, _ := stoppedLog(t)
	emptied := 0
	for _, place := range []string{dir, partition} {
		entries, err := os.ReadDir(place)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() || strings.HasSuffix(e.Name(), segmentSuffix) {
				continue
			}
			if err := os.Truncate(filepath.Join(place, e.Name()), 0); err != nil {
				t.Fatal(err)
			}
			emptied++
		}
	}
	if emptied < 10 {
		t.Errorf("emptied %d files, want all of the state", emptied)
	}
	broker := startBroker(t, dir)
	defer broker.Close()
	if got := readNumbers(t, broker.Addr()); len(got) != checkedRecords {
		t.Errorf("got %d records, want %d", len(got), checkedRecords)
	}
	if found := broker.Damages(); len(found) > 0 {
		t.Errorf("got damages %v, want none", found)
	}
}

// A torn piece in the log of groups, as earlier versions left it on a full disk, hides nothing after it.
func TestTornStateLogIsRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "groups.log")
	a, b := frame(`{"a":1}`), frame(`{"b":2}`)
	if err := os.WriteFile(name, slices.Concat(a, b[:len(b)-3], b, a[:5]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := mendEntries(name, newBrokerDisk(nil).log); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, slices.Concat(a, b)) {
		t.Errorf("got %q, %v, want both entries", got, err)
	}
}

// frame is an entry of a state log.
func frame(text string) []byte {
	body := append([]byte{1, 0}, text...)
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	return append(b, body...)
}
