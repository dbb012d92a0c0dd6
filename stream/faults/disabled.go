//go:build !faults

package faults

import "time"

// Enabled says whether this build can kill itself.
const Enabled = false

// Hit marks that a step was reached.
func Hit(string) {}

// Acked notes event ids that the log acknowledged.
func Acked(...[]byte) {}

// ClockShift is how far the producers' clock is ahead of the machine's.
func ClockShift() time.Duration { return 0 }

// ClockJumps says whether that clock may be moved while the process runs.
func ClockJumps() bool { return false }

// ClockJump is how far it was moved since the start.
func ClockJump() time.Duration { return 0 }
