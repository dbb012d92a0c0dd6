package embedded

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
)

// scriptedDisk has room for so many bytes: beyond them a write leaves a piece and fails, as on a full disk.
type scriptedDisk struct {
	*brokerDisk
	room   atomic.Int64
	failed atomic.Int64
}

func newScriptedDisk(room int64) *scriptedDisk {
	d := &scriptedDisk{brokerDisk: newBrokerDisk(nil)}
	d.room.Store(room)
	d.write = func(f *os.File, b []byte) (int, error) {
		if left := d.room.Add(-int64(len(b))); left < 0 {
			d.room.Add(int64(len(b)))
			d.failed.Add(1)
			n, _ := f.Write(b[:len(b)/2])
			return n, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
		}
		return f.Write(b)
	}
	return d
}

func startScripted(t *testing.T, d *scriptedDisk, dir string) *Broker {
	t.Helper()
	broker, err := startBrokerOn(d.brokerDisk, BrokerConfig{Dir: dir, Listen: "127.0.0.1:0", Password: testPassword})
	if err != nil {
		t.Fatal(err)
	}
	return broker
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// An append that a full disk refuses is cut back, and nothing is taken after it: when there is room, the log goes on
// where it was, without a gap, a torn piece or a record that was reported lost to its producer.
func TestFullDiskHoldsTheBroker(t *testing.T) {
	topic := schemas.Topic{Name: "ticks", Partitions: 1, EmbeddedBytes: 1 << 30}
	dir := t.TempDir()
	disk := newScriptedDisk(300 << 10)
	broker := startScripted(t, disk, dir)
	createTopic(t, broker.Addr(), topic)
	producer := connect(t, broker.Addr(), kgo.DefaultProduceTopic(topic.Name), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
	const records = 400
	var acknowledged sync.WaitGroup
	var lost atomic.Int64
	large := bytes.Repeat([]byte("x"), 8<<10)
	for i := range records {
		value := []byte(fmt.Sprintf("%d ", i))
		if i%2 == 0 { // what is small may fit where what is large did not
			value = append(value, large...)
		}
		acknowledged.Add(1)
		producer.Produce(t.Context(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				lost.Add(1)
			}
			acknowledged.Done()
		})
	}
	for range 3 {
		before := disk.failed.Load()
		until(t, "the disk to be full", func() bool { return disk.failed.Load() > before && broker.Held() != nil })
		disk.room.Store(300 << 10)
	}
	disk.room.Store(1 << 40)
	acknowledged.Wait()
	if lost.Load() > 0 {
		t.Errorf("got %d records that the broker refused, want none", lost.Load())
	}
	if err := broker.Held(); err != nil {
		t.Errorf("with room again the broker is still stopped: %v", err)
	}
	broker.Close()
	again := startBroker(t, dir)
	defer again.Close()
	values := readValues(t, again.Addr(), topic.Name, records)
	for i, value := range values {
		if number, _, _ := strings.Cut(value, " "); number != fmt.Sprint(i) {
			t.Fatalf("record %d: got %s, want %d", i, number, i)
		}
	}
}

// A broker that is held can be stopped, and what it was held by was not acknowledged.
func TestHeldBrokerCloses(t *testing.T) {
	topic := schemas.Topic{Name: "ticks", Partitions: 1, EmbeddedBytes: 1 << 30}
	dir := t.TempDir()
	disk := newScriptedDisk(1 << 20)
	broker := startScripted(t, disk, dir)
	createTopic(t, broker.Addr(), topic)
	producer := connect(t, broker.Addr(), kgo.DefaultProduceTopic(topic.Name), kgo.RecordDeliveryTimeout(time.Minute))
	if err := producer.ProduceSync(t.Context(), &kgo.Record{Value: []byte("a")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	disk.room.Store(0)
	producer.Produce(t.Context(), &kgo.Record{Value: []byte("b")}, nil)
	until(t, "the broker to be held", func() bool { return broker.Held() != nil })
	broker.Close()
	again := startBroker(t, dir)
	defer again.Close()
	if got := readValues(t, again.Addr(), topic.Name, 1); got[0] != "a" || endOffset(t, again.Addr(), topic.Name) != 1 {
		t.Errorf("got %q up to %d, want the record that was acknowledged", got, endOffset(t, again.Addr(), topic.Name))
	}
}

// The state logs are cut back as well: what a group committed after a failed append is there at the next start.
func TestFailedCommitIsCutBack(t *testing.T) {
	topic := schemas.Topic{Name: "ticks", Partitions: 1, EmbeddedBytes: 1 << 30}
	dir := t.TempDir()
	disk := newScriptedDisk(1 << 20)
	broker := startScripted(t, disk, dir)
	createTopic(t, broker.Addr(), topic)
	admin := kadm.NewClient(connect(t, broker.Addr()))
	commit := func(at int64) {
		offsets := kadm.Offsets{}
		offsets.AddOffset(topic.Name, 0, at, -1)
		if err := admin.CommitAllOffsets(t.Context(), "group", offsets); err != nil {
			t.Error(err)
		}
	}
	commit(1)
	disk.room.Store(0)
	done := make(chan struct{})
	go func() { defer close(done); commit(2) }()
	until(t, "the broker to be held", func() bool { return broker.Held() != nil })
	disk.room.Store(1 << 30)
	<-done
	commit(3)
	// A copy of what is there now is what a kill would leave.
	log, err := os.ReadFile(filepath.Join(dir, "groups.log"))
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	broker.Close()
	again := startBroker(t, copied)
	defer again.Close()
	offsets, err := kadm.NewClient(connect(t, again.Addr())).FetchOffsets(t.Context(), "group")
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := offsets.Lookup(topic.Name, 0); !ok || o.At != 3 {
		t.Errorf("groups.log of %d bytes: got offset %d, want 3", len(log), o.At)
	}
}

func readValues(t *testing.T, addr, topic string, n int) (values []string) {
	t.Helper()
	reader := connect(t, addr, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	for len(values) < n && t.Context().Err() == nil {
		fetches := reader.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}
