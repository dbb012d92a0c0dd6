package venues

import "sync"

// frames is a queue of what is to be sent on a connection: it takes memory for what waits in it, where a channel that
// holds sendQueue frames takes half a megabyte a connection. Safe for concurrent use, with one receiver.
type frames struct {
	limit int
	// more has a token while frames wait.
	more chan struct{}

	mu      sync.Mutex
	waiting []message
	// sending is how many were taken and are not sent yet.
	sending int
}

// newFrames makes a queue with room for limit frames.
func newFrames(limit int) *frames { return &frames{limit: limit, more: make(chan struct{}, 1)} }

// add appends a frame and reports whether there was room.
func (f *frames) add(m message) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting)+f.sending >= f.limit {
		return false
	}
	f.waiting = append(f.waiting, m)
	select {
	case f.more <- struct{}{}:
	default:
	}
	return true
}

// keptFrames is how many frames a queue keeps memory for while few wait in it.
const keptFrames = 256

// take returns the frames that wait, in order. The memory of those taken before is used again.
func (f *frames) take(before []message) []message {
	clear(before) // what was sent is not held
	if cap(before) > keptFrames {
		before = nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.waiting
	f.waiting = before[:0]
	f.sending += len(taken)
	return taken
}

// sent makes the room of one frame that was taken free.
func (f *frames) sent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sending--
}

// unsent is how many frames were added and are not sent yet.
func (f *frames) unsent() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiting) + f.sending
}
