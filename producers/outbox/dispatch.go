package outbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/stream/faults"
)

const (
	// chores is how often the spool is synced and the age of what is in flight looked at.
	housekeepingInterval = time.Second
	// ResendPause is the delay between attempts while a broker or a disk rejects records.
	ResendPause = time.Second
	// feedAtOnce is how many records are read from the spool before the queue is looked at again.
	feedAtOnce = 4096
)

// dispatcher moves records from the queue to the client, directly or through the spool. It is one
// goroutine's own; the client passes records back by their done flag.
//
// While the broker answers, a record goes from pending to the client and stays in flight until it is
// acknowledged. Once the broker falls behind (its part of the memory is full and the queue is half
// full, or it acknowledged nothing for SpoolAfter) everything in flight is written to the spool, in
// order, and what comes later is appended there; the client is fed from the spool. That ends when the
// spool was read to its end and acknowledged: records that come meanwhile are held in the queue.
type dispatcher struct {
	*Writer
	log    *slog.Logger
	spool  *spool
	client *kgo.Client

	// pending were taken from the queue and are neither in flight nor in the spool.
	pending []*record
	// flight were handed to the client, in order, and not yet reaped.
	flight flight
	// reaped is when one of them was last found acknowledged.
	reaped time.Time

	spooling bool
	// refused means that the broker refused a record: nothing is sent until all in flight are back,
	// then sending begins again at the first that was not acknowledged.
	refused   bool
	pauseTill time.Time
	// lost were given up and have no gap in the log or the spool yet.
	lost droppedGaps
	// diskTill is when the spool is tried again after it failed.
	diskTill time.Time
	// failure is what was last logged, so that it is not logged at every try.
	failure string
	// droppedBySpool is how much of the spool's own count is in the statistics.
	droppedBySpool uint64
}

func newDispatcher(w *Writer, s *spool, c *kgo.Client) *dispatcher {
	return &dispatcher{Writer: w, log: w.cfg.Logger, spool: s, client: c, lost: droppedGaps{}, spooling: !s.reader.atEnd()}
}

// run works until the queue is closed and, as far as DrainTimeout allows, everything is acknowledged.
func (d *dispatcher) run() error {
	if d.spooling {
		d.log.Info("sending records that the last run left in the spool", "bytes", d.spool.bytes())
	}
	tick := time.NewTicker(housekeepingInterval)
	defer tick.Stop()
	var deadline time.Time
	var timeout <-chan time.Time
	for {
		held, closed := d.queue.state()
		d.pending = d.queue.take(d.pending)
		now := time.Now()
		if closed && deadline.IsZero() {
			deadline = now.Add(d.cfg.DrainTimeout)
			timeout = time.After(d.cfg.DrainTimeout)
		}
		busy := d.step(now, held)
		d.publish()
		if closed && (!now.Before(deadline) || d.drained(now)) {
			return d.finish()
		}
		if busy {
			continue
		}
		select {
		case <-d.wake:
		case <-tick.C:
			if err := d.spool.sync(); err != nil {
				d.fail(err)
			}
		case <-timeout:
		}
	}
}

// step does what can be done now and returns whether there is more to do.
func (d *dispatcher) step(now time.Time, held int) (busy bool) {
	d.reap()
	if d.refused && !d.resend(now) {
		d.store(now, held)
		return false
	}
	d.reportGaps(now)
	if !d.spooling {
		d.send(now)
		if d.overdue(now) || len(d.pending) > 0 && d.tooMuch(held) {
			d.beginSpooling("the broker falls behind")
		}
	}
	if !d.spooling {
		return false
	}
	caughtUp := d.spool.reader.atEnd()
	if caughtUp && d.flight.len() == 0 {
		return d.endSpooling()
	}
	if !caughtUp || d.overdue(now) || d.tooMuch(held) {
		d.store(now, held)
	}
	return d.feed(now)
}

// drained reports whether waiting longer has no use: all is acknowledged, or in the spool while the
// broker does not answer.
func (d *dispatcher) drained(now time.Time) bool {
	if len(d.pending) > 0 {
		return false
	}
	return d.flight.len() == 0 && !d.spooling || d.spooling && d.overdue(now)
}

// tooMuch reports whether more is queued than may wait for the broker in memory.
func (d *dispatcher) tooMuch(held int) bool { return held > d.queue.limit/2 }

// overdue reports whether the oldest record in flight waits and nothing moved for too long. A broker that is
// slow but answers is not: what it cannot take fills the queue.
func (d *dispatcher) overdue(now time.Time) bool {
	return d.flight.len() > 0 && now.Sub(d.flight.oldest().sent) > d.cfg.SpoolAfter && now.Sub(d.reaped) > d.cfg.SpoolAfter
}

// reap takes acknowledged records out of flight, up to the first that is not.
func (d *dispatcher) reap() {
	var ids [][]byte
	var acked uint64
	for d.flight.len() > 0 && d.flight.oldest().done.Load() {
		r := d.flight.oldest()
		if r.err != nil {
			if !d.refused {
				d.refused = true
				d.fail(r.err)
			}
			break
		}
		if r.end != (spoolPosition{}) {
			if err := d.spool.ack(r.end); err != nil {
				d.fail(err)
			}
		}
		if r.round {
			d.stats.clock.Store(r.at.UnixNano())
			if p, ok := d.clock.(producers.Pacer); ok {
				p.Finished(writerName, r.at)
			}
		}
		if faults.Enabled() {
			ids = appendEventID(ids, r)
		}
		acked++
		d.flight.pop()
		r.recycle()
	}
	if acked == 0 {
		return
	}
	faults.Acked(ids...)
	d.stats.acked.Add(acked)
	d.reaped = time.Now()
	d.stats.lastAck.Store(d.reaped.UnixNano())
	if !d.refused {
		d.stats.err.Store(nil)
	}
}

// room reports whether the client may be given another record.
func (d *dispatcher) room() bool { return d.flight.bytes < d.cfg.MemoryBytes/4*3 }

// send hands pending records to the client.
func (d *dispatcher) send(now time.Time) {
	n, weight := 0, 0
	for n < len(d.pending) && d.room() {
		weight += d.pending[n].weight()
		d.produce(d.pending[n], now)
		n++
	}
	d.released(n, weight)
}

// released forgets the first n pending records, which are elsewhere now.
func (d *dispatcher) released(n, weight int) {
	if n == 0 {
		return
	}
	rest := copy(d.pending, d.pending[n:])
	clear(d.pending[rest:])
	d.pending = d.pending[:rest]
	d.queue.release(weight)
}

func (d *dispatcher) produce(r *record, now time.Time) {
	r.wake = d.wake
	r.sent = now
	d.flight.push(r)
	// The client outlives Run's context: what it has in hand is waited for.
	d.client.Produce(context.Background(), &r.kgo, r.promise)
	faults.Hit("producer.produce")
}
