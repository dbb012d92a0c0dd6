//go:build linux || darwin

package sqlport

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// asked is a statement that the child was asked.
type asked struct {
	reader *Reader
	child  *child
	id     string
	ends   time.Time   // when it must have ended, but for an answer that its client has not taken yet
	late   atomic.Bool // it had not, and the child was killed for it
}

func (r *Reader) ask(c *child) *asked {
	return &asked{reader: r, child: c, id: rand.Text(), ends: time.Now().Add(r.opt.Limits.Time + overTime)}
}

// stopEvery is how long the child has to end a statement, until it is asked again: it may not have begun it yet.
const stopEvery = 100 * time.Millisecond

// stopAfter asks the child to end the statement once ctx is done, until it has ended.
func (a *asked) stopAfter(ctx context.Context, ended <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-ended:
		return
	}
	again := time.NewTicker(stopEvery)
	defer again.Stop()
	for {
		// An error means that the child is gone, or busy: the next round asks it again.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), overTime)
		_, _ = a.child.call(within, http.MethodPost, "/stop/"+a.id, nil)
		cancel()
		select {
		case <-again.C:
		case <-ended:
			return
		}
	}
}

// send asks the child and waits until its answer begins.
func (a *asked) send(request *http.Request) (*http.Response, error) {
	defer a.owed()()
	return a.child.links.exchange(request)
}

// read reads on in the answer.
func (a *asked) read(body io.Reader, p []byte) (int, error) {
	defer a.owed()()
	return body.Read(p)
}

// owed kills the child if it owes something for longer than the statement may take, until the returned function is called. The
// engine bounds the time of what it runs by itself; it does not look at the clock while it plans, nor within a block of rows.
func (a *asked) owed() func() {
	timer := time.AfterFunc(max(time.Until(a.ends), overTime), func() {
		a.late.Store(true)
		a.reader.opt.Log.Warn("SQL process killed: a statement did not end in its time")
		_ = a.child.command.Process.Kill()
	})
	return func() { timer.Stop() }
}
