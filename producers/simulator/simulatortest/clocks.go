package simulatortest

import "time"

// Noon is a time in the middle of an hour, a minute and a lattice step.
var Noon = time.Date(2026, 3, 4, 12, 34, 56, 789_000_000, time.UTC)

// Fixed is a clock that does not move.
type Fixed time.Time

// Now is for provider.Clock.
func (s Fixed) Now() time.Time { return time.Time(s) }

// After never delivers.
func (Fixed) After(time.Duration) <-chan time.Time { return nil }

// Settable is a clock that a test sets.
type Settable struct{ Time *time.Time }

// Now is for provider.Clock.
func (w Settable) Now() time.Time { return *w.Time }

// After never delivers.
func (Settable) After(time.Duration) <-chan time.Time { return nil }

// Machine is the machine's clock.
type Machine struct{}

// Now is for provider.Clock.
func (Machine) Now() time.Time { return time.Now() }

// After is for provider.Clock.
func (Machine) After(d time.Duration) <-chan time.Time { return time.After(d) }
