package roles

import (
	"context"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/processors/quotes"
	"github.com/marketlog/marketlog/processors/resolve"
)

const (
	// freshWithin is how long a start holds back what prices do not need. With no venue in reach no price comes.
	freshWithin = 10 * time.Second
	// freshLook is how often the price cache is checked for the first fresh price.
	freshLook = 20 * time.Millisecond
)

// startGCPercent is how much garbage may lie beside what lives, in percent of it, while a start works off what it missed: with Go's 100 the
// collector takes a good part of two processors then (docs/decisions/0072).
const startGCPercent = 400

// embeddedGCPercent is the same afterwards, in a process that has the log in it: on a small machine a heap of twice what lives is most of what the process
// takes, and the collector little of what it does (docs/decisions/0112).
const embeddedGCPercent = 40

// boundGarbage sets it, unless the environment says otherwise.
func boundGarbage(in *instance.Instance) {
	if len(in.Config.Kafka.Brokers) == 0 && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(embeddedGCPercent)
	}
}

// firstFresh is the first fresh price of a start that makes its own. Until it is there, whatever does not make prices leaves the
// processors to what does: the folds then work off some minutes of ticks. Safe for concurrent use.
type firstFresh struct {
	once      sync.Once
	done      chan struct{}
	gcPercent int // what the process ran with before
}

// newFirstFresh is of a start that begins now. The caller sees to it that open is called.
func newFirstFresh() *firstFresh {
	return &firstFresh{done: make(chan struct{}), gcPercent: debug.SetGCPercent(startGCPercent)}
}

// open means that it is there.
func (f *firstFresh) open() {
	f.once.Do(func() {
		debug.SetGCPercent(f.gcPercent)
		close(f.done)
	})
}

// before makes a role begin when the price is there, and after freshWithin at the latest.
func (f *firstFresh) before(role supervise.Role) supervise.Role {
	run := role.Run
	role.Run = func(ctx context.Context) error {
		if err := f.await(ctx); err != nil {
			return err
		}
		return run(ctx)
	}
	return role
}

// await waits until the price is there, freshWithin at most. Nobody waits for nil.
func (f *firstFresh) await(ctx context.Context) error {
	if f == nil {
		return nil
	}
	late := time.NewTimer(freshWithin)
	defer late.Stop()
	select {
	case <-f.done:
	case <-late.C:
		f.open() // also for those that are started again
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// waitsForPrices reports whether a role makes no prices: sinks and who watches their tables, the folds of minutes, the archive,
// polled sources, the check of what is on the disk, and the back-fill.
func waitsForPrices(role string) bool {
	if name, ok := strings.CutPrefix(role, "processors/"); ok {
		return name != quotes.Name && name != resolve.Name && name != instance.PricesUnit().Name
	}
	switch role {
	case "archive", "backfill", "damages", "sources", "tables", "tables/behind":
		return true
	}
	return strings.HasPrefix(role, "sink/")
}

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
