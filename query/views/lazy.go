package views

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/stream/retry"
)

// Lazy is a value that its first reader makes where it is out of date; for those who read meanwhile, the one before is the
// newest, so that many readers in one moment do not make the same. The zero value has none yet. Safe for concurrent use.
type Lazy[T any] struct {
	// mu is held while a value is made; in this package it also guards what values are made of.
	mu    sync.Mutex
	value atomic.Pointer[T]
}

// Get returns a value that is current. Where there is none, it returns what build makes; while another reader does, it
// returns the one before, or waits if there is none.
func (l *Lazy[T]) Get(current func(*T) bool, build func() *T) *T {
	value := l.value.Load()
	switch {
	case value == nil:
		l.mu.Lock()
	case current(value):
		return value
	case !l.mu.TryLock():
		return value
	}
	defer l.mu.Unlock()
	return l.update(current, build)
}

// Settle is Get for a caller that has to see what happened before the call: it waits while another reader makes a value.
func (l *Lazy[T]) Settle(current func(*T) bool, build func() *T) *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.update(current, build)
}

// update makes the value if it is out of date. Callers hold the mutex.
func (l *Lazy[T]) update(current func(*T) bool, build func() *T) *T {
	value := l.value.Load()
	if value == nil || !current(value) {
		value = build()
		l.value.Store(value)
	}
	return value
}

// KeepRead calls read until the context ends, and waits after each call as long as it returns; it returns the context's error.
// Answers go on with what was read before: of failures in a row the first is logged, as failure.
func KeepRead(ctx context.Context, log *slog.Logger, failure string, read func(context.Context) (pause time.Duration, err error)) error {
	failing := false
	for {
		pause, err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !failing:
			log.Warn(failure, "error", err)
		}
		failing = err != nil
		if err := retry.Wait(ctx, pause); err != nil {
			return err
		}
	}
}
