package pages

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// linkLife is how long a link waits to be opened.
	linkLife = 10 * time.Minute
	// linksMost bounds the links that wait; a further one takes the place of the oldest.
	linksMost = 64
)

// Links are the one-time links that begin a session. Only who may start or command the instance can make one. Safe for
// concurrent use.
type Links struct {
	now func() time.Time

	mu      sync.Mutex
	waiting []link
}

type link struct {
	hash    [sha256.Size]byte
	expires time.Time
}

// NewLinks makes an empty set; links expire by the given clock.
func NewLinks(now func() time.Time) *Links { return &Links{now: now} }

// New draws the path of a link, /open/…, of more than 128 bits: it works once, within ten minutes.
func (l *Links) New() string {
	code := rand.Text()
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if len(l.waiting) == linksMost {
		l.waiting = l.waiting[1:]
	}
	l.waiting = append(l.waiting, link{sha256.Sum256([]byte(code)), now.Add(linkLife)})
	return openPath + code
}

// take reports whether a code is that of a link that waits, which it then does no more.
func (l *Links) take(code string) bool {
	// Hashes are compared, so the time that it takes reveals nothing about any code.
	hash := sha256.Sum256([]byte(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(l.now())
	for i := range l.waiting {
		if l.waiting[i].hash == hash {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (l *Links) expire(now time.Time) {
	for len(l.waiting) > 0 && !now.Before(l.waiting[0].expires) {
		l.waiting = l.waiting[1:]
	}
}
