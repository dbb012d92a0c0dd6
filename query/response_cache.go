package query

import (
	"maps"
	"sync/atomic"
)

// heldAnswers bounds what is kept of one version: parameters that anyone may vary must not fill the memory.
const heldAnswers = 128

// ResponseCache keeps the encoded answers that were made from one version of what they tell, so that each is encoded once by
// its first reader. An answer from another version makes it forget all. The zero value holds nothing. Safe for
// concurrent use; readers take no lock.
type ResponseCache[V, K comparable] struct {
	held atomic.Pointer[heldOf[V, K]]
}

// heldOf never changes.
type heldOf[V, K comparable] struct {
	version V
	answers map[K]Answer
}

// Get returns the answer to a key, which make makes where it is not held. A key must not hold texts of a request.
func (h *ResponseCache[V, K]) Get(version V, key K, make func() (Answer, error)) (Answer, error) {
	before := h.held.Load()
	current := before != nil && before.version == version
	if current {
		if answer, ok := before.answers[key]; ok {
			return answer, nil
		}
	}
	answer, err := make()
	if err != nil || current && len(before.answers) >= heldAnswers {
		return answer, err
	}
	next := &heldOf[V, K]{version: version, answers: map[K]Answer{}}
	if current {
		maps.Copy(next.answers, before.answers)
	}
	next.answers[key] = answer
	h.held.CompareAndSwap(before, next) // who loses against another reader makes it again next time
	return answer, nil
}
