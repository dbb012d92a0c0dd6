package provider

import "sync/atomic"

// Stats count what a venue or a source did since the simulator began.
type Stats struct {
	// Connects were accepted, Connected are open now.
	Connects, Connected int64
	// Frames were sent, Requests answered, Throttled of them with a refusal.
	Frames, Requests, Throttled int64
}

// Counter counts for Stats, but for the connections that are open. The zero value is ready; safe for concurrent use.
type Counter struct {
	Connects, Frames, Requests, Throttled atomic.Int64
}

// Stats are the counts so far.
func (c *Counter) Stats() Stats {
	return Stats{
		Connects: c.Connects.Load(), Frames: c.Frames.Load(), Requests: c.Requests.Load(), Throttled: c.Throttled.Load(),
	}
}
