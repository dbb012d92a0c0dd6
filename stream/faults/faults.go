// Package faults lets a test of crashes choose where this process dies. In the program as it is shipped every function does
// nothing, whatever its environment holds; in one that is linked for such tests the process kills itself, as kill -9 does, at a
// named step, and writes down what was acknowledged to it before.
//
// A process that is armed so reads six variables of the environment, each optional:
//
//	MARKETLOG_FAULT=step:n     dies at the n-th Hit of that step, n from 1
//	MARKETLOG_FAULT_LOG=file   gets the line "killed step n" just before
//	MARKETLOG_ACK_LOG=file     gets the event ids passed to Acked, hex, one a line
//	MARKETLOG_ACK_RECORDS=file gets a line for each acknowledged record: topic, partition, offset, FNV-1a of its value in hex
//	MARKETLOG_FAULT_CLOCK=-5m  moves the clock of the producers, so that log time passes faster than the test
//	MARKETLOG_FAULT_CLOCK_FILE=file  moves it by what the file holds at each moment, as 1m: a machine that slept
package faults

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// linked is set by the linker where a test links the program:
//
//	go build -ldflags "-X github.com/marketlog/marketlog/stream/faults.linked=yes"
//
// All else that is linked is what users run, compiled once for both.
var linked string

// Arm lets this process kill itself, as if it were linked for that: for tests that run themselves again. Call it before anything
// that may reach a step.
func Arm() { linked = "by a test" }

// Enabled reports whether this process can kill itself.
func Enabled() bool { return linked != "" }

// plan is what the environment asks for. A value that makes no sense panics at the first use: a
// crash test that never crashes would pass for the wrong reason.
type plan struct {
	step string
	nth  int64
	hits atomic.Int64
	log  string
	acks *os.File
	// records is the file of all that was acknowledged, acks that of event ids.
	records *os.File
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
	p.acks, p.records = opened("MARKETLOG_ACK_LOG"), opened("MARKETLOG_ACK_RECORDS")
	return p
})

// opened is the file that a variable names, nil where it names none.
func opened(variable string) *os.File {
	name := os.Getenv(variable)
	if name == "" {
		return nil
	}
	file, err := open(name)
	if err != nil {
		panic(fmt.Sprintf("opening %s: %v", variable, err))
	}
	return file
}

func open(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// Hit marks that a step was reached, and kills the process if this is the planned hit of the planned step. Safe for concurrent use.
func Hit(step string) {
	if Enabled() {
		hit(step)
	}
}

func hit(step string) {
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
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // the signal is on its way; nothing after this step may happen
}

// ClockShift is how far the producers' clock is ahead of the machine's.
func ClockShift() time.Duration {
	if !Enabled() {
		return 0
	}
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

// ClockJumps reports whether that clock may be moved while the process runs.
func ClockJumps() bool { return Enabled() && thePlan().jumps != "" }

// ClockJump is how far it was moved since the start: what the file holds at this moment, or nothing if there is none.
func ClockJump() time.Duration {
	if !Enabled() {
		return 0
	}
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
	if !Enabled() {
		return
	}
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

// AckedRecord appends a record that a broker acknowledged, in one write, on a line of its own: a kill may have cut what another process
// wrote before. Safe for concurrent use.
func AckedRecord(topic string, partition int32, offset int64, value []byte) {
	if !Enabled() {
		return
	}
	p := thePlan()
	if p.records == nil {
		return
	}
	digest := fnv.New64a()
	_, _ = digest.Write(value)
	if _, err := fmt.Fprintf(p.records, "\n%s %d %d %016x\n", topic, partition, offset, digest.Sum64()); err != nil {
		panic(fmt.Sprintf("writing MARKETLOG_ACK_RECORDS: %v", err))
	}
}
