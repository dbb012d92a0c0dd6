package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
)

// volatileDisk knows what of its files a power failure would leave: the bytes that were flushed, of the files whose names
// were.
type volatileDisk struct {
	*brokerDisk
	mu      sync.Mutex
	flushed map[string]int64
	named   map[string]bool
}

func newVolatileDisk(t *testing.T) *volatileDisk {
	d := &volatileDisk{brokerDisk: newBrokerDisk(nil), flushed: map[string]int64{}, named: map[string]bool{}}
	d.sync = func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.flushed[f.Name()] = info.Size()
		return nil
	}
	d.syncDir = func(dir string) error {
		entries, err := os.ReadDir(dir)
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, e := range entries {
			d.named[filepath.Join(dir, e.Name())] = true
		}
		return err
	}
	return d
}

// afterPowerLoss copies what a power failure at this moment would leave of the log. The files of the log's state are taken
// as they are: a start recreates them.
func (d *volatileDisk) afterPowerLoss(t *testing.T, dir string) (left string) {
	t.Helper()
	left = t.TempDir()
	d.mu.Lock()
	defer d.mu.Unlock()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		to := filepath.Join(left, name)
		within := strings.HasPrefix(name, "partitions"+string(filepath.Separator))
		if within && !d.named[path] && (entry.IsDir() || strings.HasSuffix(name, ".dat")) {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // a temporary one
			return nil
		}
		if within && strings.HasSuffix(name, ".dat") {
			content = content[:d.flushed[path]]
		}
		return errors.Join(err, os.WriteFile(to, content, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// With kafka.sync_writes a power failure costs no acknowledged record, whenever it comes; without, it may cost those that
// were not flushed, and the log can be read all the same.
func TestPowerFailure(t *testing.T) {
	for _, flushing := range []bool{true, false} {
		t.Run(fmt.Sprintf("sync_writes=%v", flushing), func(t *testing.T) {
			topic := schemas.Topic{Name: "ticks", Partitions: 1, EmbeddedBytes: 64 << 10} // segments of 8 KiB
			dir := t.TempDir()
			disk := newVolatileDisk(t)
			broker, err := startBrokerOn(disk.brokerDisk, BrokerConfig{Dir: dir, Listen: "127.0.0.1:0", Password: testPassword, SyncWrites: flushing})
			if err != nil {
				t.Fatal(err)
			}
			defer broker.Close()
			createTopic(t, broker.Addr(), topic)
			producer := connect(t, broker.Addr(), kgo.DefaultProduceTopic(topic.Name), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()))
			const records = 600
			padding := strings.Repeat("x", 200)
			var acknowledged atomic.Int64
			var done sync.WaitGroup
			for i := range records {
				done.Add(1)
				producer.Produce(t.Context(), &kgo.Record{Value: fmt.Appendf(nil, "%d %s", i, padding)}, func(_ *kgo.Record, err error) {
					if err == nil {
						acknowledged.Add(1)
					}
					done.Done()
				})
				if i%100 != 99 {
					continue
				}
				until(t, "acknowledgements", func() bool { return acknowledged.Load() > int64(i)-50 })
				certain := acknowledged.Load()
				left := disk.afterPowerLoss(t, dir)
				again := startBroker(t, left)
				kept := int64(0)
				if _, err := os.Stat(filepath.Join(left, "partitions", "ticks-0")); err == nil {
					kept = endOffset(t, again.Addr(), topic.Name)
				}
				if flushing && kept < certain {
					t.Errorf("after %d acknowledgements a power failure leaves %d records", certain, kept)
				}
				if !flushing && kept > 0 {
					t.Errorf("nothing was flushed, and %d records are left: the test shows nothing", kept)
				}
				if kept > 0 {
					for j, value := range readValues(t, again.Addr(), topic.Name, int(kept)) {
						if number, _, _ := strings.Cut(value, " "); number != fmt.Sprint(j) {
							t.Fatalf("record %d is %s", j, number)
						}
					}
				}
				if damages := again.Damages(); flushing && len(damages) > 0 {
					t.Errorf("after a power failure the log is damaged: %v", damages)
				}
				again.Close()
			}
			done.Wait()
		})
	}
}

// A flush that fails is not acknowledged: the broker stops and reports it, and does not take the next flush, which the
// system answers well, for a success.
func TestFailedFlushIsNotAcknowledged(t *testing.T) {
	topic := schemas.Topic{Name: "ticks", Partitions: 1, EmbeddedBytes: 1 << 30}
	disk := newBrokerDisk(nil)
	var failing atomic.Bool
	disk.sync = func(f *os.File) error {
		if failing.Swap(false) { // once
			return &os.PathError{Op: "sync", Path: f.Name(), Err: syscall.EIO}
		}
		return f.Sync()
	}
	broker, err := startBrokerOn(disk, BrokerConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0", Password: testPassword, SyncWrites: true})
	if err != nil {
		t.Fatal(err)
	}
	createTopic(t, broker.Addr(), topic)
	producer := connect(t, broker.Addr(), kgo.DefaultProduceTopic(topic.Name))
	if err := producer.ProduceSync(t.Context(), &kgo.Record{Value: []byte("a")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	var acknowledged atomic.Bool
	producer.Produce(t.Context(), &kgo.Record{Value: []byte("b")}, func(_ *kgo.Record, err error) { acknowledged.Store(err == nil) })
	until(t, "the broker to stop", func() bool { return broker.Held() != nil })
	if err := broker.Held(); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "restart") {
		t.Errorf("it has stopped for %v", err)
	}
	producer.Close()
	broker.Close()
	if acknowledged.Load() {
		t.Error("what was not flushed was acknowledged")
	}
}
