package adapter

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// Reasons of the gaps that an Exchange records.
const (
	// GapSequence is a gap in the venue's own numbering.
	GapSequence = "sequence"
	// GapDisconnect is a connection that was lost.
	GapDisconnect = "disconnect"
	// GapSilence is a connection that was closed since the venue sent nothing.
	GapSilence = "silence"
)

// gapReasons is the closed list.
var gapReasons = [...]string{GapSequence, GapDisconnect, GapSilence}

// ExchangeStats is how a venue's feeds are doing. Counters run from the start of the process.
type ExchangeStats struct {
	// Markets are subscribed to, over Connected open connections.
	Markets, Connected int64
	// Heard is when a frame last arrived, LastEvent when one, or an answer, last held an event of a market that is
	// subscribed to; zero before the first.
	Heard, LastEvent         time.Time
	Connects, Frames, Events int64
	// Refused counts messages and rows that became no event, by each of schemas.Reasons.
	Refused map[schemas.Reason]int64
	// Gaps counts what was recorded as missing, by each of the reasons GapSequence, GapDisconnect and GapSilence. Missed
	// are the messages that the venue's numbers say are missing.
	Gaps   map[string]int64
	Missed uint64
	// OpenGaps are connections that were lost and have not spoken since: their gaps are recorded when they do.
	OpenGaps int64
}

type exchangeStats struct {
	markets, connected, receivedAt, lastEvent, openGaps atomic.Int64
	connects, frames, events                            atomic.Int64
	missed                                              atomic.Uint64
	// gaps are by the place in gapReasons, refused by that in schemas.Reasons: a map would want a lock.
	gaps    [len(gapReasons)]atomic.Int64
	refused []atomic.Int64
}

func newExchangeStats() exchangeStats {
	return exchangeStats{refused: make([]atomic.Int64, len(schemas.Reasons))}
}

func (s *exchangeStats) refuse(reason schemas.Reason) {
	if i := slices.Index(schemas.Reasons, reason); i >= 0 {
		s.refused[i].Add(1)
	}
}

func (s *exchangeStats) gap(reason string, missed uint64) {
	if i := slices.Index(gapReasons[:], reason); i >= 0 {
		s.gaps[i].Add(1)
	}
	s.missed.Add(missed)
}

// Stats may be called at any time.
func (x *Exchange) Stats() ExchangeStats {
	s := ExchangeStats{
		Markets: x.stats.markets.Load(), Connected: x.stats.connected.Load(),
		Connects: x.stats.connects.Load(), Frames: x.stats.frames.Load(), Events: x.stats.events.Load(),
		Missed: x.stats.missed.Load(), OpenGaps: x.stats.openGaps.Load(),
		Refused: make(map[schemas.Reason]int64, len(schemas.Reasons)), Gaps: make(map[string]int64, len(gapReasons)),
	}
	for i, reason := range schemas.Reasons {
		s.Refused[reason] = x.stats.refused[i].Load()
	}
	for i, reason := range gapReasons {
		s.Gaps[reason] = x.stats.gaps[i].Load()
	}
	if receivedAt := x.stats.receivedAt.Load(); receivedAt != 0 {
		s.Heard = time.Unix(0, receivedAt)
	}
	if at := x.stats.lastEvent.Load(); at != 0 {
		s.LastEvent = time.Unix(0, at)
	}
	return s
}
