//go:build linux || darwin

package sqlport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

// Options of a Reader.
type Options struct {
	// Tables is the folder of the owner's engine, Dir one of the child's own, whose content is thrown away. Both are absolute.
	Tables, Dir string
	// Library is that of the engine; empty: the pinned one.
	Library string
	// Statements bounds how many run at once; more wait. 0 means 8. One client has at most half of them.
	Statements int
	// Memory bounds what all of them together may allocate, in bytes; 0 means 2 GiB. The operating system stops the process at 2 GiB more.
	Memory int64
	// Limits are those of one statement; the zero value means engine.DefaultLimits.
	Limits engine.Limits
	// Known are those of one statement of somebody who has shown a key; the zero value means Limits.
	Known engine.Limits
	// Hidden are tables and views that only operators may read.
	Hidden []string
	// Hosts are the names, beside addresses and localhost, by which browsers may reach the port.
	Hosts   []string
	Metrics prometheus.Registerer // nil: none
	Log     *slog.Logger
}

const (
	// idleAfter is how long the child stays without a statement.
	idleAfter = 5 * time.Minute
	// startWithin bounds the start of a child, catalogue included; a busy machine with many tables takes some seconds.
	startWithin = 60 * time.Second
	// lookEvery is how old the child's catalogue may be.
	lookEvery = time.Second
	// beyondMemory is what the child's limit by the operating system lies above the engine's own, in bytes: for the stacks of some
	// fifty threads, 8 MB of address space each, and for what the allocator has not unmapped yet.
	beyondMemory = 2 << 30
	// overTime is what a statement may take beyond its limit until the child is killed: the engine does not look at the
	// clock while it plans.
	overTime = 5 * time.Second
)

// Reader runs statements in a child process. Its handlers may be used while Run does.
type Reader struct {
	owner   *engine.Engine
	opt     Options
	slots   *slots
	metrics *metrics
	// bodyWithin is how long a request may take to arrive; a test has less time.
	bodyWithin time.Duration

	mu      sync.Mutex
	child   *child
	closed  bool
	crashes int       // in a row, each soon after its start
	crashed time.Time // the last
	used    time.Time
}

// New makes a reader of the owner's tables. The child begins with the first statement.
func New(owner *engine.Engine, opt Options) *Reader {
	if opt.Statements == 0 {
		opt.Statements = 8
	}
	if opt.Memory == 0 {
		opt.Memory = 2 << 30
	}
	if opt.Limits == (engine.Limits{}) {
		opt.Limits = engine.DefaultLimits()
	}
	// The places are given here; the child only has to have as many.
	opt.Limits.Statements = opt.Statements
	if opt.Known == (engine.Limits{}) {
		opt.Known = opt.Limits
	}
	opt.Known.Statements = opt.Statements
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	r := &Reader{owner: owner, opt: opt, slots: newSlots(opt.Statements), bodyWithin: bodyWithin}
	r.metrics = newMetrics(opt.Metrics, r.slots)
	return r
}

// Run ends the child when nobody asked for a while, and for good when ctx does.
func (r *Reader) Run(ctx context.Context) error {
	tick := time.NewTicker(idleAfter / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.mu.Lock()
			r.closed = true
			c := r.child
			r.child = nil
			r.mu.Unlock()
			if c != nil {
				c.stop()
			}
			return nil
		case <-tick.C:
			r.mu.Lock()
			if c := r.child; c != nil && c.alive() && time.Since(r.used) > idleAfter && r.slots.idle() {
				r.child = nil
				c.stop()
			}
			r.mu.Unlock()
		}
	}
}

// child is a running SQL process.
type child struct {
	command *exec.Cmd
	began   time.Time
	client  *http.Client // for what is asked of it besides statements
	links   *links
	control *net.UnixConn
	words   *engine.LastWords
	stopped atomic.Bool // by stop

	ended   chan struct{} // closed when it has
	failure error         // how; valid then

	mu     sync.Mutex // held while the catalogue is brought up to date
	looked time.Time
	sent   []byte
}

func (c *child) alive() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// stop ends it and waits.
func (c *child) stop() {
	c.stopped.Store(true)
	_ = c.control.Close()
	_ = c.command.Process.Kill()
	<-c.ended
}

// errClosed means that the server is stopping.
var errClosed = errors.New("the server is stopping")

