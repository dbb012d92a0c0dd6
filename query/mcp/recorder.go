package mcp

import (
	"bytes"
	"net/http"
)

// recorder keeps an answer of the library.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	// events lets it be a list of events. None goes on beyond the request: there is nothing to be notified of.
	events bool
}

// Header implements server.HTTPResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements server.HTTPResponseWriter.
func (r *recorder) WriteHeader(status int) { r.status = status }

// Write implements server.HTTPResponseWriter.
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// Flush implements server.HTTPResponseWriter.
func (r *recorder) Flush() {}

// CanStream implements server.HTTPResponseWriter.
func (r *recorder) CanStream() bool { return r.events }
