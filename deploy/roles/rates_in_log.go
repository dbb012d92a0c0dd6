package roles

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/processors/resolve"
)

// rateLead is how far ticks may be ahead of the fold of exchange rates while that reads again the minutes that its state depends on:
// the last rates in the log count for resolve.RateFor.
const rateLead = resolve.RateFor / 2

// ratesInLog is up to when quotes.v1 has exchange rates as a start finds it. Safe for concurrent use.
type ratesInLog struct {
	until atomic.Int64 // log time, Unix nanoseconds
	once  sync.Once
	read  chan struct{} // closed when until is known
}

func newRatesInLog() *ratesInLog { return &ratesInLog{read: make(chan struct{})} }

// reached notes rates that were read.
func (r *ratesInLog) reached(at int64) { r.until.Store(at) }

// ended means that all were read that the start found.
func (r *ratesInLog) ended() { r.once.Do(func() { close(r.read) }) }

// await is where the fold of rates waits before it reads the minutes again that its state depends on, which are more than those of any
// other fold: for the first fresh price, if the rates in the log count until that is there; otherwise for nothing.
func (r *ratesInLog) await(ctx context.Context, fresh *firstFresh, now func() time.Time) error {
	if fresh == nil {
		return nil
	}
	late := time.NewTimer(freshWithin)
	defer late.Stop()
	select {
	case <-r.read:
	case <-fresh.done:
		return nil
	case <-late.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	if now().Sub(time.Unix(0, r.until.Load())) > rateLead-freshWithin {
		return nil
	}
	return fresh.await(ctx)
}
