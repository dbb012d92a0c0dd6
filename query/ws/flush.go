package ws

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// passChunk is how many sockets a writer takes at a time: enough to share out without contention, few
// enough for the last of them to come at about the same time.
const passChunk = 64

// pass writes what waits for subscribers that were claimed, on as many goroutines as can run. No
// socket makes it wait: the frames of all readers that keep up leave in one system call each, without
// a switch to a goroutine of their own, and one that is full is left to such a goroutine.
func (h *Hub) pass(due []*subscriber) {
	writers := min(runtime.GOMAXPROCS(0), (len(due)+passChunk-1)/passChunk)
	var next atomic.Int64
	work := func() {
		for {
			end := int(next.Add(passChunk))
			begin := end - passChunk
			if begin >= len(due) {
				return
			}
			for _, s := range due[begin:min(end, len(due))] {
				h.flush(s)
			}
		}
	}
	if writers <= 1 {
		work()
		return
	}
	var all sync.WaitGroup
	for range writers {
		all.Go(work)
	}
	all.Wait()
}

// flush writes what waits for a subscriber that its caller has claimed, until nothing does or the
// socket takes no more; it never waits.
func (h *Hub) flush(s *subscriber) {
	a := attempts.Get().(*attempt)
	defer attempts.Put(a)
	for {
		out, end := s.take()
		if out == nil && end == nil {
			return
		}
		if s.direct != nil && len(out) > 0 {
			rest, err := a.write(s.direct, out)
			if err != nil {
				h.abort(s, err)
				return
			}
			out = rest
		}
		if len(out) > 0 {
			go h.flushBlocking(s, out, end)
			return
		}
		if end != nil {
			h.closeGracefully(s, end)
			return
		}
	}
}

// flushBlocking writes the rest of a frame that a full socket did not take, then goes on as flush
// does. A reader that needs longer than a write may take is closed with a reason, if it takes the rest
// of the frame at all: no reason can be sent in the middle of one.
func (h *Hub) flushBlocking(s *subscriber, rest []byte, end *ending) {
	began := time.Now()
	err := s.raw.SetWriteDeadline(began.Add(h.cfg.WriteTimeout + h.cfg.Linger))
	if err == nil {
		_, err = s.raw.Write(rest)
	}
	if err == nil {
		// The next attempt does not wait, and must not find a deadline that has passed.
		err = s.raw.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		h.abort(s, err)
		return
	}
	if end != nil {
		h.closeGracefully(s, end)
		return
	}
	if time.Since(began) > h.cfg.WriteTimeout {
		// Claimed already: flush finds it.
		s.finish(closeSlow, "too slow: a frame was not read in time")
	}
	h.flush(s)
}

// abort gives up a socket that cannot be written to.
func (h *Hub) abort(s *subscriber, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		h.metrics.close(closeSlow)
	}
	_ = s.raw.Close()
	s.release()
}

// closeGracefully gives a client that was sent a close frame a moment to answer.
func (h *Hub) closeGracefully(s *subscriber, end *ending) {
	if !end.answered {
		h.metrics.close(end.code)
	}
	if s.raw.SetReadDeadline(time.Now().Add(goodbye)) != nil {
		_ = s.raw.Close()
	}
	s.release()
}

// attempt is one write that does not wait. It is kept for the next one, since what a raw connection
// is given to call would else be allocated each time.
type attempt struct {
	bytes []byte
	n     int
	err   error
	call  func(fd uintptr) bool
}

var attempts = sync.Pool{New: func() any {
	a := &attempt{}
	a.call = func(fd uintptr) bool {
		for {
			a.n, a.err = syscall.Write(int(fd), a.bytes)
			if !errors.Is(a.err, syscall.EINTR) {
				return true // false would wait for room
			}
		}
	}
	return a
}}

// write returns what the socket had no room for.
func (a *attempt) write(to syscall.RawConn, b []byte) (rest []byte, err error) {
	a.bytes = b
	err = to.Write(a.call)
	a.bytes = nil
	switch {
	case err != nil:
		return nil, err
	case errors.Is(a.err, syscall.EAGAIN):
		return b, nil
	case a.err != nil:
		return nil, a.err
	}
	return b[a.n:], nil
}

// directOf is the way to write to a connection without waiting; nil for one that has none, such as
// an encrypted one, which then has a goroutine for each frame.
func directOf(conn net.Conn) syscall.RawConn {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
