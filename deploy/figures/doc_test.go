// Package figures measures the whole binary as a process of its own: how long a tick takes from an
// exchange's wire to a subscriber, how fast a log is replayed, how long a start takes and what an
// instance holds at rest; each beside what this machine allows at most, measured in the same run.
package figures