// ready returns a child that runs and knows the owner's tables as they were at most lookEvery ago.
func (r *Reader) ready(ctx context.Context) (*child, error) {
	c, err := r.running()
	if err != nil {
		return nil, err
	}
	return c, r.refresh(ctx, c)
}

func (r *Reader) running() (*child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	r.used = time.Now()
	if r.child != nil && r.child.alive() {
		return r.child, nil
	}
	if pause := r.pause(); pause > 0 {
		return nil, fmt.Errorf("the SQL process ended %d times in a row and is started again in %v", r.crashes, pause.Round(100*time.Millisecond))
	}
	c, err := r.start()
	if err != nil {
		r.crashes++
		r.crashed = time.Now()
		return nil, err
	}
	r.child = c
	return c, nil
}

// pause is how long to wait before the next start: nothing after a first end, more after each that follows at once.
func (r *Reader) pause() time.Duration {
	if r.crashes < 3 {
		return 0
	}
	return time.Until(r.crashed.Add(min(time.Duration(r.crashes-2)*500*time.Millisecond, 5*time.Second)))
}

func (r *Reader) start() (*child, error) {
	began := time.Now()
	library, err := engine.Find(r.opt.Library)
	if err != nil {
		return nil, err
	}
	tables, dir := r.opt.Tables, r.opt.Dir
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("making the SQL process's folder: %w", err)
	}
	o, err := json.Marshal(childOptions{
		Library: library, Tables: tables, Dir: dir, Memory: r.opt.Memory, DataLimit: r.opt.Memory + beyondMemory, Limits: r.opt.Limits, Known: r.opt.Known, Hidden: r.opt.Hidden,
	})
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	c := &child{began: began, control: ours, words: &engine.LastWords{}, ended: make(chan struct{})}
	c.command = exec.Command(self)
	c.command.Args[0] = "marketlog-sql"
	c.command.Env = []string{childVariable + "=" + string(o), "GOTRACEBACK=single", "TZ=UTC", allocatorOptions} // no secret of this process's own
	c.command.Dir = dir
	c.command.Stderr = c.words
	c.command.ExtraFiles = []*os.File{theirs}
	if err := c.command.Start(); err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("starting the SQL process: %w", err)
	}
	d := &dialer{control: ours}
	c.links = &links{dial: d.dial}
	c.client = &http.Client{Transport: &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return d.dial() },
		DisableCompression: true, MaxIdleConnsPerHost: r.opt.Statements,
	}}
	go r.await(c)
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	confined, err := c.call(ctx, http.MethodGet, "/hello", nil)
	if err == nil {
		err = r.refresh(ctx, c)
	}
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("starting the SQL process: %w; it printed: %s", err, c.words)
	}
	r.metrics.starts.Inc()
	r.opt.Log.Info("SQL process started", "pid", c.command.Process.Pid, "duration", time.Since(began).Round(time.Millisecond), "sandbox", confined)
	if confined == "none" {
		r.opt.Log.Warn("this system cannot confine the SQL process; keep its port to people you trust")
	}
	return c, nil
}

// await waits for the end of c.
func (r *Reader) await(c *child) {
	err := c.command.Wait()
	_ = c.control.Close()
	c.links.close()
	if err == nil {
		err = errors.New("it exited")
	}
	c.failure = err
	close(c.ended)
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.stopped.Load() {
		return
	}
	if time.Since(c.began) > 10*time.Second {
		r.crashes = 0
	}
	r.crashes++
	r.crashed = time.Now()
	r.metrics.ends.Inc()
	r.opt.Log.Error("SQL process ended", "error", err, "duration", time.Since(c.began).Round(time.Millisecond), "stderr", c.words.String())
}

// refresh brings the catalogue of c up to date.
func (r *Reader) refresh(ctx context.Context, c *child) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < lookEvery {
		return nil
	}
	began := time.Now()
	objects, err := catalogOf(r.owner, r.opt.Tables)
	if err != nil {
		return err
	}
	text, err := json.Marshal(objects)
	if err != nil {
		return err
	}
	if !bytes.Equal(text, c.sent) {
		if _, err := c.call(ctx, http.MethodPost, "/catalog", text); err != nil {
			return fmt.Errorf("passing the tables to the SQL process: %w", err)
		}
		c.sent = text
	}
	c.looked = began
	return nil
}

// call asks c itself, and not its engine.
func (c *child) call(ctx context.Context, method, path string, body []byte) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://sql"+path, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(string(bytes.TrimSpace(text)))
	}
	return string(text), err
}
