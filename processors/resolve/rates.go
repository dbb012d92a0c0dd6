package resolve

import (
	"sync"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// RateTable is the newest rate of each quote asset, as the tail of quotes.v1 delivers it. Safe for
// concurrent use.
type RateTable struct {
	mu    sync.RWMutex
	rates map[string]Rate
}

// NewRateTable is empty.
func NewRateTable() *RateTable { return &RateTable{rates: map[string]Rate{}} }

// Apply takes one record of quotes.v1 and its offset.
func (t *RateTable) Apply(offset int64, rec *eventsv1.QuoteRecord) {
	rate := rec.GetRate()
	if rate == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rates[rate.QuoteId] = Rate{USD: rate.Rate, Time: rate.Time, Offset: offset}
}

// Rate is the newest rate of a quote asset.
func (t *RateTable) Rate(quoteID string) (Rate, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	rate, ok := t.rates[quoteID]
	return rate, ok
}
