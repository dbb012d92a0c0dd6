package marketlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Retry is how often and how long a call is made again: after 429 and 503 when the server states it may, and where the connection fails. All
// operations only read, so a second call harms nothing.
type Retry struct {
	// Attempts counts the first call too; 1 is never again, 0 five.
	Attempts int
	// Longest is the most that a call waits in all, 0 being 30 s. A wait that does not fit into it, or into the deadline of the call's context,
	// is not begun.
	Longest time.Duration
	// Again is asked before each wait for another attempt: with what failed, and how long the wait is. Where it says false, the failure is the
	// call's. nil waits. It is for programs that tell people what they wait for, or wait for a part of what may pass only.
	Again func(err error, wait time.Duration) bool
}

// whole is it with what was left out.
func (r Retry) whole() Retry {
	if r.Attempts == 0 {
		r.Attempts = 5
	}
	if r.Longest == 0 {
		r.Longest = 30 * time.Second
	}
	return r
}

// again reports whether the same call may succeed later.
func again(err error) bool {
	refused, is := errors.AsType[*APIError](err)
	if !is {
		_, is = errors.AsType[*ConnectionFailed](err)
		return is
	}
	return refused.Status == 429 || refused.Status == 503
}

// pause is how long to wait: as the server states, else longer each time. Spread, so that all who were refused do not come back at once.
func pause(err error, attempt int) time.Duration {
	if refused, is := errors.AsType[*APIError](err); is && refused.RetryAfter > 0 {
		return refused.RetryAfter + rand.N(250*time.Millisecond)
	}
	longer := min(8*time.Second, 200*time.Millisecond<<min(attempt, 10))
	return longer*3/4 + rand.N(longer/2)
}

// sleep waits. It reports whether the context lasted, and does not begin what the context's deadline ends.
func sleep(ctx context.Context, wait time.Duration) bool {
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) < wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
