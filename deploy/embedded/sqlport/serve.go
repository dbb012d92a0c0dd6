//go:build linux || darwin

package sqlport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// People serves ClickHouse's HTTP interface, read-only, to whoever reaches the port; web pages of other sites are refused.
func (r *Reader) People() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		// Also of what is refused: the server reads the rest of a body before it answers.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(r.bodyWithin))
		if err := r.local(q); err != nil {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "Code: 516. DB::Exception: %v. (AUTHENTICATION_FAILED)\n", err)
			return
		}
		client, _, err := net.SplitHostPort(q.RemoteAddr)
		if err != nil {
			client = q.RemoteAddr
		}
		r.serve(w, q, "/people", client)
	})
}

// Known serves the same within Options.Known to other processes, for those whom they know: the parameter quota_key names whom. It belongs
// behind a password.
func (r *Reader) Known() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.serve(w, q, pathKnown, "known:"+q.URL.Query().Get("quota_key"))
	})
}

// Operator serves the same with nothing hidden. It belongs behind something that only operators reach.
func (r *Reader) Operator() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.serve(w, q, "/operator", "operator") })
}

// local refuses what a web page of another site sends by way of somebody's browser, also under a name of its own that it
// made point here. Other programs send no Origin and name the address that they were given.
func (r *Reader) local(q *http.Request) error {
	host := q.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if net.ParseIP(host) == nil && host != "localhost" && host != "" && !slices.Contains(r.opt.Hosts, host) {
		return fmt.Errorf("the host %q is not one of this server; use its address, or name the host in sql.hosts", host)
	}
	if origin := q.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Host != q.Host {
			return fmt.Errorf("web pages of %q may not ask this port", origin)
		}
	}
	if site := q.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return errors.New("web pages of other sites may not ask this port")
	}
	return nil
}

// bodyWithin is how long a client may take to send its statement, stallAfter how long it may take nothing of an answer.
const (
	bodyWithin = 10 * time.Second
	stallAfter = 30 * time.Second
)

// pathKnown is where the child runs statements within Options.Known.
const pathKnown = "/known"

