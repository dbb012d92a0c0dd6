// Package operations has what operators ask of an instance: back-fills, replays, rebuilds, retries of dead letters, keys, sources and
// symbols. Each is a verb or a job of package admin and resumes after a kill.
package operations
