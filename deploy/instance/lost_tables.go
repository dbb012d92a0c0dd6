package instance

import (
	"sync/atomic"
)

// lostTables is what the tables lack that the ledger says is in them; empty: nothing.
type lostTables struct{ what atomic.Pointer[string] }

func (l *lostTables) Set(what string) { l.what.Store(&what) }

func (l *lostTables) Waiting() string {
	if what := l.what.Load(); what != nil {
		return *what
	}
	return ""
}
