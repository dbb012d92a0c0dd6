// Package read answers from the tables of a store: prices, candles, rates, statistics and what else is known of the past. It writes nothing
// and keeps nothing: what it answers is what the tables state when it is asked, each row once whatever a sink wrote again.
//
// Times of an answer are in UTC. Where a span is asked for, its bounds report whether they belong to it. An error that wraps
// stream.ErrUnavailable may be gone at the next try.
package read

import "github.com/marketlog/marketlog/stream/history"

// Reader reads from a store. Safe for concurrent use.
type Reader struct{ store *history.Store }

// From reads from a store, which stays the caller's to close.
func From(store *history.Store) Reader { return Reader{store} }
