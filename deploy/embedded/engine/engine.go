//go:build linux || darwin

// Package engine runs ClickHouse inside this process, from the shared library libchdb, without cgo.
//
// One directory of tables belongs to one process and one [Engine]. The engine is reached by ClickHouse's own HTTP
// protocol only: as an [http.RoundTripper] for clickhouse-go in the same process ([Engine.Transport]), as a read-only
// port for analysts ([Handler]) and as a port for other Marketlog processes ([ServerHandler]). So the code above it
// does not know whether ClickHouse is inside or outside.
package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Options of an engine. The zero value is good.
type Options struct {
	// Library is the path of libchdb; empty means the pinned one in the user's cache folder (see Find).
	Library string
	// Connections bounds the statements that run at once through Transport and ServerHandler together. A SELECT
	// holds one until its rows are read to the end. 0 means 16.
	Connections int
	// Memory bounds what all statements together may allocate, in bytes. 0 means the engine's own default, nine
	// tenths of the machine.
	Memory int64
	// Cache is how many bytes of columns are held uncompressed, for short statements of Handler that are asked again; 0 means none.
	Cache int64
}

var (
	errClosed = exception(codeAborted, "the engine is closed")
	// ErrOpen means that this process has an open engine already: the library keeps its state in globals.
	ErrOpen = errors.New("this process already runs an engine")
	opened  atomic.Bool
)

// running is a statement that can be stopped.
type running interface{ abort(cause error) }

// Engine is an open ClickHouse. Its methods and handlers may be used from any goroutine.
type Engine struct {
	lib     *library
	path    string // as an argument of a connection
	writers *pool
	version string

	adminMu sync.Mutex // serialises admin
	admin   *member    // kills statements; its being open also keeps the library from shutting down

	mu      sync.Mutex
	pools   []*pool
	live    map[running]struct{}
	closed  bool
	done    chan struct{} // closed by Close
	counter atomic.Uint64
}

// releaseInterval is how often the code of the library and of this program leaves the memory of the process. To map again what runs all the time takes some
// milliseconds.
const releaseInterval = 2 * time.Minute

// release does so until the engine is closed. If it fails nothing is lost but memory.
func (e *Engine) release(library string) {
	files := []string{library}
	if program, err := os.Executable(); err == nil {
		files = append(files, program)
	}
	ticker := time.NewTicker(releaseInterval)
	defer ticker.Stop()
	for {
		select {
		case <-e.done:
			return
		case <-ticker.C:
			_ = releaseCode(files...)
		}
	}
}

// Open starts the engine on the tables in dir, which it makes if need be. From then on standard input, descriptor 0, is empty: whoever needs
// it reads it before, or has a descriptor of its own. It fails if another process holds dir, with
// ErrOpen if this process has an open engine, and with ErrNoLibrary if the library is not there.
func Open(dir string, opt Options) (*Engine, error) {
	path, err := Find(opt.Library)
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the engine: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the engine: %w", err)
	}
	if !opened.CompareAndSwap(false, true) {
		return nil, ErrOpen
	}
	e, err := open(path, dir, opt)
	if err != nil {
		opened.Store(false)
		return nil, fmt.Errorf("opening the engine on %s: %w", dir, err)
	}
	return e, nil
}

// configuration is what cannot be set by an argument. A part that was merged away stays on the disk for ninety seconds: the
// process of people's statements reads the tables' files, and one of them takes at most one. Otherwise it would go at once. A start
// reads these parts too, thousands of them; one thread does, since prices are waiting for the processors. Parts are merged when there are eight
// alike, not five, and column by column from some thousand rows on: a row of prices has a thousand numbers (docs/decisions/0135).
const configuration = `<clickhouse>
  <max_outdated_parts_loading_thread_pool_size>1</max_outdated_parts_loading_thread_pool_size>
  <merge_tree>
    <old_parts_lifetime>90</old_parts_lifetime>
    <merge_selector_base>8</merge_selector_base>
    <vertical_merge_algorithm_min_rows_to_activate>8192</vertical_merge_algorithm_min_rows_to_activate>
  </merge_tree>
</clickhouse>
`

