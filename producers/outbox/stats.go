package outbox

import (
	"sync/atomic"
	"time"
)

// WriterStats is the state of a writer. Counts are since its start.
type WriterStats struct {
	// Accepted are ticks, dead letters and gaps taken from sources; Refused came after the end.
	Accepted, Refused uint64
	// Acked are records that the broker acknowledged, clocks included.
	Acked uint64
	// Spooled are records written to disk.
	Spooled uint64
	// Dropped are ticks and dead letters that were given up; gaps in the log report them.
	Dropped uint64
	// DamagedBytes could not be read back from the spool.
	DamagedBytes uint64
	// QueueBytes are accepted and not yet on their way.
	QueueBytes int
	// InFlight are records, and InFlightBytes their memory, that the client has.
	InFlight      int64
	InFlightBytes int64
	// SpoolBytes is the size of the spool on disk; Spooling means that ticks go through it.
	SpoolBytes int64
	Spooling   bool
	// Clock is the newest second whose clock records of all sources were acknowledged, with everything before them.
	Clock time.Time
	// LastAck is when the broker last acknowledged something.
	LastAck time.Time
	// Err is what the broker or the disk last refused, nil since the next success.
	Err error
}

type counters struct {
	accepted, refused, acked, spooled, dropped atomic.Uint64
	damaged                                    atomic.Uint64
	inFlight, inFlightBytes, spoolBytes        atomic.Int64
	spooling                                   atomic.Bool
	clock, lastAck                             atomic.Int64
	err                                        atomic.Pointer[error]
}

// Stats returns the state of the writer. Safe for concurrent use.
func (w *Writer) Stats() WriterStats {
	c := &w.stats
	s := WriterStats{
		Accepted: c.accepted.Load(), Refused: c.refused.Load(), Acked: c.acked.Load(),
		Spooled: c.spooled.Load(), Dropped: c.dropped.Load(), DamagedBytes: c.damaged.Load(),
		InFlight: c.inFlight.Load(), InFlightBytes: c.inFlightBytes.Load(),
		SpoolBytes: c.spoolBytes.Load(), Spooling: c.spooling.Load(),
	}
	s.QueueBytes, _ = w.queue.state()
	if at := c.clock.Load(); at != 0 {
		s.Clock = time.Unix(0, at)
	}
	if at := c.lastAck.Load(); at != 0 {
		s.LastAck = time.Unix(0, at)
	}
	if err := c.err.Load(); err != nil {
		s.Err = *err
	}
	return s
}
