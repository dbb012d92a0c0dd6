package outbox

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/stream/faults"
)

// A process that writes is killed at the named steps, with and without a broker. Every event id that
// was acknowledged to it is in the log, and the last copies are in order.
func TestKilledWriterLosesNothingAcknowledged(t *testing.T) {
	if dir := os.Getenv("WRITER_CHILD"); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	broker := newFakeBroker(t)
	broker.start()
	dir := t.TempDir()
	acks, kills := filepath.Join(dir, "acks"), filepath.Join(dir, "kills")
	const perChild = 4000
	run := func(round int, fault string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledWriterLosesNothingAcknowledged$")
		child.Env = append(os.Environ(), "WRITER_CHILD="+dir, "WRITER_BROKER="+broker.Addr(),
			fmt.Sprintf("WRITER_FIRST=%d", round*1_000_000), fmt.Sprintf("WRITER_LAST=%d", round*1_000_000+perChild),
			"MARKETLOG_FAULT="+fault, "MARKETLOG_FAULT_LOG="+kills, "MARKETLOG_ACK_LOG="+acks)
		out, err := child.CombinedOutput()
		if ctx.Err() != nil {
			t.Fatalf("run with %q neither ended nor died\n%s", fault, out)
		}
		var exit *exec.ExitError
		switch {
		case fault == "" && err != nil:
			t.Fatalf("the last run: %v\n%s", err, out)
		case fault != "" && (!errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL):
			t.Fatalf("run with %s ended with %v, want SIGKILL\n%s", fault, err, out)
		}
	}
	// Without a broker a process dies writing the spool; the next dies sending it.
	steps := []string{
		"producer.produce:1500", "producer.spool:100", "producer.produce:3000",
		"producer.spool:40", "producer.produce:200", "producer.spool:200", "producer.produce:9000",
	}
	for round, fault := range steps {
		away := strings.HasPrefix(fault, "producer.spool")
		if away {
			broker.stop()
		}
		run(round, fault)
		if away {
			broker.start()
		}
	}
	run(len(steps), "")
	killed, err := os.ReadFile(kills)
	if err != nil || strings.Count(string(killed), "\n") != len(steps) {
		t.Fatalf("kills: %q, %v; want %d", killed, err, len(steps))
	}
	acked, err := os.ReadFile(acks)
	if err != nil {
		t.Fatal(err)
	}
	log := readLog(t, broker.Addr())
	inLog := map[string]int{}
	copies := 0
	for _, records := range log.ticks {
		for _, raw := range records {
			if tick := raw.GetTick(); tick != nil {
				inLog[hex.EncodeToString(tick.EventId)]++
				copies++
			}
		}
	}
	ids := map[string]bool{}
	for _, id := range strings.Fields(string(acked)) {
		ids[id] = true
	}
	if len(ids) < perChild {
		t.Fatalf("%d ids acknowledged: the test shows nothing", len(ids))
	}
	for id := range ids {
		if inLog[id] == 0 {
			t.Fatalf("acknowledged tick %s is not in the log", id)
		}
	}
	t.Logf("%d acknowledged; %d in the log, %d copies; %d kills", len(ids), len(inLog), copies, len(steps))
	log.wantTicks(t, 0, true, 0)
}

func writeUntilKilled(t *testing.T, dir string) {
	faults.Arm()
	var first, last int
	if _, err := fmt.Sscan(os.Getenv("WRITER_FIRST")+" "+os.Getenv("WRITER_LAST"), &first, &last); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t, os.Getenv("WRITER_BROKER"))
	cfg.SpoolDir = filepath.Join(dir, "spool")
	cfg.SpoolAfter = 50 * time.Millisecond
	w, err := NewWriter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	out := w.Source("alpha")
	// Without a plan to die it ends; with one it goes on until it is dead.
	for i := first; i < last || os.Getenv("MARKETLOG_FAULT") != ""; i++ {
		out.Tick(tickNumber("alpha", i, time.Now()))
		if i%50 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	settled(t, w)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