// serve runs a statement at a path of the child, for a client.
func (r *Reader) serve(w http.ResponseWriter, q *http.Request, to, client string) {
	switch {
	case q.URL.Path == "/ping" || q.URL.Path == "/replicas_status":
		if err := r.owner.Ping(); err != nil {
			r.refuse(w, http.StatusServiceUnavailable, 236, "ABORTED", err.Error())
			return
		}
		_, _ = io.WriteString(w, "Ok.\n")
		return
	case q.URL.Path != "/":
		http.Error(w, "There is no handle "+q.URL.Path, http.StatusNotFound)
		return
	case q.Method != http.MethodPost && q.URL.RawQuery == "":
		_, _ = io.WriteString(w, "Ok.\n")
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(r.bodyWithin))
	body, err := io.ReadAll(io.LimitReader(q.Body, r.opt.Limits.Query+1))
	if err != nil {
		r.refuse(w, http.StatusRequestTimeout, 209, "SOCKET_TIMEOUT", "the statement was not sent within "+r.bodyWithin.String())
		return
	}
	if int64(len(body)) > r.opt.Limits.Query {
		r.refuse(w, http.StatusRequestEntityTooLarge, 307, "TOO_MANY_BYTES", fmt.Sprintf("the body is longer than %d bytes", r.opt.Limits.Query))
		return
	}
	_ = control.SetReadDeadline(time.Time{})
	place, err := r.slots.take(q.Context(), client, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
	if err != nil {
		w.Header().Set("Retry-After", "1")
		r.refuse(w, http.StatusServiceUnavailable, 202, "TOO_MANY_SIMULTANEOUS_QUERIES",
			fmt.Sprintf("Too many simultaneous queries. Maximum: %d, %d of one client; no place came free within %v", r.slots.total, r.slots.perClient, r.slots.wait))
		return
	}
	defer place.give()
	r.forward(w, q, to, body, place, control)
}

// forward has the child run the statement and copies its answer. It returns when the statement has ended, and not when its
// client has gone: until then it costs what it costs, and keeps its place.
func (r *Reader) forward(w http.ResponseWriter, q *http.Request, to string, body []byte, place *slot, control *http.ResponseController) {
	c, err := r.ready(q.Context())
	if err != nil {
		w.Header().Set("Retry-After", "1")
		r.refuse(w, http.StatusServiceUnavailable, 236, "ABORTED", notReady(err))
		return
	}
	a := r.ask(c)
	limit := r.opt.Limits.Time
	if to == pathKnown {
		limit = r.opt.Known.Time
		a.ends = time.Now().Add(limit + overTime)
	}
	// The child is asked to end the statement, and is not hung up on: its answer says when it has ended.
	request, err := http.NewRequest(q.Method, "http://sql"+to+"/?"+q.URL.RawQuery, bytes.NewReader(body))
	if err != nil {
		r.refuse(w, http.StatusBadRequest, 36, "BAD_ARGUMENTS", err.Error())
		return
	}
	for name, values := range q.Header {
		if name == "Accept-Encoding" || strings.HasPrefix(name, "Content-") || strings.HasPrefix(name, "X-Clickhouse-") {
			request.Header[name] = values
		}
	}
	request.Header.Set(statementHeader, a.id)
	gone, leave := context.WithCancel(q.Context())
	defer leave()
	ended := make(chan struct{})
	defer close(ended)
	go a.stopAfter(gone, ended)
	response, err := a.send(request)
	switch {
	case err == nil:
	case q.Context().Err() != nil:
		r.metrics.statements.WithLabelValues("gone").Inc()
		return
	case a.late.Load():
		<-c.ended
		r.refuse(w, http.StatusRequestTimeout, 159, "TIMEOUT_EXCEEDED", fmt.Sprintf("Timeout exceeded: the statement was not planned within %v", limit+overTime))
		return
	default:
		w.Header().Set("Retry-After", "1")
		r.refuse(w, http.StatusServiceUnavailable, 236, "ABORTED", "the process that ran the statement ended"+r.why(c)+"; it is started again with the next one")
		return
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	r.metrics.statements.WithLabelValues(outcome(response.StatusCode)).Inc()
	buffer := buffers.Get().(*[128 << 10]byte)
	defer buffers.Put(buffer)
	for {
		n, err := a.read(response.Body, buffer[:])
		if n > 0 && gone.Err() == nil {
			place.waits()
			_ = control.SetWriteDeadline(time.Now().Add(stallAfter))
			_, wrong := w.Write(buffer[:n])
			if wrong == nil && response.ContentLength < 0 {
				wrong = control.Flush()
			}
			place.took()
			if wrong != nil {
				leave() // what still comes is dropped, until the statement has ended
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			// So that nobody takes a part for the whole.
			panic(http.ErrAbortHandler)
		}
	}
}

// buffers are reused: allocated for each statement, they would be most of the garbage that the server collects for it.
var buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// why reports how c ended, if that is known by now.
func (r *Reader) why(c *child) string {
	select {
	case <-c.ended:
		return " (" + c.failure.Error() + ")"
	case <-time.After(time.Second):
		return ""
	}
}

func outcome(status int) string {
	switch {
	case status < 300:
		return "answered"
	case status < 500:
		return "refused"
	}
	return "failed"
}

// refuse answers as ClickHouse does.
func (r *Reader) refuse(w http.ResponseWriter, status, code int, name, text string) {
	r.metrics.statements.WithLabelValues(outcome(status)).Inc()
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.Header().Set("X-ClickHouse-Exception-Code", fmt.Sprint(code))
	w.WriteHeader(status)
	fmt.Fprintf(w, "Code: %d. DB::Exception: %s. (%s)\n", code, strings.TrimRight(text, ".\n"), name)
}
