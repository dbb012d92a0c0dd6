package producers

import (
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Outbox takes what a source read, in the order in which it was read, towards the log.
// Its methods never block on the network: beyond its bounded memory it spools to disk, and
// beyond the spool's bound it drops the oldest ticks and records a gap in their place.
// Safe for concurrent use; order is kept per caller.
type Outbox interface {
	// Tick hands over one tick. Venue, symbol, base, quote, kind, event id and ingest time are set.
	Tick(*eventsv1.Tick)
	// Dead hands over a frame that could not be decoded or must not become a tick.
	Dead(*eventsv1.DeadLetter)
	// Gap records that messages of a venue are known to be missing.
	Gap(*eventsv1.Gap)
}
