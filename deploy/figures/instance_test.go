package figures

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// patience bounds every wait.
const patience = time.Minute

// build makes the binary as `make build` does. Without the engine's library there is nothing to measure.
func build(b *testing.B) string {
	b.Helper()
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(b, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	binary := filepath.Join(b.TempDir(), "marketlog")
	command := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-o", binary, ".")
	command.Dir = filepath.Join("..", "..")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		b.Fatalf("building the binary: %v\n%s", err, out)
	}
	return binary
}

// instance is a data directory and the addresses that its processes listen on.
type instance struct {
	binary, dir      string
	rest, sql, kafka string
	environment      []string
}

func newInstance(b *testing.B, binary string, environment ...string) *instance {
	b.Helper()
	in := &instance{binary: binary, dir: filepath.Join(b.TempDir(), "data")}
	for _, addr := range []*string{&in.rest, &in.sql, &in.kafka} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatalf("finding a free port: %v", err)
		}
		defer listener.Close()
		*addr = listener.Addr().String()
	}
	in.environment = append(environment, "MARKETLOG_AUTH_MODE=open", "MARKETLOG_BACKFILL_ENABLED=false")
	return in
}

// process is one life of an instance.
type process struct {
	*os.Process
	b      *testing.B
	output *bytes.Buffer
	exited chan struct{}
}

// start runs the instance on some feeds.
func (in *instance) start(b *testing.B, feeds string) *process {
	b.Helper()
	command := exec.Command(in.binary, "run", "--data-dir", in.dir, "--listen", in.rest,
		"--sql-listen", in.sql, "--kafka-listen", in.kafka, "--feeds", feeds)
	command.Env = append(os.Environ(), in.environment...)
	p := &process{b: b, output: &bytes.Buffer{}, exited: make(chan struct{})}
	command.Stdout, command.Stderr = p.output, p.output
	if err := command.Start(); err != nil {
		b.Fatalf("starting the binary: %v", err)
	}
	p.Process = command.Process
	go func() {
		defer close(p.exited)
		_ = command.Wait() // stop looks at its output
	}()
	b.Cleanup(func() {
		_ = p.Kill() // fails only when it has ended already
		<-p.exited
	})
	return p
}

func (p *process) stop() {
	p.b.Helper()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		p.b.Fatalf("sending SIGTERM: %v", err)
	}
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.b.Fatalf("it had not ended %s after SIGTERM", patience)
	}
}

// await asks for a path until it is answered with 200, and returns how long that took since a time.
func (in *instance) await(b *testing.B, p *process, path string, since time.Time) time.Duration {
	b.Helper()
	client := &http.Client{Timeout: time.Second}
	for time.Since(since) < patience {
		answer, err := client.Get("http://" + in.rest + path)
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body) // its status counts
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return time.Since(since)
			}
		}
		select {
		case <-p.exited:
			b.Fatalf("the process ended by itself:\n%s", p.output)
		case <-time.After(5 * time.Millisecond):
		}
	}
	b.Fatalf("%s was not answered with 200 within %s", path, patience)
	return 0
}

// resident is what a process holds in MB; 0 where the system does not report it.
func resident(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kB, found := strings.CutPrefix(line, "VmRSS:"); found {
			n, _ := strconv.ParseFloat(strings.Fields(kB)[0], 64)
			return n / 1024
		}
	}
	return 0
}

// only are the settings that turn off every venue and source but some venues: what is measured must not
// reach the public.
func only(b *testing.B, binary string, venues ...string) []string {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), binary, "config", "print", "-o", "json").Output()
	if err != nil {
		b.Fatalf("asking the binary for its settings: %v", err)
	}
	var printed struct{ Settings []struct{ Key string } }
	if err := json.Unmarshal(out, &printed); err != nil {
		b.Fatalf("reading its settings: %v", err)
	}
	var list []string
	for _, s := range printed.Settings {
		kind, rest, _ := strings.Cut(s.Key, ".")
		name, isSwitch := strings.CutSuffix(rest, ".enabled")
		if isSwitch && (kind == "sources" || kind == "venues" && !slices.Contains(venues, name)) {
			list = append(list, "MARKETLOG_"+strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.Key))+"=false")
		}
	}
	return list
}

// middle and nearly are percentiles; the values are sorted by it.
func middle(values []float64) float64 { return percentile(values, 50) }
func nearly(values []float64) float64 { return percentile(values, 99) }

func percentile(values []float64, percent int) float64 {
	slices.Sort(values)
	return values[min(len(values)-1, len(values)*percent/100)]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// pause waits, unless the benchmark ends.
func pause(ctx context.Context, until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
