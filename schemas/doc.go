// Package schemas declares what Marketlog's events, topics and tables are, and holds the pure rules
// that more than one part applies: event ids, aggregation, symbol resolution. It does no I/O
// and reads no clock, so that the same log gives the same bytes.
package schemas
