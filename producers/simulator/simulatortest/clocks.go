package simulatortest

import "time"

// Noon is a time in the middle of an hour, a minute and a lattice step.
var Noon = time.Date(2026, 3, 4, 12, 34, 56, 789_000_000, time.UTC)

// Standing is a clock that does not move.
type Standing time.Time

// Now is for provider.Clock.
func (s Standing) Now() time.Time { return time.Time(s) }

// After never delivers.
func (Standing) After(time.Duration) <-chan time.Time { return nil }

// Walking is a clock that a test sets.
type Walking struct{ Time *time.Time }

// Now is for provider.Clock.
func (w Walking) Now() time.Time { return *w.Time }

// After never delivers.
func (Walking) After(time.Duration) <-chan time.Time { return nil }

// Machine is the machine's clock.
type Machine struct{}

// Now is for provider.Clock.
func (Machine) Now() time.Time { return time.Now() }

// After is for provider.Clock.
func (Machine) After(d time.Duration) <-chan time.Time { return time.After(d) }
