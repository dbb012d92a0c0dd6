//go:build linux || darwin

package engine

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
)

// statement is one running SQL statement. As a reader it gives the output and, where the engine fails after the first
// bytes are out, ClickHouse's exception frame, as its HTTP server does; so a cut result never looks complete.
type statement struct {
	engine *Engine
	pool   *pool
	member *member
	mark   string
	stop   func() bool

	mu      sync.Mutex // held by whoever calls the library or reads its memory
	source  *result    // the stream; nil if the output came at once
	piece   *result
	rest    []byte
	failed  error // what the reader gets once rest is used up; io.EOF after the end
	written uint64
	ended   bool

	stateMu sync.Mutex
	cause   error         // why it was aborted
	calling chan struct{} // closed when the call that runs now returns; nil outside of calls
}

// start runs sql on m and takes m over. streamed asks for output piece by piece, which only a SELECT can give. With the
// first piece of output known, it returns; an error means that nothing was put out.
func (e *Engine) start(ctx context.Context, p *pool, m *member, sql, format string, params []param, streamed bool) (*statement, error) {
	s := &statement{engine: e, pool: p, member: m, mark: e.mark()}
	// Close and a context that has ended already abort it at once, which waits here until it is whole.
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := e.begin(s); err != nil {
		p.give(m)
		return nil, err
	}
	s.stop = context.AfterFunc(ctx, func() { s.abort(context.Cause(ctx)) })
	if err := s.open(sql, format, params, streamed); err != nil {
		err = behind(err, len(s.mark))
		s.finish(err)
		return nil, err
	}
	return s, nil
}

func (s *statement) open(sql, format string, params []param, streamed bool) (err error) {
	sql = s.mark + sql
	if streamed {
		err = s.call(func() error { s.source, err = s.member.stream(sql, format, params); return err })
		if notStreamable(err) {
			streamed = false
		} else if err != nil {
			return err
		}
	}
	if streamed {
		return s.next()
	}
	if err := s.call(func() error { s.piece, err = s.member.run(sql, format, params); return err }); err != nil {
		return err
	}
	s.rest, s.failed, s.written = s.piece.bytes(), io.EOF, s.piece.rowsWritten()
	if len(s.rest) == 0 {
		s.finish(io.EOF)
	}
	return nil
}

// notStreamable recognises the refusal that the library gives before it runs anything.
func notStreamable(err error) bool {
	var ex *Exception
	return errors.As(err, &ex) && ex.Code == codeBadArguments && strings.Contains(ex.Message, "Streaming query is not supported")
}

// call runs fn, which calls the library, and lets abort kill it meanwhile.
func (s *statement) call(fn func() error) error {
	done := make(chan struct{})
	s.stateMu.Lock()
	if s.cause != nil {
		defer s.stateMu.Unlock()
		return s.cause
	}
	s.calling = done
	s.stateMu.Unlock()
	err := fn()
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	close(done)
	s.calling = nil
	if s.cause != nil { // also where there is no error: the library gives of some statements that are killed an empty result
		return s.cause
	}
	return err
}

// abort makes the statement end with cause: at once if the library is not at work on it, else as soon as the engine
// has noticed.
func (s *statement) abort(cause error) {
	s.stateMu.Lock()
	if s.cause == nil {
		s.cause = cause
	}
	calling := s.calling
	s.stateMu.Unlock()
	if calling != nil {
		s.engine.kill(s.mark, calling)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish(cause)
}

// next replaces the piece by the following one of the stream, and finishes at the end.
func (s *statement) next() error {
	if s.piece != nil {
		s.piece.close()
		s.piece, s.rest = nil, nil
	}
	err := s.call(func() (err error) { s.piece, err = s.member.fetch(s.source); return err })
	if err != nil {
		return err
	}
	if s.rest = s.piece.bytes(); len(s.rest) == 0 {
		s.finish(io.EOF)
	}
	return nil
}

// finish gives everything back to the library and the connection to its pool. Read answers with err from now on.
func (s *statement) finish(err error) {
	if s.ended {
		return
	}
	s.ended, s.failed, s.rest = true, err, nil
	s.stop()
	if err != io.EOF {
		// What a failed or broken off statement leaves in its connection would come out with the next one's answer, and its
		// memory stays taken as long as the connection lives.
		s.member.spoiled = true
	}
	if s.piece != nil {
		s.piece.close()
	}
	if s.source != nil {
		if err != io.EOF {
			s.member.cancel(s.source)
		}
		s.source.close()
	}
	s.pool.give(s.member)
	s.engine.end(s)
}

// length is that of all output in bytes, or -1 if it is not known yet.
func (s *statement) length() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.source != nil && !s.ended {
		return -1
	}
	return int64(len(s.rest))
}

func (s *statement) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.rest) == 0 {
		if s.ended {
			return 0, s.failed
		}
		if s.source == nil {
			s.finish(io.EOF)
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			s.finish(err)
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *statement) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish(io.ErrClosedPipe)
	return nil
}
