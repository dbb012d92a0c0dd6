package admin

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// A job that was ended reports it, also where what it did failed in another way because of that.
func TestAnEndedJobHasNotFailed(t *testing.T) {
	cancelled := errors.New("the engine: query was cancelled")
	j := startJob(t.Context(), Command{Name: "v", Long: true, Run: func(ctx context.Context, _ json.RawMessage, _ func(any) error) error {
		<-ctx.Done()
		return cancelled
	}}, nil)
	j.cancel()
	<-j.done
	var last Reply
	j.Follow(t.Context(), func(r Reply) error { last = r; return nil })
	if !strings.Contains(last.Error, context.Canceled.Error()) || !strings.Contains(last.Error, cancelled.Error()) {
		t.Errorf("got %q, want that it was cancelled, and by what it failed", last.Error)
	}
}
