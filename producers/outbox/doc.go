// Package outbox brings what was read into the log, in order and without waiting for the network: a bounded queue in memory
// (queue.go), a spool on disk for the time in which the broker is away (spool.go), and, beyond the bounds of both, a gap record
// in the place of what was dropped. A dispatcher moves records from one to the other and sends them (dispatch.go).
package outbox
