package instance

import (
	"sync/atomic"
)

// lostTables is what the tables lack, in words; empty: nothing. Safe for concurrent use.
type lostTables struct{ what atomic.Pointer[string] }

// Set notes what they lack from now on.
func (l *lostTables) Set(what string) { l.what.Store(&what) }

// Waiting is what was noted last.
func (l *lostTables) Waiting() string {
	if what := l.what.Load(); what != nil {
		return *what
	}
	return ""
}
