//go:build linux || darwin

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// piped is a running SELECT whose output the engine writes into a pipe: in every format whole, as into a file, with memory
// flat however long it is, since the engine waits where the reader does. (The library's own stream gives pieces, each a
// result of its own: see inPieces.)
type piped struct {
	engine *Engine
	pool   *pool
	member *member
	mark   string
	stop   func() bool
	out    *os.File // the reading end
	first  []byte   // read before the answer began
	whole  bool     // first is all of it

	ran     chan struct{} // closed when the engine has ended the statement
	failed  error         // how; valid then
	summary string        // of what it read and gave, valid then; empty where it failed

	mu    sync.Mutex
	cause error // why it was aborted
	once  sync.Once
}

// pipeBytes is what the kernel holds of output that nobody has read yet.
const pipeBytes = 1 << 20

// startPiped runs the SELECT of q on m and takes m over. With the first bytes of output there, or all of it, it returns; an
// error means that nothing was put out.
func (e *Engine) startPiped(ctx context.Context, p *pool, m *member, q *request) (*piped, error) {
	out, in, err := os.Pipe()
	if err != nil {
		p.give(m)
		return nil, fmt.Errorf("opening a pipe for the answer: %w", err)
	}
	widen(in, pipeBytes)
	s := &piped{engine: e, pool: p, member: m, mark: e.mark(), out: out, ran: make(chan struct{})}
	if err := e.begin(s); err != nil {
		_, _ = in.Close(), out.Close()
		p.give(m)
		return nil, err
	}
	s.stop = context.AfterFunc(ctx, func() { s.abort(context.Cause(ctx)) })
	sql := s.mark + q.shape.intoFile(q.sql, descriptorPath(in.Fd()), q.format)
	go func() {
		defer close(s.ran)
		r, err := m.run(sql, q.format, q.params)
		if err == nil {
			s.summary = r.summary()
			r.close()
		}
		s.failed = behind(err, len(s.mark))
		_ = in.Close() // the reader's end of file
	}()
	if err := s.begin(); err != nil {
		s.finish(err)
		return nil, err
	}
	return s, nil
}

// firstBytes are held back so that an answer which fails soon has a status that shows it, and a short one a length.
const (
	firstBytes = 64 << 10
	firstWait  = 50 * time.Millisecond // after the first of them
)

// begin reads the first bytes. An error means that the statement failed before more than those were put out.
func (s *piped) begin() error {
	held := firsts.Get().(*[firstBytes]byte)
	defer firsts.Put(held)
	first, n := held[:], 0
	for n < len(first) {
		m, err := s.out.Read(first[n:])
		if n == 0 {
			_ = s.out.SetReadDeadline(time.Now().Add(firstWait))
		}
		n += m
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			<-s.ran
			if failed := s.outcome(); failed != nil {
				return failed
			}
			s.whole = true
			break
		}
	}
	_ = s.out.SetReadDeadline(time.Time{})
	s.first = bytes.Clone(first[:n])
	return nil
}

// firsts and buffers are reused: allocated each time, they would have most statements collect garbage, which costs more than a short one.
var (
	firsts  = sync.Pool{New: func() any { return new([firstBytes]byte) }}
	buffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}
)

// length is that of all output in bytes, or -1 if it is not known yet.
func (s *piped) length() int64 {
	if s.whole {
		return int64(len(s.first))
	}
	return -1
}

// outcome is how the statement ended; nil: well.
func (s *piped) outcome() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return s.cause
	}
	return s.failed
}

func (s *piped) Read(p []byte) (int, error) {
	if len(s.first) > 0 {
		n := copy(p, s.first)
		s.first = s.first[n:]
		return n, nil
	}
	n, err := s.out.Read(p)
	if n > 0 {
		return n, nil
	}
	if err == nil {
		return 0, nil
	}
	<-s.ran // an end of the pipe is no end of the answer before the engine has reported it
	if failed := s.outcome(); failed != nil {
		s.finish(failed)
		return 0, failed
	}
	s.finish(nil)
	return 0, io.EOF
}

// abort makes the statement end with cause, as soon as the engine has noticed.
func (s *piped) abort(cause error) {
	s.mu.Lock()
	if s.cause == nil {
		s.cause = cause
	}
	s.mu.Unlock()
	// The engine may be waiting in a write, and notices nothing there. So what it writes is read on, and dropped: a pipe that
	// nobody reads would end this process by a signal, which the engine's threads do not ignore.
	go func() { _, _ = io.Copy(io.Discard, s.out) }() // ends when finish closes the pipe
	s.engine.kill(s.mark, s.ran)
	s.finish(cause)
}

// finish gives the connection back once the engine is done with it. One whose statement failed is closed.
func (s *piped) finish(err error) {
	s.once.Do(func() {
		s.stop()
		<-s.ran
		_ = s.out.Close()
		s.member.spoiled = s.member.spoiled || err != nil
		s.pool.give(s.member)
		s.engine.end(s)
	})
}

// Close ends the statement if it still runs.
func (s *piped) Close() error {
	select {
	case <-s.ran:
		s.finish(s.outcome())
	default:
		s.abort(io.ErrClosedPipe)
	}
	return nil
}
