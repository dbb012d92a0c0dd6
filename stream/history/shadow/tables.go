// Package shadow keeps the tables that a replay rebuilds beside the live ones, under their names and a suffix: it creates and drops them,
// compares them with the live ones row by row, gives them what a replay does not make, and exchanges the two in one step. Its journal says how
// far each replay has come, so that one whose process died is taken up or given up by the next.
//
// Every step may be made again: done already, it changes nothing.
package shadow

import "github.com/marketlog/marketlog/stream/history"

// Tables are those of a store, for replays. Safe for concurrent use.
type Tables struct{ store *history.Store }

// Of are the tables of a store, which stays the caller's to close.
func Of(store *history.Store) Tables { return Tables{store} }
