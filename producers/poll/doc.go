// Package poll reads sources that are polled over HTTP. A source is declared as a Source with its feeds; a Poller asks each when
// it is due, within the source's budget, and appends what has changed since the log last had it. What was written last is
// known from the log itself (source_log.go), so that a restart repeats nothing.
package poll
