//go:build linux || darwin

package engine

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library is the C interface of libchdb (chdb.h of 26.7), as far as it is used here. The handles are opaque.
type library struct {
	connect   func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	closeConn func(conn unsafe.Pointer)
	query     func(conn unsafe.Pointer, sql unsafe.Pointer, sqlLen uintptr, format unsafe.Pointer, formatLen uintptr, names, nameLens, values, valueLens unsafe.Pointer, count uintptr) unsafe.Pointer
	stream    func(conn unsafe.Pointer, sql unsafe.Pointer, sqlLen uintptr, format unsafe.Pointer, formatLen uintptr, names, nameLens, values, valueLens unsafe.Pointer, count uintptr) unsafe.Pointer
	fetch     func(conn, stream unsafe.Pointer) unsafe.Pointer
	cancel    func(conn, stream unsafe.Pointer)
	destroy   func(result unsafe.Pointer)
	buffer    func(result unsafe.Pointer) unsafe.Pointer
	length    func(result unsafe.Pointer) uintptr
	failure   func(result unsafe.Pointer) unsafe.Pointer
	written   func(result unsafe.Pointer) uint64
	rows      func(result unsafe.Pointer) uint64
	read      func(result unsafe.Pointer) uint64

	classify func(conn unsafe.Pointer, sql unsafe.Pointer, sqlLen uintptr, database unsafe.Pointer, databaseLen uintptr, out unsafe.Pointer) int32

	setSignalHandlers func(enabled int32)
	sigaction         func(signal int32, act, old unsafe.Pointer) int32
}

var (
	loadMu     sync.Mutex
	loadedPath string
	loaded     *library
)

// load opens the shared library once per process: it starts threads and cannot be unloaded.
func load(path string) (*library, error) {
	loadMu.Lock()
	defer loadMu.Unlock()
	if loaded != nil {
		if path != loadedPath {
			return nil, fmt.Errorf("loading %s: this process has already loaded %s", path, loadedPath)
		}
		return loaded, nil
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", path, err)
	}
	var lib library
	for name, fn := range map[string]any{
		"chdb_connect":                     &lib.connect,
		"chdb_close_conn":                  &lib.closeConn,
		"chdb_query_with_params_n":         &lib.query,
		"chdb_stream_query_with_params_n":  &lib.stream,
		"chdb_stream_fetch_result":         &lib.fetch,
		"chdb_stream_cancel_query":         &lib.cancel,
		"chdb_destroy_query_result":        &lib.destroy,
		"chdb_result_buffer":               &lib.buffer,
		"chdb_result_length":               &lib.length,
		"chdb_result_error":                &lib.failure,
		"chdb_result_rows_written":         &lib.written,
		"chdb_result_rows_read":            &lib.rows,
		"chdb_result_storage_rows_read":    &lib.read,
		"chdb_classify_query_n":            &lib.classify,
		"chdb_set_signal_handlers_enabled": &lib.setSignalHandlers,
	} {
		if err := register(fn, handle, name); err != nil {
			return nil, fmt.Errorf("loading %s: %w", path, err)
		}
	}
	if err := register(&lib.sigaction, purego.RTLD_DEFAULT, "sigaction"); err != nil {
		return nil, fmt.Errorf("loading %s: %w", path, err)
	}
	// The opt-out is sticky. Some versions reset every fatal signal to its default while they are at it.
	lib.keepSignals(func() { lib.setSignalHandlers(0) })
	loaded, loadedPath = &lib, path
	return loaded, nil
}

func register(fn any, handle uintptr, name string) error {
	address, err := purego.Dlsym(handle, name)
	if err != nil {
		return fmt.Errorf("finding %s: %w", name, err)
	}
	purego.RegisterFunc(fn, address)
	return nil
}

// conn is one connection of the library. It serves one statement at a time; callers serialise.
type conn struct {
	lib    *library
	outer  unsafe.Pointer // what chdb_connect returned: a pointer to the handle
	handle unsafe.Pointer
}

var errConnect = errors.New("the engine refused the connection (its own words, if any, are on standard error): another process may hold the directory")

func (l *library) open(arguments ...string) (*conn, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	argv := make([]unsafe.Pointer, len(arguments)+2)
	for i, a := range append([]string{"marketlog"}, arguments...) {
		text := append([]byte(a), 0)
		pin.Pin(&text[0])
		argv[i] = unsafe.Pointer(&text[0])
	}
	pin.Pin(&argv[0])
	var outer unsafe.Pointer
	l.keepSignals(func() { outer = l.connect(int32(len(arguments)+1), unsafe.Pointer(&argv[0])) })
	if outer == nil {
		return nil, errConnect
	}
	return &conn{lib: l, outer: outer, handle: *(*unsafe.Pointer)(outer)}, nil
}

