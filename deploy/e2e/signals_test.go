package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/marketlog/marketlog/deploy/cli"
)

// drainer is a program that drains for ever once it is asked to stop. It prints what reaches it, and repeats what it reads.
func drainer() {
	received := make(chan os.Signal, 8)
	signal.Notify(received, syscall.SIGTERM)
	ctx := cli.Interruptible()
	lines := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
		os.Exit(0)
	}()
	fmt.Println("ready")
	stopping := ctx.Done()
	for {
		select {
		case <-received:
			fmt.Println("signal")
		case <-stopping:
			fmt.Println("draining")
			stopping = nil
		case line := <-lines:
			fmt.Println(line)
		}
	}
}

// Supervisors and terminals send a second signal by themselves: what is drained is drained all the same. A third one is meant.
func TestTheThirdSignalEndsAProcessThatDrains(t *testing.T) {
	program := exec.Command("drainer") // this binary, under the name by which TestMain knows it
	if program.Err != nil {
		t.Fatal(program.Err)
	}
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Process.Kill() }()
	lines := bufio.NewScanner(out)
	// hears reads the lines that must come, in any order.
	hears := func(want ...string) {
		t.Helper()
		missing := map[string]bool{}
		for _, line := range want {
			missing[line] = true
		}
		for len(missing) > 0 {
			if !lines.Scan() {
				t.Fatalf("it ended (%v) before it printed %v", lines.Err(), missing)
			}
			delete(missing, strings.TrimSpace(lines.Text()))
		}
	}
	terminate := func() {
		t.Helper()
		if err := program.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	hears("ready")
	terminate()
	hears("signal", "draining")
	terminate()
	hears("signal")
	for n := range 100 {
		fmt.Fprintln(in, "alive", n)
		hears(fmt.Sprint("alive ", n))
	}
	terminate()
	var ended *exec.ExitError
	if err := program.Wait(); !errors.As(err, &ended) || ended.ExitCode() != cli.ExitInterrupted {
		t.Errorf("after the third signal: %v, want exit code %d", err, cli.ExitInterrupted)
	}
}
