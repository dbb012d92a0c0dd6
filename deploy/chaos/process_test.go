package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/deploytest"
)

// build is the binary that can kill itself, and does what else package faults allows.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "marketlog")
	if err := deploytest.BuildBinary(binary, deploytest.Faults); err != nil {
		t.Fatal(err)
	}
	return binary
}

// program is a command line that is run again and again, one life after the other.
type program struct {
	command     []string
	environment []string
	killed      string // the file that a process which kills itself appends to
	log         string
}

// process is one life of a program.
type process struct {
	*os.Process
	program *program
	exited  chan struct{} // closed when it has ended and was waited for
	state   *os.ProcessState
}

// start runs the program, to die at the fault, step:n, or not by itself if that is empty. Its clock is
// ahead of the machine's by shift.
func (p *program) start(t *testing.T, fault string, shift time.Duration, arguments ...string) *process {
	t.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s %v fault=%s shift=%s\n", time.Now().Format(time.TimeOnly), arguments, fault, shift)
	command := exec.Command(p.command[0], append(p.command[1:len(p.command):len(p.command)], arguments...)...)
	command.Env = append(os.Environ(), p.environment...)
	command.Env = append(command.Env, "GOTRACEBACK=crash", "MARKETLOG_FAULT_LOG="+p.killed, "MARKETLOG_FAULT_CLOCK="+shift.String())
	if fault != "" {
		command.Env = append(command.Env, "MARKETLOG_FAULT="+fault)
	}
	command.Stdout, command.Stderr = log, log
	command.Dir = filepath.Dir(p.log) // where a core is written
	command.SysProcAttr = dieWithParent()
	life := &process{program: p, exited: make(chan struct{})}
	started := make(chan error, 1) // one result
	go func() {
		// The kernel's parent is the thread that forked: were it to end, the process would be killed.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(life.exited)
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
			life.state = command.ProcessState
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting %s: %v", p.command[0], err)
	}
	life.Process = command.Process
	t.Cleanup(life.kill)
	return life
}

func (p *process) kill() {
	_ = p.Process.Kill() // fails only when it has ended already
	<-p.exited
}

// ended waits for the process to end by itself; with 0 it only looks.
func (p *process) ended(wait time.Duration) bool {
	select {
	case <-p.exited:
		return true
	default:
	}
	select {
	case <-p.exited:
		return true
	case <-time.After(wait):
		return false
	}
}

// pause stops the process at once, with the child of one that supervises, for as long as wait.
func (p *process) pause(t *testing.T, wait time.Duration) {
	t.Helper()
	if err := syscall.Kill(-p.Pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("sending SIGSTOP: %v\n%s", err, p.program.tail())
	}
	p.ended(wait)
	_ = syscall.Kill(-p.Pid, syscall.SIGCONT) // fails only when it has ended
}

// killedBySignal reports whether the process ended as by kill -9.
func (p *process) killedBySignal() bool {
	status, ok := p.state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// stopLimit bounds a stop that hangs. One whose parts do not drain in their time ends by itself, with an exit code for that.
const stopLimit = time.Minute

// stop asks the process to end, as an operator does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	began := time.Now()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("sending SIGTERM: %v\n%s", err, p.program.tail())
	}
	if !p.ended(stopLimit) {
		t.Fatalf("the process had not ended %v after SIGTERM\n%s", stopLimit, p.program.tail())
	}
	if code := p.state.ExitCode(); code != 0 {
		t.Errorf("exit code after SIGTERM: got %d, want 0\n%s", code, p.program.tail())
	}
	t.Logf("stopped in %v", time.Since(began).Round(time.Millisecond))
}

// tail is the end of the processes' output.
func (p *program) tail() string {
	const most = 8 << 10
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-most):])
}

// calm records for how long and how often something was seen to hold.
type calm struct {
	since time.Time
	looks int
}

// lasts notes one more look, and reports whether it has held for so long at no less than five looks.
func (c *calm) lasts(holds bool, long time.Duration) bool {
	if !holds {
		c.looks = 0
		return false
	}
	if c.looks++; c.looks == 1 {
		c.since = time.Now()
	}
	return c.looks >= 5 && time.Since(c.since) >= long
}

// eventually polls until try succeeds.
func eventually(t *testing.T, what string, limit time.Duration, try func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, limit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
