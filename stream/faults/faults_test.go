package faults

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The test runs itself again as the process that dies.
func TestDiesAtTheNamedHit(t *testing.T) {
	if os.Getenv("FAULTS_CHILD") != "" {
		Arm()
		Hit("other")
		Acked([]byte{0xab, 0x01}, []byte{0xcd})
		AckedRecord("usage.v1", 0, 7, []byte("foobar"))
		Hit("step.a")
		Acked([]byte{0xef})
		Hit("step.a")
		Acked([]byte{0x99})
		t.Fatal("lived on after the second hit")
	}
	dir := t.TempDir()
	killed, acked, records := filepath.Join(dir, "killed"), filepath.Join(dir, "acked"), filepath.Join(dir, "records")
	child := exec.Command(os.Args[0], "-test.run=^TestDiesAtTheNamedHit$")
	child.Env = append(os.Environ(), "FAULTS_CHILD=1", "MARKETLOG_FAULT=step.a:2",
		"MARKETLOG_FAULT_LOG="+killed, "MARKETLOG_ACK_LOG="+acked, "MARKETLOG_ACK_RECORDS="+records)
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("child ended with %v, want SIGKILL\n%s", err, out)
	}
	for name, want := range map[string]string{killed: "killed step.a 2\n", acked: "ab01\ncd\nef\n", records: "\nusage.v1 0 7 85944171f73967e8\n"} {
		got, err := os.ReadFile(name)
		if err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", filepath.Base(name), got, err, want)
		}
	}
}

func TestClockIsMovedAsAsked(t *testing.T) {
	t.Cleanup(func() { linked = "" })
	t.Setenv("MARKETLOG_FAULT_CLOCK", "-5m")
	if got := ClockShift(); got != 0 {
		t.Errorf("the program as it is shipped moves its clock by %v", got)
	}
	Arm()
	t.Setenv("MARKETLOG_FAULT_CLOCK", "")
	if got := ClockShift(); got != 0 {
		t.Errorf("without being asked: got %v, want 0", got)
	}
	t.Setenv("MARKETLOG_FAULT_CLOCK", "-5m")
	if got := ClockShift(); got != -5*time.Minute {
		t.Errorf("asked for -5m: got %v", got)
	}
}

// The test runs itself again, since the file's name is read once.
func TestClockJumpsWithItsFile(t *testing.T) {
	if name := os.Getenv("MARKETLOG_FAULT_CLOCK_FILE"); name != "" {
		if ClockJumps() {
			t.Error("the program as it is shipped lets its clock jump")
		}
		Arm()
		if !ClockJumps() {
			t.Error("the clock does not jump")
		}
		for _, step := range []struct {
			text string
			want time.Duration
		}{{"", 0}, {"1m", time.Minute}, {"90s", 90 * time.Second}} {
			if step.text != "" {
				if err := os.WriteFile(name, []byte(step.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := ClockJump(); got != step.want {
				t.Errorf("with %q in its file the clock is %v ahead, want %v", step.text, got, step.want)
			}
		}
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestClockJumpsWithItsFile$")
	child.Env = append(os.Environ(), "MARKETLOG_FAULT_CLOCK_FILE="+filepath.Join(t.TempDir(), "jump"))
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
