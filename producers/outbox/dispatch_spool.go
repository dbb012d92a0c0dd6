package outbox

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// beginSpooling writes what is in flight to the spool. The client goes on with it: the copies are
// for the next process, and for the order of records.
func (d *dispatcher) beginSpooling(why string) {
	d.log.Info("writing to the spool", "reason", why, "records", d.flight.len())
	n, err := d.spool.append(d.flight.all())
	if err != nil {
		// The rest of it is in the client's memory only.
		d.failDisk(err)
	}
	d.stats.spooled.Add(uint64(n))
	d.spool.reader.seek(d.spool.end())
	d.spooling = true
}

// endSpooling goes back to sending directly: everything in the spool was acknowledged.
func (d *dispatcher) endSpooling() (busy bool) {
	if err := d.spool.clear(); err != nil {
		d.fail(err) // its files are only in the way; the next process skips them
	}
	d.log.Info("spool drained: writing to the broker")
	d.spooling = false
	return true
}

// resend waits until the client has passed back everything, then goes back in the spool to the first
// record that was not acknowledged. Records after it that were are sent again too: between them
// are clocks that must come after it.
func (d *dispatcher) resend(now time.Time) (resent bool) {
	if !d.spooling {
		d.beginSpooling("the broker refused a record")
	}
	if !d.flight.landed() {
		return false
	}
	for _, r := range d.flight.all() {
		if r.err != nil && r.end == (spoolPosition{}) {
			d.stats.dropped.Add(d.lost.add(r)) // the disk failed as well
		}
	}
	d.flight = flight{}
	d.spool.reader.seek(d.spool.acked)
	d.refused = false
	d.pauseTill = now.Add(ResendPause)
	return true
}

// feed passes records from the spool to the client and returns whether there are more to pass now.
func (d *dispatcher) feed(now time.Time) (busy bool) {
	if now.Before(d.pauseTill) {
		return false
	}
	for range feedAtOnce {
		if !d.room() {
			return false
		}
		r, err := d.spool.reader.read()
		if err != nil {
			d.fail(err)
			return false
		}
		if r == nil {
			return false
		}
		d.produce(r, now)
	}
	return true
}

// store appends pending records to the spool. If the disk fails they stay pending, until they are
// too many: then the oldest are given up.
func (d *dispatcher) store(now time.Time, held int) {
	if len(d.pending) == 0 {
		return
	}
	n := 0
	if !now.Before(d.diskTill) {
		var err error
		if n, err = d.spool.append(d.pending); errors.Is(err, syscall.ENOSPC) {
			n, err = d.storeInPlaceOfOldest(n)
		}
		if err != nil {
			d.failDisk(err)
		}
		d.stats.spooled.Add(uint64(n))
	}
	weight := 0
	for _, r := range d.pending[:n] {
		weight += r.weight()
	}
	for ; n < len(d.pending) && d.tooMuch(held-weight); n++ {
		weight += d.pending[n].weight()
		d.stats.dropped.Add(d.lost.add(d.pending[n]))
	}
	for _, r := range d.pending[:n] {
		r.recycle()
	}
	d.released(n, weight)
}

// storeInPlaceOfOldest appends the pending records from the n-th on to a spool whose disk is full,
// giving up one old segment after the other.
func (d *dispatcher) storeInPlaceOfOldest(n int) (int, error) {
	for {
		freed, err := d.spool.dropOldest()
		if err != nil {
			return n, err
		}
		if !freed {
			return n, syscall.ENOSPC
		}
		m, err := d.spool.append(d.pending[n:])
		n += m
		if !errors.Is(err, syscall.ENOSPC) {
			return n, err
		}
	}
}

// reportGaps puts gaps for what was given up in front of what is pending, which came later.
func (d *dispatcher) reportGaps(now time.Time) {
	if len(d.lost) == 0 || d.spooling && now.Before(d.diskTill) {
		return
	}
	gaps := d.lost.records()
	clear(d.lost)
	for _, r := range gaps {
		d.queue.release(-r.weight())
	}
	d.pending = append(gaps, d.pending...)
}

// finish leaves what was not acknowledged in the spool.
func (d *dispatcher) finish() error {
	d.reap()
	if !d.spooling && d.flight.len() > 0 {
		d.beginSpooling("ending before the broker acknowledged")
	}
	d.diskTill = time.Time{}
	d.reportGaps(time.Now())
	n, err := 0, error(nil)
	if len(d.pending) > 0 {
		n, err = d.spool.append(d.pending)
		d.stats.spooled.Add(uint64(n))
	}
	for _, r := range d.pending[n:] {
		d.stats.dropped.Add(d.lost.add(r))
	}
	for _, r := range d.flight.all() {
		if r.end == (spoolPosition{}) {
			d.stats.dropped.Add(d.lost.add(r))
		}
	}
	if len(d.lost) > 0 {
		err = errors.Join(err, fmt.Errorf("records of %d sources were neither acknowledged nor written to the spool", len(d.lost)))
	}
	d.publish()
	return errors.Join(err, d.spool.close())
}

// fail notes what went wrong, in the log once.
func (d *dispatcher) fail(err error) {
	d.stats.err.Store(&err)
	if text := err.Error(); text != d.failure {
		d.failure = text
		d.log.Warn("writing to the log failed", "error", err)
	}
}

func (d *dispatcher) failDisk(err error) {
	d.diskTill = time.Now().Add(ResendPause)
	d.fail(err)
}

// publish makes the dispatcher's figures readable for others.
func (d *dispatcher) publish() {
	c := &d.stats
	c.inFlight.Store(int64(d.flight.len()))
	c.inFlightBytes.Store(int64(d.flight.bytes))
	c.spoolBytes.Store(d.spool.bytes())
	c.spooling.Store(d.spooling)
	if before := c.damaged.Swap(d.spool.damaged); before != d.spool.damaged {
		d.log.Error("spool is damaged: some records cannot be read", "bytes", d.spool.damaged-before)
	}
	c.dropped.Add(d.spool.dropped - d.droppedBySpool)
	d.droppedBySpool = d.spool.dropped
}
