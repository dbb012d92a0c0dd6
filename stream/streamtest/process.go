package streamtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds the start of a server on a machine whose cores are all taken by other tests.
const startTimeout = 90 * time.Second

var errExited = errors.New("it exited")

// server is a child process that can be killed, stopped and started again on the same files and
// ports. Its methods must not be called concurrently.
type server struct {
	command []string
	logPath string                  // standard output and error of all starts
	answers func(addr string) error // nil once the server does its work
	addr    string
	process *os.Process
	exited  chan struct{} // closed when process has ended and was waited for
}

// start runs the command and waits until the server answers.
func (s *server) start() error {
	log, err := os.OpenFile(s.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the server's log: %w", err)
	}
	defer log.Close()

	command := exec.Command(s.command[0], s.command[1:]...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = dieWithParent()

	s.exited = make(chan struct{})
	started := make(chan error, 1) // one result
	go func() {
		// The kernel's parent is the thread that forked: were it to end, the server would be killed.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.exited)
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // a killed server's exit status means nothing
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", s.command[0], err)
	}
	s.process = command.Process
	return s.await()
}

// await polls until the server answers, has exited, or the time is over.
func (s *server) await() error {
	deadline := time.After(startTimeout)
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case <-s.exited:
			return errExited
		case <-deadline:
			return fmt.Errorf("no answer within %s: %w", startTimeout, s.answers(s.addr))
		case <-poll.C:
			if s.answers(s.addr) == nil {
				return nil
			}
		}
	}
}

// kill ends the process as a crash does and returns when it is gone. A dead one stays dead.
func (s *server) kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Kill() // fails only when the process has ended already
	<-s.exited
}

func (s *server) restart(t testing.TB) {
	t.Helper()
	s.kill()
	if err := s.start(); err != nil {
		t.Fatalf("restarting the server on %s: %v\n%s", s.addr, err, s.logTail())
	}
}

func (s *server) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := s.process.Signal(signal); err != nil {
		t.Fatalf("sending %s to the server on %s: %v", signal, s.addr, err)
	}
}

// pause stops the process at once.
func (s *server) pause(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
	if err := awaitStopped(s.process.Pid); err != nil {
		t.Fatalf("waiting for the server on %s to stop: %v", s.addr, err)
	}
}

// logTail returns the end of what the server wrote, for the message of a failed test.
func (s *server) logTail() string {
	const most = 4 << 10
	log, err := os.ReadFile(s.logPath)
	if err != nil {
		return fmt.Sprintf("reading its log: %v", err)
	}
	if len(log) > most {
		log = log[len(log)-most:]
	}
	return string(log)
}
