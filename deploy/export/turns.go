package export

import (
	"context"
	"errors"
	"sync"
)

// errYielded ends an export of a lake, since a person asks for one.
var errYielded = errors.New("an export that a person asks for goes first")

// Turns let one export of an instance run at a time, a person's before the lake's: the lake's ends when a person's comes, and goes on
// after it where it stopped. The zero value is ready. Safe for concurrent use.
type Turns struct {
	mu     sync.Mutex
	people int
	// lake is closed when the export of the lake has ended, which yield asks for; nil: none runs.
	lake  chan struct{}
	yield context.CancelCauseFunc
	// free is closed when no person's export runs or waits any more; nil: none does.
	free chan struct{}
}

// Person takes the turn for what a person asks for, once the lake's export has ended. Unless there is an error, the caller calls done
// at the end.
func (t *Turns) Person(ctx context.Context) (done func(), err error) {
	t.mu.Lock()
	if t.people++; t.people == 1 {
		t.free = make(chan struct{})
	}
	lake := t.lake
	if lake != nil {
		t.yield(errYielded)
	}
	t.mu.Unlock()
	done = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.people--; t.people == 0 {
			close(t.free)
			t.free = nil
		}
	}
	if lake != nil {
		select {
		case <-lake:
		case <-ctx.Done():
			done()
			return nil, ctx.Err()
		}
	}
	return done, nil
}

// ofLake takes the turn for the lake, once no person's export runs. The context it returns ends when a person asks for one. Unless
// there is an error, the caller calls done at the end.
func (t *Turns) ofLake(ctx context.Context) (turn context.Context, done func(), err error) {
	for {
		t.mu.Lock()
		free := t.free
		if free == nil {
			break
		}
		t.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	defer t.mu.Unlock()
	turn, yield := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	t.lake, t.yield = ended, yield
	return turn, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		yield(nil)
		close(ended)
		t.lake = nil
	}, nil
}
