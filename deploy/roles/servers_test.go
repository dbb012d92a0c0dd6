package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/stream"
)

func TestServersThatAreAwayAreWaitedFor(t *testing.T) {
	refused := errors.New("the password is wrong")
	busy := &net.OpError{Op: "listen", Err: errors.New("address already in use")}
	for _, test := range []struct {
		name  string
		err   error
		tries int
		want  error
	}{
		{"a store", fmt.Errorf("creating a view: %w", stream.ErrUnavailable), 5, nil},
		{"a broker", fmt.Errorf("unable to dial: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")}), 5, nil},
		{"a name", &net.DNSError{Name: "kafka"}, 5, nil},
		{"one that refuses", refused, 1, refused},
		{"a port of our own", busy, 1, busy},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				err := awaitServers(t.Context(), slog.New(slog.NewTextHandler(io.Discard, nil)), func() error {
					if tries++; tries < 5 {
						return test.err
					}
					return nil
				})
				if !errors.Is(err, test.want) || tries != test.tries {
					t.Errorf("got %v after %d tries, want %v after %d", err, tries, test.want, test.tries)
				}
			})
		})
	}
}

func TestWaitingForServersEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := awaitServers(ctx, slog.New(slog.NewTextHandler(io.Discard, nil)), func() error { return stream.ErrUnavailable })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Minute {
			t.Errorf("got %v after %v, want the end of the context after 1m", err, time.Since(began))
		}
	})
}

// A signal that comes while a server is being tried cuts the attempt off; what the attempt reports then is not a failure.
func TestBeingStoppedInAnAttemptIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := awaitServers(ctx, slog.New(slog.DiscardHandler), func() error {
		cancel()
		return errors.New("unable to dial: lookup kafka: connection refused")
	})
	if supervise.Stopped(ctx, err) != nil {
		t.Errorf("got %v, want a clean end", err)
	}
}
