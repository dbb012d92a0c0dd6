//go:build linux || darwin

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// Transport returns the way for clickhouse-go into this engine: with Protocol HTTP and any address,
//
//	Options.TransportFunc = func(*http.Transport) (http.RoundTripper, error) { return e.Transport(), nil }
//
// Statements run with all rights. The body of a response must be closed: a SELECT holds a connection until then.
// Cancelling a request's context stops its statement; an INSERT that was stopped may or may not have happened.
func (e *Engine) Transport() http.RoundTripper { return transport{e} }

type transport struct{ engine *Engine }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	response := &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
	}
	a, err := t.run(r)
	if err != nil {
		if ctxErr := r.Context().Err(); ctxErr != nil && !errors.Is(err, ctxErr) {
			err = fmt.Errorf("%w: %w", ctxErr, err)
		}
		if ctxErr := r.Context().Err(); ctxErr != nil || errors.Is(err, context.Canceled) {
			return nil, err
		}
		ex := asException(err)
		response.StatusCode, response.Header = httpStatus(ex.Code), exceptionHeader(ex)
		response.Body, response.ContentLength = io.NopCloser(strings.NewReader(ex.Message+"\n")), int64(len(ex.Message)+1)
	} else {
		response.StatusCode, response.Header, response.Body, response.ContentLength = http.StatusOK, a.header, a.body, a.length
	}
	response.Status = strconv.Itoa(response.StatusCode) + " " + http.StatusText(response.StatusCode)
	return response, nil
}

func (t transport) run(r *http.Request) (*answer, error) {
	q, err := readRequest(r, math.MaxInt64-1)
	if err != nil {
		return nil, err
	}
	return t.engine.answer(r.Context(), t.engine.writers, q)
}

func exceptionHeader(ex *Exception) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "text/plain; charset=UTF-8")
	h.Set("X-ClickHouse-Exception-Code", strconv.Itoa(ex.Code))
	h.Set("X-ClickHouse-Server-Display-Name", displayName)
	return h
}
