package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/stream/streamtest"
)

const (
	// diskBytes is enough for the log and the views of some minutes of two venues.
	diskBytes = 640 << 20
	// linesWhileFull is how many lines a minute may be logged while the disk is full, and until all goes on: one of each
	// message, of which there are some twenty.
	linesWhileFull = 20
)

// smallDisk mounts a small disk of so many bytes.
func smallDisk(t *testing.T, dir string, size int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=700,size="+strconv.Itoa(size))
	if errors.Is(err, unix.EPERM) {
		streamtest.Missing(t, streamtest.TierEmbedded, "only root may mount a small disk")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill takes every byte of the disk, also what is given back meanwhile, until free is called.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	take := func() {
		for block := make([]byte, 1<<20); len(block) > 0; {
			if n, err := file.Write(block); err != nil && n == 0 {
				block = block[:len(block)/2] // the last bytes in smaller pieces
			}
		}
	}
	take()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				take()
			}
		}
	}()
	return func() {
		stop()
		<-done
		if err := errors.Join(file.Close(), os.Remove(name)); err != nil {
			t.Error(err)
		}
	}
}

// noRoom is nil once the instance reports that it is not ready for want of room, and serves prices as stale or not at all.
func (in *instance) noRoom() error {
	answer, err := http.Get("http://" + in.rest + "/readyz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusServiceUnavailable || !bytes.Contains(body, []byte(`"disk"`)) || !bytes.Contains(body, []byte(in.dir)) {
		return fmt.Errorf("it answers %s %s", answer.Status, body)
	}
	price, err := http.Get("http://" + in.rest + "/api/v1/prices/BTC")
	if err != nil {
		return err
	}
	defer price.Body.Close()
	if body, err = io.ReadAll(price.Body); err != nil {
		return err
	}
	if price.StatusCode == http.StatusOK && !bytes.Contains(body, []byte(`"isStale":true`)) {
		return fmt.Errorf("a price is answered %s", body)
	}
	return nil
}

// lines counts what was logged so far.
func (p *program) lines(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(log), "\n")
}

// However often the disk has no byte left, also at a start: the instance reports it, prices state that they are old, and when
// there is room all goes on by itself; nothing that was acknowledged is lost, and the views are those of the log.
func TestFullDiskLosesNothing(t *testing.T) {
	times := 1
	if text := os.Getenv("MARKETLOG_FULL_DISKS"); text != "" {
		var err error
		if times, err = strconv.Atoi(text); err != nil || times < 1 {
			t.Fatalf("MARKETLOG_FULL_DISKS=%q, want how often the disk is filled", text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := newRound(ctx, t, build(t), seedOf(t))
	smallDisk(t, r.in.dir, diskBytes)
	r.put(-minutePasses)
	r.rest = read(ctx, r.in.rest)
	p := r.passMinute(r.start("live", "")) // from here on prices are of now
	eventually(t, "being ready", time.Minute, r.in.ready)
	r.seeMinute()
	for i := range times {
		began, before := time.Now(), r.in.lines(t)
		free := fill(t, r.in.dir)
		eventually(t, "reporting that the disk is full", 2*views.StaleAfter, r.in.noRoom)
		if p.ended(10 * time.Second) {
			t.Fatalf("on a full disk it ended by itself: %v\n%s", p.state, r.in.tail())
		}
		free()
		freed := time.Now()
		eventually(t, "being ready with room again", 2*time.Minute, r.in.ready)
		lines, minutes := r.in.lines(t)-before, int(time.Since(began)/time.Minute)+1
		t.Logf("%d lines were logged in %s", lines, time.Since(began).Round(time.Second))
		if most := minutes * linesWhileFull; lines > most {
			t.Errorf("on a full disk %d lines were logged, want %d or fewer\n%s", lines, most, r.in.tail())
		}
		r.catchUpLive()
		t.Logf("filled for %s, ready again after %s (%d of %d)", freed.Sub(began).Round(time.Second), time.Since(freed).Round(time.Second), i+1, times)
	}
	p.kill()
	free := fill(t, r.in.dir)
	p = r.start("live", "")
	eventually(t, "reporting at the start that the disk is full", time.Minute, r.in.noRoom)
	if p.ended(5 * time.Second) {
		t.Fatalf("on a full disk it ended by itself: %v\n%s", p.state, r.in.tail())
	}
	free()
	eventually(t, "being ready with room again", 2*time.Minute, r.in.ready)
	r.catchUpLive()
	p.stop(t)

	p = r.start("none", "")
	r.settle()
	var result report
	r.checkEvents(&result)
	r.checkViews(&result)
	r.operator.verify()
	r.rest.check(t)
	streamtest.Report(t, "fillings", times+1)
	streamtest.Report(t, "acknowledged_ticks", result.Acked)
	gaps, err := rows[struct{ N int }](ctx, r.scene.in, "SELECT count() AS n FROM v_gaps WHERE reason = 'disk' AND venue = 'coinbase' AND to_time > from_time")
	if err != nil {
		t.Fatal(err)
	}
	if gaps[0].N < times {
		t.Errorf("%d gaps show that the disk was full, want %d or more", gaps[0].N, times)
	}
	p.stop(t)
}
