package producers

import (
	"sync/atomic"
	"time"
)

// ExchangeStats is how a venue's feeds are doing. Counters run from the start of the process.
type ExchangeStats struct {
	// Markets are subscribed to, over Connected open connections.
	Markets, Connected int64
	// Heard is when a frame last arrived; zero before the first.
	Heard                                   time.Time
	Connects, Frames, Events, Refused, Gaps int64
}

type exchangeStats struct {
	markets, connected, heard               atomic.Int64
	connects, frames, events, refused, gaps atomic.Int64
}

// Stats may be called at any time.
func (x *Exchange) Stats() ExchangeStats {
	s := ExchangeStats{
		Markets: x.stats.markets.Load(), Connected: x.stats.connected.Load(),
		Connects: x.stats.connects.Load(), Frames: x.stats.frames.Load(), Events: x.stats.events.Load(),
		Refused: x.stats.refused.Load(), Gaps: x.stats.gaps.Load(),
	}
	if heard := x.stats.heard.Load(); heard != 0 {
		s.Heard = time.Unix(0, heard)
	}
	return s
}
