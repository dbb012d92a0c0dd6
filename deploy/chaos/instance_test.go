package chaos

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// build makes the binary that can kill itself.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "marketlog")
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "faults", "-o", binary, ".")
	command.Dir = filepath.Join("..", "..")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building the binary: %v\n%s", err, out)
	}
	return binary
}

// instance is one data directory and the processes that run on it, one after the other.
type instance struct {
	binary, dir      string
	rest, sql, kafka string
	environment      []string
	acks, killed     string // files that the processes append to
	log              string
}

func newInstance(t *testing.T, binary string, environment ...string) *instance {
	t.Helper()
	dir := t.ArtifactDir() // kept with -artifacts
	in := &instance{
		binary: binary, dir: filepath.Join(dir, "data"), environment: environment,
		acks: filepath.Join(dir, "acked"), killed: filepath.Join(dir, "killed"), log: filepath.Join(dir, "log"),
	}
	for _, addr := range []*string{&in.rest, &in.sql, &in.kafka} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatalf("finding a free port: %v", err)
		}
		defer listener.Close()
		*addr = listener.Addr().String()
	}
	return in
}

// process is one life of an instance.
type process struct {
	*os.Process
	exited chan struct{} // closed when it has ended and was waited for
	state  *os.ProcessState
}

// start runs the binary; fault is step:n, or empty.
func (in *instance) start(t *testing.T, feeds, fault string) *process {
	t.Helper()
	log, err := os.OpenFile(in.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s feeds=%s fault=%s\n", time.Now().Format(time.TimeOnly), feeds, fault)
	command := exec.Command(in.binary, "run", "--data-dir", in.dir, "--feeds", feeds,
		"--listen", in.rest, "--sql-listen", in.sql, "--kafka-listen", in.kafka)
	command.Env = append(os.Environ(), in.environment...)
	command.Env = append(command.Env, "MARKETLOG_ACK_LOG="+in.acks, "MARKETLOG_FAULT_LOG="+in.killed)
	if fault != "" {
		command.Env = append(command.Env, "MARKETLOG_FAULT="+fault)
	}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = dieWithParent()
	p := &process{exited: make(chan struct{})}
	started := make(chan error, 1) // one result
	go func() {
		// The kernel's parent is the thread that forked: were it to end, the process would be killed.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
			p.state = command.ProcessState
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting %s: %v", in.binary, err)
	}
	p.Process = command.Process
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.Process.Kill() // fails only when it has ended already
	<-p.exited
}

// ended waits for the process to end by itself.
func (p *process) ended(wait time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(wait):
		return false
	}
}

// killedBySignal says whether the process ended as by kill -9.
func (p *process) killedBySignal() bool {
	status, ok := p.state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// stopLimit is what a stop may take.
const stopLimit = 10 * time.Second

// stop asks the process to end, as an operator does.
func (in *instance) stop(t *testing.T, p *process) {
	t.Helper()
	began := time.Now()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("sending SIGTERM: %v\n%s", err, in.tail())
	}
	if !p.ended(stopLimit) {
		t.Fatalf("the process had not ended %v after SIGTERM\n%s", stopLimit, in.tail())
	}
	if code := p.state.ExitCode(); code != 0 {
		t.Errorf("exit code after SIGTERM: got %d, want 0\n%s", code, in.tail())
	}
	t.Logf("stopped in %v", time.Since(began).Round(time.Millisecond))
}

// tail is the end of what the processes said.
func (in *instance) tail() string {
	const most = 8 << 10
	log, err := os.ReadFile(in.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-most):])
}

// query asks the SQL port, with rows as the format in the statement says.
func (in *instance) query(ctx context.Context, statement string) ([]byte, error) {
	address := "http://" + in.sql + "/?" + url.Values{
		"output_format_json_quote_64bit_integers": {"0"}, "output_format_json_quote_denormals": {"0"},
	}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(statement))
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the SQL port: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("reading an answer of the SQL port: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the SQL port answers %s to %.200s: %.1000s", answer.Status, statement, body)
	}
	return body, nil
}

// acked are the event ids that the log has acknowledged, in hexadecimal.
func (in *instance) acked(t *testing.T) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(in.acks)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		if id := lines.Text(); len(id) == 32 { // the last line may be cut by a kill
			ids[id] = true
		}
	}
	return ids
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
