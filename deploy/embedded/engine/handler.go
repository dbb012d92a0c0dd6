//go:build linux || darwin

package engine

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Limits bound what analysts may use of the engine. Each is for one statement, except Statements.
type Limits struct {
	Statements int           // at once; more wait up to Wait and are then refused with 503
	Wait       time.Duration // for a free place
	Time       time.Duration // of running; the answer must be taken within that time and another half minute
	Memory     int64         // bytes
	Rows       int64         // of the result; more is an error, not a cut
	Query      int64         // bytes of SQL
}

// DefaultLimits suit a laptop that also ingests.
func DefaultLimits() Limits {
	return Limits{Statements: 4, Wait: 5 * time.Second, Time: time.Minute, Memory: 1 << 30, Rows: 50_000_000, Query: 1 << 18}
}

// Validate reports every limit that is not positive.
func (l Limits) Validate() error {
	var faults []error
	for name, v := range map[string]int64{
		"Statements": int64(l.Statements), "Wait": int64(l.Wait), "Time": int64(l.Time),
		"Memory": l.Memory, "Rows": l.Rows, "Query": l.Query,
	} {
		if v <= 0 {
			faults = append(faults, errors.New(name+" must be positive"))
		}
	}
	return errors.Join(faults...)
}

// Handler serves people ClickHouse's HTTP interface: GET and POST on /, /ping, parameters, formats, gzip and LZ4. It only
// reads, each statement on one thread and within limits. There are no sessions and no users; whoever reaches the port
// may read all tables but those named hidden, so it belongs on loopback or behind something that checks.
//
// A statement can still end the process that e lives in: see package sqlport, which gives it one of its own.
func Handler(e *Engine, limits Limits, hidden ...string) (http.Handler, error) {
	if err := limits.Validate(); err != nil {
		return nil, err
	}
	seconds := strconv.FormatFloat(limits.Time.Seconds(), 'f', -1, 64)
	p := newPool(e.lib, limits.Statements, true, e.path, "--readonly=1", "--use_uncompressed_cache=1", "--session_timezone="+timezone, "--max_threads=1",
		"--allow_introspection_functions=0", "--result_overflow_mode=throw", "--timeout_overflow_mode=throw",
		"--max_execution_time="+seconds, "--max_memory_usage="+strconv.FormatInt(limits.Memory, 10),
		"--max_result_rows="+strconv.FormatInt(limits.Rows, 10),
		// These formats would leave out rows beyond a thousand, and cut long values and names.
		"--output_format_pretty_max_rows="+strconv.FormatInt(limits.Rows, 10), "--output_format_pretty_max_value_width=0",
		"--output_format_pretty_max_column_name_width_cut_to=0",
		// Threads of their own that format, and that read ahead, cost a statement on one thread more than they save it: of a short one
		// a tenth, of a million rows four hundredths.
		"--output_format_parallel_formatting=0", "--remote_filesystem_read_prefetch=0",
		// Of the granules of some thousand rows that hold a coin's, those of other coins need not be merged. The engine decides nothing but
		// conditions on columns of the key so, which all versions of a row have in common.
		"--optimize_move_to_prewhere_if_final=1")
	p.wait, p.hidden = limits.Wait, hidden
	p.rules = rules{limits: map[string]float64{
		"max_execution_time": limits.Time.Seconds(), "max_memory_usage": float64(limits.Memory), "max_result_rows": float64(limits.Rows),
		"max_threads": 1, "max_result_bytes": math.MaxInt64, "max_rows_to_read": math.MaxInt64, "max_bytes_to_read": math.MaxInt64,
		"max_block_size": 65_409, "max_rows_in_set": math.MaxInt64, "max_rows_to_group_by": math.MaxInt64, "max_rows_to_sort": math.MaxInt64,
		"max_estimated_execution_time": limits.Time.Seconds(),
	}}
	e.addPool(p)
	var err error
	if p.rules.inForce, err = p.settings(e); err != nil {
		return nil, err
	}
	return &handler{engine: e, pool: p, limits: limits}, nil
}

// ServerHandler serves other Marketlog processes the same interface with all rights, for clickhouse-go with Protocol
// HTTP and no compression. Requests need the password, under any user name: as HTTP Basic, or as ClickHouse's header
// X-ClickHouse-Key or parameter password. An empty password lets nobody in.
func ServerHandler(e *Engine, password string) http.Handler {
	return &handler{engine: e, pool: e.writers, password: &password, limits: Limits{Query: 1 << 30}}
}

