package diskguard

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// While the disk is full each message is one line a minute, whoever says it; what was left out is counted, nothing is left
// out otherwise.
func TestMessagesAreOneLineAMinuteWhileTheDiskIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{Space: Space{Free: 2 * reserve, Total: 100 * reserve}}
		g := New(Config{Dir: t.TempDir(), Reserve: reserve, Space: d.space})
		var out bytes.Buffer
		log := slog.New(g.Quiet(slog.NewTextHandler(&out, nil)))
		// emit logs two messages every second, of 20 roles, and counts the lines that come out by message.
		emit := func(seconds int) map[string]int {
			out.Reset()
			for range seconds {
				for role := range 20 {
					log.With("role", fmt.Sprint(role)).Error("role failed")
				}
				log.Warn("waiting for a store")
				time.Sleep(time.Second) // of the bubble's clock
			}
			return map[string]int{"role": strings.Count(out.String(), "role failed"), "store": strings.Count(out.String(), "waiting for a store")}
		}
		if got := emit(10); got["role"] != 200 || got["store"] != 10 {
			t.Errorf("with room: got %v lines, want all", got)
		}
		d.free(0)
		g.Look()
		if got := emit(180); got["role"] != 3 || got["store"] != 3 {
			t.Errorf("three minutes without room: got %v lines, want one a minute of each", got)
		}
		if want := fmt.Sprintf("left_out=%d", 20*60-1); !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant %s", &out, want)
		}
		d.free(2 * reserve)
		g.Look()
		if got := emit(59); got["role"] != 1 || got["store"] != 1 {
			t.Errorf("in the minute afterwards: got %v lines, want one of each", got)
		}
		time.Sleep(2 * time.Second)
		if got := emit(10); got["role"] != 200 || got["store"] != 10 {
			t.Errorf("a minute after there was room: got %v lines, want all", got)
		}
		if !strings.Contains(out.String(), "left_out=") {
			t.Errorf("what was left out at last is not counted: %s", &out)
		}
	})
}

// Messages that are all different are bounded in memory, and pass.
func TestRememberedMessagesAreBounded(t *testing.T) {
	d := &disk{Space: Space{Free: 0, Total: 100 * reserve}}
	var out bytes.Buffer
	q := New(Config{Dir: t.TempDir(), Reserve: reserve, Space: d.space}).Quiet(slog.NewTextHandler(&out, nil)).(quiet)
	log := slog.New(q)
	for i := range 2 * mostMessages {
		log.Info(fmt.Sprint("a client sent ", i))
	}
	if lines := strings.Count(out.String(), "\n"); lines != 2*mostMessages || len(q.messages) > mostMessages {
		t.Errorf("got %d lines and %d messages remembered, want %d and %d at most", lines, len(q.messages), 2*mostMessages, mostMessages)
	}
}
