// Package provider has what every simulated interface needs, be it of a venue or of a polled source: a clock, faults, limits of
// requests, counts, and the spelling of answers.
package provider

import "time"

// Clock is the time that the venues live in.
type Clock interface {
	Now() time.Time
	// After delivers once, when d has passed.
	After(d time.Duration) <-chan time.Time
}
