package fetch_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/producers/fetch"
	"github.com/marketlog/marketlog/producers/poll"
)

// A server that is overrun without saying until when is asked again, later each time, and given up in the end.
func TestTooManyRequestsWithoutATimeAreTriedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &counting{answer: func(int) *http.Response { return reply(429, `{"status":{"error_code":429}}`) }}
		_, err := client(t, nil, wire).Get(t.Context(), "http://source", poll.Request{Path: "/x"}, poll.Validators{})
		var status *fetch.StatusError
		if !errors.As(err, &status) || status.Status != 429 || status.RefusedForGood() {
			t.Errorf("got %v, want status 429, which may pass", err)
		}
		if wire.n != 3 {
			t.Fatalf("%d requests, want 3", wire.n)
		}
		for i := 1; i < wire.n; i++ {
			if pause := wire.at[i].Sub(wire.at[i-1]); pause < 250*time.Millisecond {
				t.Errorf("pause %d was %s, want one", i, pause)
			}
		}
	})
}

// What names one thing of many is skipped when it alone is refused, not when whoever asks is.
func TestOnlyAnAnswerAboutTheRequestIsForGood(t *testing.T) {
	for status, want := range map[int]bool{
		400: true, 404: true, 410: true, 422: true, 451: true,
		401: false, 402: false, 403: false, 407: false, 408: false, 418: false, 425: false, 429: false, 500: false, 503: false, 304: false,
	} {
		if got := (&fetch.StatusError{Status: status}).RefusedForGood(); got != want {
			t.Errorf("status %d: refused for good = %t, want %t", status, got, want)
		}
	}
}

// The beginning of an answer is not an answer: a list that lacks its end would be a list of fewer coins.
func TestATruncatedAnswerIsNone(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(bytes.Repeat([]byte(`{"id":"harbor","symbol":"hbr"},`), 10_000))
	_ = w.Close()
	for name, cut := range map[string]func(http.ResponseWriter){
		"gzip without its end": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed.Bytes()[:packed.Len()/2])
		},
		"gzip without its check sum": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed.Bytes()[:packed.Len()-8])
		},
		"less than was announced": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("[{"))
		},
		"no gzip at all": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte(`[{"id":"harbor"}]`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				cut(w)
			})
			c := client(t, func(c *fetch.Config) { c.Attempts = 1 }, nil)
			answer, err := c.Get(t.Context(), address, poll.Request{}, poll.Validators{})
			if err == nil || len(answer.Body) > 0 || requests.Load() != 1 {
				t.Errorf("got %d bytes, %v after %d requests, want a failure", len(answer.Body), err, requests.Load())
			}
		})
	}
}

// What was cut off once may come whole the next time.
func TestATruncatedAnswerIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wire := &counting{answer: func(n int) *http.Response {
			if n > 1 {
				return reply(200, "whole")
			}
			r := reply(200, "")
			r.Body = cutOff{strings.NewReader("who")}
			return r
		}}
		answer, err := client(t, nil, wire).Get(t.Context(), "http://source", poll.Request{Path: "/x"}, poll.Validators{})
		if err != nil || string(answer.Body) != "whole" || wire.n != 2 {
			t.Errorf("got %q, %v after %d requests, want the second answer", answer.Body, err, wire.n)
		}
	})
}

// cutOff fails where its text ends.
type cutOff struct{ text *strings.Reader }

func (c cutOff) Read(p []byte) (int, error) {
	if n, _ := c.text.Read(p); n > 0 {
		return n, nil
	}
	return 0, errors.New("connection reset by peer")
}

func (c cutOff) Close() error { return nil }

// An answer without end is not read to its end, and not asked for again: it would not be smaller.
func TestAHugeAnswerIsLeftUnread(t *testing.T) {
	var sent, requests atomic.Int64
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 100 {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	c := client(t, func(c *fetch.Config) { c.MaxBody = 1 << 20 }, nil)
	answer, err := c.Get(t.Context(), address, poll.Request{}, poll.Validators{})
	if err == nil || !strings.Contains(err.Error(), "too large: more than 1048576 bytes") || len(answer.Body) > 0 {
		t.Errorf("got %d bytes, %v, want a refusal that names the bound", len(answer.Body), err)
	}
	if requests.Load() != 1 || sent.Load() > 50<<20 {
		t.Errorf("%d requests took %d bytes, want one, and the least part of 100 MB", requests.Load(), sent.Load())
	}
}
