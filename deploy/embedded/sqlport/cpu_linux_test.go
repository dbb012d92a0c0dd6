package sqlport

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what a process, or this one for 0, has used of the processors so far.
func processorTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	// As clock_getcpuclockid(3) makes it.
	const ofProcess, scheduled = 3, 2
	clock := int32(^pid<<ofProcess | scheduled)
	if pid == 0 {
		clock = unix.CLOCK_PROCESS_CPUTIME_ID
	}
	var used unix.Timespec
	if err := unix.ClockGettime(clock, &used); err != nil {
		t.Fatalf("asking for the processor time of process %d: %v", pid, err)
	}
	return time.Duration(used.Nano())
}
