package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
)

// A job that was ended reports that, in the same words whatever the part that was interrupted returned: a statement that the
// engine ended, or a connection to a broker whose error is context.Canceled in other words.
func TestAnEndedJobHasNotFailed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, dialled := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
	for _, interrupted := range []error{errors.New("the engine: query was cancelled"), dialled, context.Canceled} {
		v := Command{Name: "replay", Long: true, Run: func(ctx context.Context, _ json.RawMessage, _ func(any) error) error {
			<-ctx.Done()
			return interrupted
		}}
		j := startJob(t.Context(), v, nil)
		j.cancel()
		<-j.done
		var last Reply
		j.Follow(t.Context(), func(r Reply) error { last = r; return nil })
		if want := "the replay is ended; given again, it continues where it stopped"; last.Error != want {
			t.Errorf("%v: got %q, want %q", interrupted, last.Error, want)
		}
	}
}

// A job that fails by itself reports what failed.
func TestAFailedJobReportsWhy(t *testing.T) {
	j := startJob(t.Context(), Command{Name: "replay", Long: true, Run: func(context.Context, json.RawMessage, func(any) error) error {
		return errors.New("no room")
	}}, nil)
	<-j.done
	j.Follow(t.Context(), func(r Reply) error {
		if r.Error != "no room" {
			t.Errorf("got %+v, want what failed", r)
		}
		return nil
	})
}