type handler struct {
	engine   *Engine
	pool     *pool
	limits   Limits  // of the zero value where there are none
	password *string // nil: anybody
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/ping" || r.URL.Path == "/replicas_status":
		h.ping(w)
	case r.URL.Path != "/":
		http.Error(w, "There is no handle "+r.URL.Path, http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "GET or POST a query", http.StatusMethodNotAllowed)
	case r.Method != http.MethodPost && r.URL.RawQuery == "":
		_, _ = io.WriteString(w, "Ok.\n")
	default:
		h.serve(w, r)
	}
}

func (h *handler) ping(w http.ResponseWriter) {
	if err := h.engine.Ping(); err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	_, _ = io.WriteString(w, "Ok.\n")
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	if !h.admit(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="marketlog"`)
		fail(w, exception(codeAuthentication, "Authentication failed: password is incorrect"))
		return
	}
	if h.password != nil {
		// Who knows the password may send rows, and wait for an answer, as long as it takes.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	if h.limits.Time > 0 {
		// A reader that stalls must not keep its place. Not every ResponseWriter can do it; a server's can.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.limits.Wait + h.limits.Time + 30*time.Second))
	}
	q, err := readRequest(r, h.limits.Query)
	if err != nil {
		fail(w, err)
		return
	}
	a, err := h.engine.answer(r.Context(), h.pool, q)
	if err != nil {
		fail(w, err)
		return
	}
	defer a.body.Close()
	h.send(w, q, a)
}

// send copies the answer as it comes, so that the first rows are seen early and memory stays flat.
func (h *handler) send(w http.ResponseWriter, q *request, a *answer) {
	for name, value := range a.header {
		w.Header()[name] = value
	}
	out := io.Writer(w)
	var zip *gzip.Writer
	var blocks *blockWriter
	if q.blocks {
		blocks = newBlockWriter(w)
		out = blocks
	} else if q.gzip && a.length != 0 {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Add("Vary", "Accept-Encoding")
		zip, _ = gzip.NewWriterLevel(w, gzip.BestSpeed)
		out = zip
	} else if a.length >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(a.length, 10))
	}
	flush := func() {
		if zip != nil {
			_ = zip.Flush()
		}
		if blocks != nil {
			_ = blocks.Flush()
		}
		_ = http.NewResponseController(w).Flush()
	}
	buffer := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buffer)
	for first := true; ; first = false {
		n, err := a.body.Read(buffer[:])
		if n > 0 {
			if _, err := out.Write(buffer[:n]); err != nil {
				return // the reader has gone; closing the body stops the statement
			}
			if first {
				flush()
			}
		}
		if err != nil {
			break
		}
	}
	if zip != nil {
		_ = zip.Close()
	}
	if blocks != nil {
		_ = blocks.Flush()
	}
	if f, ok := a.body.(*framed); ok && f.broke != nil {
		// As a ClickHouse server does: break off, so that the reader cannot take a part for the whole.
		flush()
		panic(http.ErrAbortHandler)
	}
}

// admit compares digests: their length does not reveal that of the password.
func (h *handler) admit(r *http.Request) bool {
	if h.password == nil {
		return true
	}
	_, given := Credentials(r)
	got, want := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(*h.password))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && *h.password != ""
}

// Credentials are the user and the password of a request, from wherever ClickHouse's HTTP interface takes them: its own headers, HTTP Basic
// or parameters, in this order. What is not given is empty.
func Credentials(r *http.Request) (user, password string) {
	values := r.URL.Query()
	user, password = values.Get("user"), values.Get("password")
	if u, p, ok := r.BasicAuth(); ok {
		user, password = u, p
	}
	return cmp.Or(r.Header.Get("X-ClickHouse-User"), user), cmp.Or(r.Header.Get("X-ClickHouse-Key"), password)
}

func fail(w http.ResponseWriter, err error) {
	ex := asException(err)
	for name, value := range exceptionHeader(ex) {
		w.Header()[name] = value
	}
	status := httpStatus(ex.Code)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.TrimRight(ex.Message, "\n")+"\n")
}
