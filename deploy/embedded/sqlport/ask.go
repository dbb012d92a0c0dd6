//go:build linux || darwin

package sqlport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Ask runs a statement for somebody that the server knows, within Options.Known, and answers as ClickHouse's HTTP interface does:
// with the status, the header X-ClickHouse-Exception-Code and the text of a refusal. Parameters are those of that interface. Of the
// places that statements run in, a client has at most half. The body must be closed; it fails where the answer breaks off. When
// the context ends, so does the statement.
func (r *Reader) Ask(ctx context.Context, client string, parameters url.Values, statement string) (*http.Response, error) {
	gone, leave := context.WithCancel(ctx)
	place, err := r.slots.take(gone, "known:"+client, leave)
	if err != nil {
		leave()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return r.refusal(http.StatusServiceUnavailable, 202, "TOO_MANY_SIMULTANEOUS_QUERIES",
			fmt.Sprintf("Too many simultaneous queries: no place came free within %v", r.slots.wait)), nil
	}
	b := &answerBody{leave: leave, place: place, ended: make(chan struct{})}
	c, err := r.ready(ctx)
	if err != nil {
		b.finish()
		return r.refusal(http.StatusServiceUnavailable, 236, "ABORTED", notReady(err)), nil
	}
	b.asked = r.ask(c)
	b.asked.ends = time.Now().Add(r.opt.Known.Time + overTime)
	request, err := http.NewRequest(http.MethodPost, "http://sql"+pathKnown+"/?"+parameters.Encode(), strings.NewReader(statement))
	if err != nil {
		b.finish()
		return nil, fmt.Errorf("asking the SQL process: %w", err)
	}
	request.Header.Set(statementHeader, b.asked.id)
	go b.asked.stopAfter(gone, b.ended)
	response, err := b.asked.send(request)
	switch {
	case err == nil:
		r.metrics.statements.WithLabelValues(outcome(response.StatusCode)).Inc()
		b.body, response.Body = response.Body, b
		return response, nil
	case b.asked.late.Load():
		<-c.ended
		b.finish()
		return r.refusal(http.StatusRequestTimeout, 159, "TIMEOUT_EXCEEDED", fmt.Sprintf("Timeout exceeded: the statement was not planned within %v", r.opt.Known.Time+overTime)), nil
	}
	b.finish()
	if ctx.Err() != nil {
		r.metrics.statements.WithLabelValues("gone").Inc()
		return nil, context.Cause(ctx)
	}
	return r.refusal(http.StatusServiceUnavailable, 236, "ABORTED", "the process that ran the statement ended"+r.why(c)+"; it is started again with the next one"), nil
}

// notReady reports that a statement was not run, and the remedy.
func notReady(err error) string { return err.Error() + "; the statement was not run: send it again" }

// refusal is an answer of this process's own, in the form of the engine's.
func (r *Reader) refusal(status, code int, name, text string) *http.Response {
	r.metrics.statements.WithLabelValues(outcome(status)).Inc()
	header := http.Header{"X-Clickhouse-Exception-Code": {fmt.Sprint(code)}}
	return &http.Response{StatusCode: status, Header: header,
		Body: io.NopCloser(strings.NewReader(fmt.Sprintf("Code: %d. DB::Exception: %s. (%s)\n", code, strings.TrimRight(text, ".\n"), name)))}
}

// answerBody is an answer as it comes. The statement's place is free when the statement has ended, and not when its reader goes.
type answerBody struct {
	asked *asked
	body  io.ReadCloser
	place *slot
	leave func()
	ended chan struct{}
	once  sync.Once
	over  error // what every reading is answered with once the end was reached
}

func (b *answerBody) Read(p []byte) (int, error) {
	if b.over != nil {
		return 0, b.over
	}
	b.place.took()
	n, err := b.asked.read(b.body, p)
	if err != nil {
		b.finish()
		if b.over = io.EOF; !errors.Is(err, io.EOF) {
			b.over = fmt.Errorf("reading the answer of the SQL process: %w", err)
		}
		return n, b.over
	}
	b.place.waits()
	return n, nil
}

// Close ends the statement, if it has not ended yet, and waits for that.
func (b *answerBody) Close() error {
	b.leave()
	b.place.took()
	var held [16 << 10]byte
	for {
		select {
		case <-b.ended:
			return nil
		default:
		}
		if _, err := b.asked.read(b.body, held[:]); err != nil {
			b.finish()
			return nil
		}
	}
}

func (b *answerBody) finish() {
	b.once.Do(func() {
		close(b.ended)
		b.leave()
		if b.body != nil {
			_ = b.body.Close()
		}
		b.place.give()
	})
}
