package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// testAdmin serves verbs on a socket of its own; stop ends it and waits, and may be called again.
func testAdmin(t *testing.T, verbs ...Command) (socket string, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "admin") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "admin.sock")
	server := &Server{Verbs: NewVerbs(verbs...), Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, socket) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); os.RemoveAll(dir) })
	for _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist); _, err = os.Stat(socket) {
		time.Sleep(time.Millisecond)
	}
	return socket, stop
}

func collect(lines *[]string) func(json.RawMessage) error {
	return func(line json.RawMessage) error {
		*lines = append(*lines, string(line))
		return nil
	}
}

func TestShortVerbAnswersLinesAndErrors(t *testing.T) {
	socket, stop := testAdmin(t, Command{Name: "keys.create", Run: func(_ context.Context, input json.RawMessage, emit func(any) error) error {
		var in struct{ Plan string }
		if err := json.Unmarshal(input, &in); err != nil {
			return err
		}
		if err := emit(map[string]string{"key": "of " + in.Plan}); err != nil {
			return err
		}
		return errors.New("creating a key: no such plan")
	}})
	defer stop()
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v (%v), want 0600", info.Mode().Perm(), err)
	}
	var lines []string
	err := CallRunning(t.Context(), socket, Command{Name: "keys.create"}, Start, map[string]string{"plan": "gold"}, collect(&lines))
	if err == nil || err.Error() != "creating a key: no such plan" {
		t.Errorf("got error %v, want the verb's own", err)
	}
	if want := []string{`{"key":"of gold"}`}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	if err := CallRunning(t.Context(), socket, Command{Name: "keys.burn"}, Start, nil, collect(&lines)); err == nil || !strings.Contains(err.Error(), `cannot "keys.burn"`) {
		t.Errorf("an unknown verb: got %v", err)
	}
}

// Whoever starts long work may leave; others see it from its beginning, and can end it.
func TestLongWorkOutlivesItsCaller(t *testing.T) {
	step := make(chan int)
	replay := Command{Name: "replay", Long: true}
	served := replay
	served.Run = func(ctx context.Context, _ json.RawMessage, emit func(any) error) error {
		for {
			select {
			case n := <-step:
				if err := emit(n); err != nil {
					return err
				}
			case <-ctx.Done():
				return fmt.Errorf("replaying: %w", ctx.Err())
			}
		}
	}
	socket, stop := testAdmin(t, served)
	defer stop()

	first, leave := context.WithCancel(t.Context())
	seen := make(chan string)
	left := make(chan error, 1)
	go func() {
		left <- CallRunning(first, socket, replay, Start, nil, func(line json.RawMessage) error { seen <- string(line); return nil })
	}()
	step <- 1
	if got := <-seen; got != "1" {
		t.Fatalf("the first caller sees %s, want 1", got)
	}
	err := CallRunning(t.Context(), socket, replay, Start, nil, collect(new([]string)))
	if err == nil || !strings.Contains(err.Error(), "running already") {
		t.Errorf("a second start: got %v", err)
	}
	leave()
	if err := <-left; !errors.Is(err, errDetached) {
		t.Errorf("leaving: got %v, want that it is detached", err)
	}
	step <- 2 // it still runs

	attached := make(chan error, 1)
	go func() {
		attached <- CallRunning(t.Context(), socket, replay, Attach, nil, func(line json.RawMessage) error { seen <- string(line); return nil })
	}()
	if got := []string{<-seen, <-seen}; !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("who attaches sees %q, want all lines", got)
	}
	var lines []string
	cancelled := CallRunning(t.Context(), socket, replay, Cancel, nil, collect(&lines))
	if err := <-attached; err == nil || cancelled == nil || err.Error() != replay.Ended().Error() || cancelled.Error() != err.Error() {
		t.Errorf("after --cancel: attached got %v, cancelling got %v", err, cancelled)
	}
	// Its end can be looked up, and it can be started again.
	if err := CallRunning(t.Context(), socket, replay, Attach, nil, collect(&lines)); err == nil || err.Error() != replay.Ended().Error() {
		t.Errorf("attaching after the end: got %v", err)
	}
	go func() { left <- CallRunning(t.Context(), socket, replay, Start, nil, collect(&lines)) }()
	step <- 3
	stop() // the instance ends: so does the job, and its followers are notified
	if err := <-left; err == nil || err.Error() != replay.Ended().Error() {
		t.Errorf("when the instance ends: got %v", err)
	}
}

func TestSlowFollowerStillSeesTheEnd(t *testing.T) {
	v := Command{Name: "v", Long: true, Run: func(_ context.Context, _ json.RawMessage, emit func(any) error) error {
		for i := range 3 * jobLines {
			if err := emit(i); err != nil {
				return err
			}
		}
		return nil
	}}
	j := startJob(t.Context(), v, nil)
	<-j.done
	var got []Reply
	j.Follow(t.Context(), func(r Reply) error { got = append(got, r); return nil })
	if len(got) != jobLines || !got[len(got)-1].End || string(got[0].Line) != fmt.Sprint(2*jobLines+1) {
		t.Errorf("got %d replies from %s to %+v, want the newest %d and the end", len(got), got[0].Line, got[len(got)-1], jobLines)
	}
}

func TestWithoutInstanceNothingCanBeAttachedTo(t *testing.T) {
	err := CallHere(t.Context(), Command{Name: "replay", Long: true}, Attach, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "no instance is running") {
		t.Errorf("got %v", err)
	}
}
