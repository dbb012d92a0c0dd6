//go:build faults

package faults

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Enabled says whether this build can kill itself.
const Enabled = true

// plan is what the environment asks for. A value that makes no sense panics at the first use: a
// crash test that never crashes would pass for the wrong reason.
type plan struct {
	step string
	nth  int64
	hits atomic.Int64
	log  string
	acks *os.File
	// jumps is the file that says how far the clock is moved; empty: it is not.
	jumps string
}

var thePlan = sync.OnceValue(func() *plan {
	p := &plan{log: os.Getenv("MARKETLOG_FAULT_LOG"), jumps: os.Getenv("MARKETLOG_FAULT_CLOCK_FILE")}
	if fault := os.Getenv("MARKETLOG_FAULT"); fault != "" {
		step, nth, _ := strings.Cut(fault, ":")
		n, err := strconv.ParseInt(nth, 10, 64)
		if err != nil || n < 1 || step == "" {
			panic(fmt.Sprintf("MARKETLOG_FAULT=%q: want step:n with n from 1", fault))
		}
		p.step, p.nth = step, n
	}
	if name := os.Getenv("MARKETLOG_ACK_LOG"); name != "" {
		acks, err := open(name)
		if err != nil {
			panic(fmt.Sprintf("opening MARKETLOG_ACK_LOG: %v", err))
		}
		p.acks = acks
	}
	return p
})

func open(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// Hit kills the process if this is the planned hit of the planned step. Safe for concurrent use.
func Hit(step string) {
	p := thePlan()
	if p.step != step || p.hits.Add(1) != p.nth {
		return
	}
	if p.log != "" {
		if f, err := open(p.log); err == nil {
			// One write and no close: the process has no later.
			_, _ = fmt.Fprintf(f, "killed %s %d\n", step, p.nth)
		}
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way; nothing after this step may happen
}

// ClockShift is how far the producers' clock is ahead of the machine's.
func ClockShift() time.Duration {
	text := os.Getenv("MARKETLOG_FAULT_CLOCK")
	if text == "" {
		return 0
	}
	shift, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("MARKETLOG_FAULT_CLOCK=%q: want a duration, as -5m", text))
	}
	return shift
}

// ClockJumps says whether that clock may be moved while the process runs.
func ClockJumps() bool { return thePlan().jumps != "" }

// ClockJump is how far it was moved since the start: what the file holds at this moment, or nothing if there is none.
func ClockJump() time.Duration {
	name := thePlan().jumps
	if name == "" {
		return 0
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	jump, parseErr := time.ParseDuration(string(text))
	if err != nil || parseErr != nil {
		panic(fmt.Sprintf("MARKETLOG_FAULT_CLOCK_FILE=%s holds %q, %v: want a duration, as 1m", name, text, err))
	}
	return jump
}

// Acked appends event ids that the log acknowledged, in one write. Safe for concurrent use.
func Acked(ids ...[]byte) {
	p := thePlan()
	if p.acks == nil || len(ids) == 0 {
		return
	}
	var lines []byte
	for _, id := range ids {
		lines = append(hex.AppendEncode(lines, id), '\n')
	}
	if _, err := p.acks.Write(lines); err != nil {
		panic(fmt.Sprintf("writing MARKETLOG_ACK_LOG: %v", err))
	}
}
