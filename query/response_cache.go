package query

import (
	"maps"
	"sync/atomic"
)

// maxResponses bounds what is kept of one version: parameters that anyone may vary must not fill the memory.
const maxResponses = 128

// ResponseCache keeps the encoded responses of the current version of the data; a new version drops them. Each is encoded once by
// its first reader. The zero value is empty. Safe for
// concurrent use; readers take no lock.
type ResponseCache[V, K comparable] struct {
	cached atomic.Pointer[responsesOf[V, K]]
}

// responsesOf never changes.
type responsesOf[V, K comparable] struct {
	version V
	answers map[K]Answer
}

// Get returns the response to a key; make encodes it if it is not cached. A key must not have texts of a request, which are
// reused.
func (h *ResponseCache[V, K]) Get(version V, key K, make func() (Answer, error)) (Answer, error) {
	before := h.cached.Load()
	current := before != nil && before.version == version
	if current {
		if answer, ok := before.answers[key]; ok {
			return answer, nil
		}
	}
	answer, err := make()
	if err != nil || current && len(before.answers) >= maxResponses {
		return answer, err
	}
	next := &responsesOf[V, K]{version: version, answers: map[K]Answer{}}
	if current {
		maps.Copy(next.answers, before.answers)
	}
	next.answers[key] = answer
	h.cached.CompareAndSwap(before, next) // who loses against another reader makes it again next time
	return answer, nil
}
