package outbox

import "sync"

// queue is where sources leave records for the dispatcher, in the order in which they came. Its
// mutex also guards what decides that order: the last clock of every source.
type queue struct {
	mu    sync.Mutex
	moved sync.Cond
	// waiting are not yet taken; held counts them and what the dispatcher took and has not released.
	waiting []*record
	held    int
	limit   int
	closed  bool

	// wake is signalled when the queue stops being empty, and when it is closed.
	wake chan<- struct{}
}

func newQueue(limit int, wake chan<- struct{}) *queue {
	q := &queue{limit: limit, wake: wake}
	q.moved.L = &q.mu
	return q
}

// lock waits until there is room and returns with the mutex held, or false without it once the queue
// is closed. The wait is for the disk at most: the dispatcher empties a full queue into the spool.
func (q *queue) lock() bool {
	q.mu.Lock()
	for q.held >= q.limit && !q.closed {
		q.moved.Wait()
	}
	if q.closed {
		q.mu.Unlock()
		return false
	}
	return true
}

// add puts a record at the end. The caller holds the mutex.
func (q *queue) add(r *record) {
	q.waiting = append(q.waiting, r)
	q.held += r.weight()
	if len(q.waiting) == 1 {
		signal(q.wake)
	}
}

// take moves what waits to the end of rs.
func (q *queue) take(rs []*record) []*record {
	q.mu.Lock()
	defer q.mu.Unlock()
	rs = append(rs, q.waiting...)
	clear(q.waiting)
	q.waiting = q.waiting[:0]
	return rs
}

// release gives back the room of records that went on to the spool or to the client.
func (q *queue) release(weight int) {
	q.mu.Lock()
	q.held -= weight
	q.mu.Unlock()
	q.moved.Broadcast()
}

// state returns how many bytes are held and whether nothing more will come.
func (q *queue) state() (held int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held, q.closed
}

// close refuses what comes from now on.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.moved.Broadcast()
	signal(q.wake)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is signalled already
	}
}
