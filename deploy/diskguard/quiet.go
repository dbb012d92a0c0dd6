package diskguard

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// mostMessages bounds what is remembered of messages; some hold what others sent.
const mostMessages = 256

// Quiet is a handler that passes each message once a minute while all ingest is paused, and for a minute afterwards. A disk
// without room makes dozens of roles fail for the same reason, again and again, and the log may be on it. How many lines
// were left out since the last one of a message is its attribute left_out; what each role failed of, /healthz has.
func (g *Guard) Quiet(next slog.Handler) slog.Handler {
	return quiet{Handler: next, guard: g, passed: &passed{messages: map[string]*message{}}}
}

type quiet struct {
	slog.Handler
	guard *Guard
	*passed
}

// passed is what was passed lately, of all handlers that come from one.
type passed struct {
	mu       sync.Mutex
	paused   time.Time // when all ingest was last seen to be paused
	messages map[string]*message
}

type message struct {
	at      time.Time
	leftOut int
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	level, _ := q.guard.Level()
	pass, leftOut := q.passes(r.Message, level, time.Now())
	if !pass {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", leftOut))
	}
	return q.Handler.Handle(ctx, r)
}

func (s *passed) passes(text string, level Level, now time.Time) (pass bool, leftOut int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if level >= Feeds {
		s.paused = now
	}
	if s.paused.IsZero() || now.Sub(s.paused) >= warnInterval {
		if m := s.messages[text]; m != nil {
			leftOut = m.leftOut
		}
		delete(s.messages, text)
		return true, leftOut
	}
	m := s.messages[text]
	switch {
	case m == nil && len(s.messages) >= mostMessages:
		return true, 0
	case m == nil:
		s.messages[text] = &message{at: now}
		return true, 0
	case now.Sub(m.at) < warnInterval:
		m.leftOut++
		return false, 0
	}
	leftOut, m.at, m.leftOut = m.leftOut, now, 0
	return true, leftOut
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.guard, q.passed}
}

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.guard, q.passed}
}