func (c *conn) close() {
	c.lib.closeConn(c.outer)
	c.outer, c.handle = nil, nil
}

// call is one of the two statement functions of the library.
type call = func(conn unsafe.Pointer, sql unsafe.Pointer, sqlLen uintptr, format unsafe.Pointer, formatLen uintptr, names, nameLens, values, valueLens unsafe.Pointer, count uintptr) unsafe.Pointer

// run executes sql to its end and returns its output. The caller closes the result.
func (c *conn) run(sql, format string, params []param) (*result, error) {
	return c.start(c.lib.query, sql, format, params)
}

// stream begins a SELECT; its output comes by fetch. The caller closes the result.
func (c *conn) stream(sql, format string, params []param) (*result, error) {
	return c.start(c.lib.stream, sql, format, params)
}

func (c *conn) start(fn call, sql, format string, params []param) (*result, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	address := func(s string) (unsafe.Pointer, uintptr) {
		if s == "" {
			s = "\x00"
			pin.Pin(unsafe.StringData(s))
			return unsafe.Pointer(unsafe.StringData(s)), 0
		}
		pin.Pin(unsafe.StringData(s))
		return unsafe.Pointer(unsafe.StringData(s)), uintptr(len(s))
	}
	var names, values []unsafe.Pointer
	var nameLens, valueLens []uintptr
	for _, p := range params {
		at, n := address(p.name)
		names, nameLens = append(names, at), append(nameLens, n)
		at, n = address(p.value)
		values, valueLens = append(values, at), append(valueLens, n)
	}
	var np, nl, vp, vl unsafe.Pointer
	if len(params) > 0 {
		np, nl, vp, vl = unsafe.Pointer(&names[0]), unsafe.Pointer(&nameLens[0]), unsafe.Pointer(&values[0]), unsafe.Pointer(&valueLens[0])
		pin.Pin(np)
		pin.Pin(nl)
		pin.Pin(vp)
		pin.Pin(vl)
	}
	sqlAt, sqlLen := address(sql)
	formatAt, formatLen := address(format)
	return c.check(fn(c.handle, sqlAt, sqlLen, formatAt, formatLen, np, nl, vp, vl, uintptr(len(params))))
}

// class says what a statement does, judged by the engine's own parser (chdb_query_class of chdb.h).
type class uint32

const (
	readOnly      class = iota
	changes             // a database
	changesGlobal       // something beside the databases
	control             // SET, USE, SYSTEM, KILL, INTO OUTFILE and the like
	unparsed
)

// classify parses sql without running it. Several statements in one text count as the most restricted of them.
func (c *conn) classify(sql string) (kind class, statements int) {
	analysis := struct{ size, statements, flags, class uint32 }{size: 16}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&analysis)
	if sql == "" || c.lib.classify(c.handle, unsafe.Pointer(unsafe.StringData(sql)), uintptr(len(sql)), nil, 0, unsafe.Pointer(&analysis)) != 0 {
		return unparsed, 0
	}
	return class(analysis.class), int(analysis.statements)
}

// fetch returns the next piece of a streamed SELECT; an empty one means the end.
func (c *conn) fetch(stream *result) (*result, error) {
	return c.check(c.lib.fetch(c.handle, stream.handle))
}

func (c *conn) cancel(stream *result) { c.lib.cancel(c.handle, stream.handle) }

func (c *conn) check(handle unsafe.Pointer) (*result, error) {
	if handle == nil {
		return nil, newException("Code: 1001. DB::Exception: the engine gave no result")
	}
	r := &result{lib: c.lib, handle: handle}
	if message := c.lib.failure(handle); message != nil {
		err := newException(strings.Clone(goString(message)))
		r.close()
		return nil, err
	}
	return r, nil
}

// result is what one call gave. Its bytes live in the library's memory until close.
type result struct {
	lib    *library
	handle unsafe.Pointer
}

func (r *result) bytes() []byte {
	n := r.lib.length(r.handle)
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(r.lib.buffer(r.handle)), n)
}

func (r *result) rowsWritten() uint64 { return r.lib.written(r.handle) }

// summary is ClickHouse's X-ClickHouse-Summary of a SELECT: how many rows it read, and how many its result has.
func (r *result) summary() string {
	return fmt.Sprintf(`{"read_rows":"%d","result_rows":"%d"}`, r.lib.read(r.handle), r.lib.rows(r.handle))
}

func (r *result) close() {
	if r.handle != nil {
		r.lib.destroy(r.handle)
		r.handle = nil
	}
}

// goString views the C string at p without copying it.
func goString(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return unsafe.String((*byte)(p), n)
}
