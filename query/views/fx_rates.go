package views

import (
	"sync"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// rateFor is how long a rate holds after its last record: each is repeated every 10 s while its
// inputs are fresh.
const rateFor = 60 * time.Second

// FXRates holds what one unit of each quote asset costs in USD, as the tail of quotes.v1 delivers it. Safe
// for concurrent use.
type FXRates struct {
	mu    sync.RWMutex
	now   int64
	rates map[string]receivedRate
}

type receivedRate struct {
	*eventsv1.QuoteRate
	received int64
}

// NewFXRates makes an empty set.
func NewFXRates() *FXRates { return &FXRates{rates: map[string]receivedRate{}} }

// Apply takes one record of quotes.v1 from its tail.
func (r *FXRates) Apply(rec stream.TailRecord) error {
	record, ok := rec.Marked.(*eventsv1.QuoteRecord)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if rate := record.GetRate(); rate != nil {
		r.now = max(r.now, rate.Time)
		r.rates[rate.QuoteId] = receivedRate{rate, r.now}
	}
	if pulse := record.GetPulse(); pulse != nil {
		r.now = max(r.now, pulse.Now)
	}
	return nil
}

// USD returns what one unit of a quote asset (coin id or currency code) costs in USD, and the time of
// the rate's newest input in Unix nanoseconds; false where no rate is held or it is too old. One US
// dollar costs one.
func (r *FXRates) USD(id string) (rate float64, at int64, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if id == "USD" {
		return 1, r.now, true
	}
	known, ok := r.rates[id]
	if !ok || known.Rate <= 0 || r.now-known.received > int64(rateFor) {
		return 0, 0, false
	}
	return known.Rate, known.Time, true
}