// emptyStdin makes descriptor 0 one that holds nothing. At each INSERT the library does as ClickHouse's own command does: it makes standard
// input one that does not wait, takes a megabyte of what is there for rows, and makes it wait again. So it took what was meant for others, and a
// read that was restarted meanwhile failed with EAGAIN.
func emptyStdin() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("taking standard input from the engine: %w", err)
	}
	defer null.Close()
	if err := unix.Dup2(int(null.Fd()), 0); err != nil {
		return fmt.Errorf("taking standard input from the engine: %w", err)
	}
	return nil
}

func open(path, dir string, opt Options) (*Engine, error) {
	lib, err := load(path)
	if err != nil {
		return nil, err
	}
	if err := emptyStdin(); err != nil {
		return nil, err
	}
	if opt.Connections == 0 {
		opt.Connections = 16
	}
	e := &Engine{lib: lib, path: "--path=" + dir, live: map[running]struct{}{}, done: make(chan struct{})}
	// Without a file of its own a config.xml in the working directory or a home folder would be read.
	settings := filepath.Join(dir, "engine.xml")
	if err := os.WriteFile(settings, []byte(configuration), 0o600); err != nil {
		return nil, fmt.Errorf("writing the engine's configuration: %w", err)
	}
	boot := []string{e.path, "--config-file=" + settings}
	if opt.Memory > 0 {
		boot = append(boot, "--max_server_memory_usage="+strconv.FormatInt(opt.Memory, 10))
	}
	if opt.Cache > 0 {
		boot = append(boot, "--uncompressed_cache_size="+strconv.FormatInt(opt.Cache, 10))
	}
	c, err := lib.open(boot...)
	if err != nil {
		return nil, err
	}
	lib.ignoreStackSignal()
	e.admin = &member{conn: c}
	// The times of a view must not depend on the zone of the machine that shows it.
	e.writers = e.addPool(newPool(lib, opt.Connections, false, e.path, "--session_timezone="+timezone))
	if e.version, err = e.ask("SELECT version()"); err != nil {
		c.close()
		return nil, err
	}
	if library, err := filepath.EvalSymlinks(path); err == nil { // as the system names what it maps
		go e.release(library)
	}
	return e, nil
}

func (e *Engine) addPool(p *pool) *pool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		close(p.closed)
	}
	e.pools = append(e.pools, p)
	return p
}

// Ask runs a small statement with all rights and returns its output in format.
func (e *Engine) Ask(sql, format string) (string, error) {
	e.adminMu.Lock()
	defer e.adminMu.Unlock()
	if e.admin == nil {
		return "", errClosed
	}
	r, err := e.admin.run(sql, format, nil)
	if err != nil {
		return "", err
	}
	defer r.close()
	return string(r.bytes()), nil
}

func (e *Engine) ask(sql string) (string, error) { return e.Ask(sql, "RawBLOB") }

// Close stops the statements that still run and closes the engine. Inserts that were cut off may or may not have
// happened. It waits for running statements to notice.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	close(e.done)
	pools := e.pools
	var live []running
	for s := range e.live {
		live = append(live, s)
	}
	e.mu.Unlock()
	for _, s := range live {
		go s.abort(errClosed)
	}
	for _, p := range pools {
		p.close()
	}
	e.adminMu.Lock()
	e.admin.close()
	e.admin = nil
	e.adminMu.Unlock()
	opened.Store(false)
	return nil
}

// begin registers a statement, so that Close can stop it.
func (e *Engine) begin(s running) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	e.live[s] = struct{}{}
	return nil
}

func (e *Engine) end(s running) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.live, s)
}

// kill stops the statement that carries the mark, again and again until done: it may not have begun yet.
func (e *Engine) kill(mark string, done <-chan struct{}) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		// An error means only that nothing was killed; the next round asks again.
		_, _ = e.ask("KILL QUERY WHERE startsWith(query, " + quoteString(mark) + ") ASYNC FORMAT Null")
		select {
		case <-done:
			return
		case <-again.C:
		}
	}
}

// mark returns a comment that no other statement of this process begins with.
func (e *Engine) mark() string {
	return "/*marketlog " + strconv.FormatUint(e.counter.Add(1), 10) + "*/ "
}

// Ping asks the engine for its version, which proves that it still answers.
func (e *Engine) Ping() error {
	_, err := e.ask("SELECT version()")
	return err
}
