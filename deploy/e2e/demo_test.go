package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// demo is everything in one process on the simulator, as `make run` builds it: with the race detector the simulator alone
// would take both cores. The tests of the files demo_*_test.go share one, which TestMain ends.
type demo struct {
	// base and sql are where it answers, key is one of the plan enterprise.
	base, sql, key string
	dir, binary    string
	process        *exec.Cmd
	ended          chan error
}

var theDemo struct {
	sync.Mutex
	demo *demo
	err  error
}

// demoPatience is how long the demo may take until something is there; slow machines run many tests at once.
const demoPatience = 8 * time.Minute

// beginDemo starts it, unless it runs.
func beginDemo() (*demo, error) {
	theDemo.Lock()
	defer theDemo.Unlock()
	if theDemo.demo == nil && theDemo.err == nil {
		addrs, err := freeAddrs(3)
		if err == nil {
			theDemo.demo, err = startDemo(addrs[0], addrs[1], addrs[2])
		}
		theDemo.err = err
	}
	return theDemo.demo, theDemo.err
}

// endDemo stops it, if it runs. With an error no other is started.
func endDemo(after error) error {
	theDemo.Lock()
	defer theDemo.Unlock()
	d := theDemo.demo
	theDemo.demo, theDemo.err = nil, errors.Join(theDemo.err, after)
	if d == nil {
		return nil
	}
	return d.end()
}

// alone ends the shared demo for a slow test that runs an instance of its own: the demo would take its part of the processors all the
// time. A test that asks for it later starts it again.
func alone(t *testing.T) {
	t.Helper()
	if err := endDemo(nil); err != nil {
		t.Error(err)
	}
}

// freeAddrs are loopback addresses that nobody listens on.
func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		addr, err := deploytest.FreeAddress()
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

// runningDemo starts the demo for the first test that asks for it.
func runningDemo(t *testing.T) *demo {
	t.Helper()
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	d, err := beginDemo()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the demo's log ends with\n%s", d.logEnd())
		}
	})
	d.await(t, "/readyz", "200", func(status int, _ map[string]any) bool { return status == http.StatusOK })
	return d
}

// filledDemo is the demo when all its sources have been read once.
func filledDemo(t *testing.T) *demo {
	t.Helper()
	d := runningDemo(t)
	d.await(t, "/api/v1/coins/top", "at least 100 ranked coins", func(_ int, body map[string]any) bool {
		coins, _ := body["coins"].([]any)
		return len(coins) >= 100
	})
	return d
}

// startDemo builds the binary and runs it on the simulator; flags are added to those of every demo.
func startDemo(listen, sql, kafka string, flags ...string) (*demo, error) {
	return startBuilt(nil, listen, sql, kafka, flags...)
}

// startBuilt is startDemo with flags for the go command that builds the binary.
func startBuilt(build []string, listen, sql, kafka string, flags ...string) (*demo, error) {
	dir, err := os.MkdirTemp("", "demo") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		return nil, fmt.Errorf("making a folder for the demo: %w", err)
	}
	d := &demo{base: "http://" + listen, sql: "http://" + sql, dir: filepath.Join(dir, "data"), binary: filepath.Join(dir, "marketlog")}
	if err := deploytest.BuildBinary(d.binary, build...); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for the demo: %w", err)
	}
	// Half of the usual messages: what reads them takes half of the processor, which the tests share with it.
	args := []string{"run", "--feeds", "sim", "--sim-rate", "750", "--data-dir", d.dir, "--listen", listen, "--sql-listen", sql, "--kafka-listen", kafka}
	d.process = exec.Command(d.binary, append(args, flags...)...)
	d.process.Env = append(os.Environ(), "MARKETLOG_BACKFILL_ENABLED=false", d.registry())
	log, err := os.Create(d.dir + ".log")
	if err != nil {
		return nil, fmt.Errorf("making the demo's log: %w", err)
	}
	defer log.Close()
	d.process.Stdout, d.process.Stderr = log, log
	if err := d.process.Start(); err != nil {
		return nil, fmt.Errorf("starting the demo: %w", err)
	}
	d.ended = make(chan error, 1)
	go func() { d.ended <- d.process.Wait() }()
	if err := d.answers(); err != nil {
		return nil, err
	}
	d.key, err = d.newKey("enterprise")
	return d, err
}

// registry is the variable by which the demo lists itself for commands without --data-dir, and for nobody else's.
func (d *demo) registry() string {
	return "XDG_RUNTIME_DIR=" + filepath.Join(filepath.Dir(d.dir), "run")
}

// answers waits until the demo does: it then holds its data directory, and commands talk to it.
func (d *demo) answers() error {
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(100 * time.Millisecond) {
		response, err := http.Get(d.base + "/healthz")
		if err == nil {
			response.Body.Close()
			return nil
		}
		select {
		case ended := <-d.ended:
			return fmt.Errorf("the demo ended with %w; its log ends with\n%s", ended, d.logEnd())
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the demo does not answer: %w", err)
		}
	}
}

// newKey makes a key of a plan with the command that makes them, as soon as the demo takes it. The demo takes the key at once.
func (d *demo) newKey(plan string) (string, error) {
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(time.Second) {
		out, err := exec.Command(d.binary, "keys", "create", "--plan", plan, "--data-dir", d.dir, "-o", "json").CombinedOutput()
		var made struct{ Key string }
		if err == nil && json.Unmarshal(out, &made) == nil && made.Key != "" {
			return made.Key, d.takes(made.Key)
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("making a key: %w\n%s", err, out)
		}
	}
}

// takes returns an error where the demo reports that a key is not valid.
func (d *demo) takes(key string) error {
	request, err := http.NewRequest(http.MethodGet, d.base+"/api/v1/coins/list", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("a key that was just made is not valid: HTTP %d", response.StatusCode)
	}
	return nil
}

// ownKey is a key that no other test uses: statements at once are counted by key, and each key may run two.
func (d *demo) ownKey(t *testing.T) string {
	t.Helper()
	key, err := d.newKey("enterprise")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// end stops the demo as an operator does, and removes what it wrote.
func (d *demo) end() error {
	defer os.RemoveAll(filepath.Dir(d.dir))
	if err := d.process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("ending the demo: %w", err)
	}
	if err := <-d.ended; err != nil {
		return fmt.Errorf("the demo ended with %w; its log ends with\n%s", err, d.logEnd())
	}
	return nil
}

// logEnd is the end of what the demo printed.
func (d *demo) logEnd() []byte {
	text, err := os.ReadFile(d.dir + ".log")
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-4096):]
}

// do asks for a path with the demo's key; where the plan's limit is used up, as soon as it lets a request pass.
func (d *demo) do(method, path, body string) (*http.Response, error) {
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(time.Second) {
		request, err := http.NewRequest(method, d.base+path, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+d.key)
		if body != "" {
			request.Header.Set("Content-Type", "application/json")
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil || response.StatusCode != http.StatusTooManyRequests || time.Now().After(deadline) {
			return response, err
		}
		response.Body.Close()
	}
}

// ask asks for a path.
func (d *demo) ask(path string) (status int, body map[string]any, err error) {
	response, err := d.do(http.MethodGet, path, "")
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&body)
	return response.StatusCode, body, err
}

// await asks for a path until what it answers holds.
func (d *demo) await(t *testing.T, path, want string, holds func(status int, body map[string]any) bool) {
	t.Helper()
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(time.Second) {
		status, body, err := d.ask(path)
		if err == nil && holds(status, body) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got %d %s, %v; want %s", path, status, excerpt(body), err, want)
		}
	}
}
