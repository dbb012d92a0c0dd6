package diskguard

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// disk is a scripted one, which a guard may look at while it changes.
type disk struct {
	Space
	err error
	mu  sync.Mutex
}

func (d *disk) space(string) (Space, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Space, d.err
}

func (d *disk) free(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Free = bytes
}

const reserve = 1 << 20

func TestIngestPausesInOrderAndGoesOnWithRoom(t *testing.T) {
	d := &disk{Space: Space{Free: 10 * reserve, Total: 100 * reserve}}
	dir := t.TempDir()
	g := New(Config{Dir: dir, Reserve: reserve, Space: d.space})
	for _, step := range []struct {
		free  int64
		level Level
		file  bool
	}{
		{10 * reserve, Open, true},
		{reserve, Open, true},
		{reserve - 1, Sources, true},
		{reserve + reserve/8, Sources, true}, // above the reserve, and not yet by enough
		{reserve/4*3 - 1, Feeds, false},
		{reserve, Feeds, false},
		{reserve + reserve/4 - 1, Feeds, false},
		{reserve + reserve/4, Open, true},
		{reserve / 2, Feeds, false}, // at once
		{0, Feeds, false},
		{2 * reserve, Open, true},
	} {
		d.Free = step.free
		g.Look()
		level, _ := g.Level()
		_, err := os.Stat(filepath.Join(dir, fileName))
		if level != step.level || (err == nil) != step.file {
			t.Errorf("with %d bytes free: got level %d, reserve file %v; want level %d, file %v", step.free, level, err == nil, step.level, step.file)
		}
		if waiting := g.Waiting(); (waiting == "") != (step.level == Open) || waiting != "" && !strings.Contains(waiting, dir) {
			t.Errorf("with %d bytes free it says %q", step.free, waiting)
		}
	}
	d.err = errors.New("no such disk")
	g.Look()
	if waiting := g.Waiting(); !strings.Contains(waiting, "no such disk") {
		t.Errorf("a disk that cannot be measured: got %q", waiting)
	}
}

func TestDefaultReserve(t *testing.T) {
	for total, want := range map[int64]int64{700 << 20: 35 << 20, 4 << 40: MaxReserve} {
		d := &disk{Space: Space{Free: want - 1, Total: total}}
		g := New(Config{Dir: t.TempDir(), Space: d.space})
		if level, _ := g.Level(); level != Sources {
			t.Errorf("a disk of %d with %d free: got level %d, want %d", total, want-1, level, Sources)
		}
		d.Free = want
		if g = New(Config{Dir: t.TempDir(), Space: d.space}); g.Waiting() != "" {
			t.Errorf("a disk of %d with %d free: got %q, want nothing", total, want, g.Waiting())
		}
	}
}

func TestReserveFileTakesItsSpace(t *testing.T) {
	dir := t.TempDir()
	d := &disk{Space: Space{Free: 1 << 30, Total: 1 << 34}}
	New(Config{Dir: dir, Reserve: 10<<20 + 8, Space: d.space})
	info, err := os.Stat(filepath.Join(dir, fileName))
	if err != nil || info.Size() != (10<<20+8)/fileShare {
		t.Fatalf("got %v, %v, want a file of an eighth of the reserve", info, err)
	}
}

// Where not even the reserve file's bytes are free, a start waits.
func TestAStartWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{Space: Space{Free: 0, Total: 100 * reserve}}
		g := New(Config{Dir: t.TempDir(), Reserve: reserve, Space: d.space})
		ended := make(chan error, 1)
		go func() { ended <- g.AwaitRoom(t.Context()) }()
		for _, free := range []int64{0, reserve/fileShare - 1, reserve / fileShare} {
			d.free(free)
			time.Sleep(2 * interval) // of the bubble's clock
			synctest.Wait()
			select {
			case err := <-ended:
				if err != nil || free < reserve/fileShare {
					t.Errorf("with %d bytes free it goes on, %v", free, err)
				}
				return
			default:
			}
		}
		t.Errorf("with %d bytes free it waits", reserve/fileShare)
	})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	d := &disk{Space: Space{Free: 0, Total: 100 * reserve}}
	if err := New(Config{Dir: t.TempDir(), Reserve: reserve, Space: d.space}).AwaitRoom(stopped); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: got %v", err)
	}
}

// What is paused ends and begins again; what ends by itself is not begun again.
func TestWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{Space: Space{Free: 0, Total: 100 * reserve}}
		var lines bytes.Buffer
		g := New(Config{Dir: t.TempDir(), Reserve: reserve, Space: d.space, Log: slog.New(slog.NewTextHandler(&lines, nil))})
		ctx, stop := context.WithCancel(t.Context())
		running, begun, broken := false, 0, errors.New("broken")
		fail := make(chan struct{})
		ended := make(chan error)
		go func() { _ = g.Run(ctx) }()
		go func() {
			ended <- g.While(ctx, Feeds, func(ctx context.Context) error {
				running, begun = true, begun+1
				defer func() { running = false }()
				select {
				case <-ctx.Done():
					return nil
				case <-fail:
					return broken
				}
			})
		}()
		for i, free := range []int64{0, 2 * reserve, 0, 2 * reserve, reserve - 1} {
			d.free(free)
			time.Sleep(2 * interval) // of the bubble's clock
			synctest.Wait()
			if want := free >= reserve/4*3; running != want {
				t.Errorf("step %d, %d bytes free: running %v, want %v", i, free, running, want)
			}
		}
		if begun != 2 {
			t.Errorf("begun %d times, want 2", begun)
		}
		before := strings.Count(lines.String(), "\n")
		d.free(reserve - 1) // as it was; what was read above comes before what the guard does next
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if n := strings.Count(lines.String(), "\n") - before; n != 10 {
			t.Errorf("logged %d times in 10 minutes, want 10", n)
		}
		fail <- struct{}{}
		if err := <-ended; !errors.Is(err, broken) {
			t.Errorf("got %v, want what ended it", err)
		}
		stop()
		synctest.Wait()
	})
}
