package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/stream/retry"
)

// The engine's library lives in the process that loads it and ends it when it crashes. So `marketlog engine` is two
// processes: one that loads the engine and serves it, and one that loads nothing, which starts the other again.

// supervisedFlag marks the process that serves; only the supervising process passes it.
const supervisedFlag = "supervised"

// superviseEngine runs this program's own command line as a child, and again when it dies, later each time up to half a
// minute, until ctx ends. A child that refuses to start, or ends in order, ends the command as it ended itself.
func superviseEngine(ctx context.Context, rt *command.Runtime, log *slog.Logger) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	backoff := retry.New(supervise.FirstPause, supervise.LongestPause)
	for {
		began := time.Now()
		lastWords := &engine.LastWords{To: rt.Stderr}
		err := runSupervised(ctx, rt, program, lastWords)
		var ended *exec.ExitError
		switch {
		case err == nil, ctx.Err() != nil && !errors.As(err, &ended):
			return err
		case !errors.As(err, &ended):
			return fmt.Errorf("running the engine: %w", err)
		case ended.ExitCode() == exitFailed: // it has said why
			return command.ErrReported
		case ctx.Err() != nil:
			return fmt.Errorf("stopping the engine: %w", err)
		}
		if time.Since(began) > supervise.Steady {
			backoff.Reset()
		}
		pause := backoff.Next()
		log.Error("engine process died", "pid", ended.Pid(), "how", ended.String(), "duration", time.Since(began).Round(time.Millisecond),
			"stderr", lastWords.String(), "retry_in", pause.Round(time.Millisecond))
		if retry.Wait(ctx, pause) != nil {
			return nil
		}
	}
}

// runSupervised runs the child once. The pipe to its standard input is what holds both together: a line in it asks the child
// to stop, and its end, which comes whenever this process ends, kills it.
func runSupervised(ctx context.Context, rt *command.Runtime, program string, stderr io.Writer) error {
	child := exec.Command(program, append(rt.Args[:len(rt.Args):len(rt.Args)], "--"+supervisedFlag)...)
	child.Env, child.Stdout, child.Stderr = rt.Env, rt.Stdout, stderr
	child.WaitDelay = 2 * time.Second // for what it left that holds its standard error
	leash, err := child.StdinPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	var asked sync.WaitGroup
	asked.Go(func() {
		select {
		case <-ctx.Done():
			_, _ = io.WriteString(leash, "stop\n") // fails when it has ended
		case <-ended:
		}
	})
	err = child.Wait()
	close(ended)
	asked.Wait()
	return err
}

// leashOf is the pipe that a child's standard input is, under a descriptor of its own: the engine takes standard input away (engine.Open). It
// is read through the runtime's poller, to which a read that the system restarts and that finds nothing is no end of the pipe.
func leashOf(stdin io.Reader) (io.Reader, error) {
	file, ok := stdin.(*os.File)
	if !ok {
		return stdin, nil
	}
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, fmt.Errorf("taking the pipe of the supervisor: %w", err)
	}
	return os.NewFile(uintptr(fd), "supervisor"), nil
}

// onLeash is the context of a child: it ends when the supervisor asks for it. When the supervisor is gone without having
// asked, the process is killed, as the supervisor was. A child that was asked ends by itself, whatever becomes of the pipe.
func onLeash(ctx context.Context, leash io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		one := make([]byte, 1)
		n, err := leash.Read(one)
		if n > 0 {
			cancel()
			return
		}
		fmt.Fprintf(os.Stderr, "marketlog: the supervisor of the engine is gone (%v)\n", err)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
	return ctx
}
