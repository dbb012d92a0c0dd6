package history

import (
	"context"
	"fmt"
	"strings"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Place is where a record lies in the log.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Batch collects the rows of log records until they are inserted. It is used by one goroutine.
type Batch struct {
	records int
	ticks   tickRows
	prices  priceRows
	minutes minuteRows
	candles candleRows
	venues  venueCandleRows
	dead    deadRows
	retries retryRows
	gaps    gapRows
	past    backfillRows
	// The others are made with the first record that has such rows: most topics have none.
	reference *referenceRows
	markets   *marketRows
	rates     *rateRows
	earn      *earnRows
	defi      *defiRows
	usage     *usageRows
	// done are the kinds of rows that the last insert, into the tables with the suffix tried, has come past.
	tried string
	done  int
}

// Add adds the rows of one record; pulses and controls have none.
func (b *Batch) Add(p Place, record eventsv1.Marked) {
	b.done = 0
	switch rec := record.(type) {
	case *eventsv1.ResolvedRecord:
		if t := rec.GetTick(); t != nil {
			b.records++
			b.ticks.add(p, rec.Mark, t)
		}
		if g := rec.GetGap(); g != nil {
			b.records++
			b.gaps.add(p, g)
		}
	case *eventsv1.PriceRecord:
		if price := rec.GetPrice(); price != nil {
			b.records++
			b.prices.add(rec.Mark, price)
			b.minutes.add(rec.Mark, price)
		}
	case *eventsv1.CandleRecord:
		if c := rec.GetCandle(); c != nil {
			b.records++
			b.candles.add(rec.Mark, c)
		}
		if c := rec.GetVenueCandle(); c != nil {
			b.records++
			b.venues.add(rec.Mark, c)
		}
	case *eventsv1.BackfillRecord:
		if c := rec.GetCandle(); c != nil {
			b.records++
			b.past.add(p, rec.Producer, c)
		}
	case *eventsv1.ReferenceRecord:
		if b.reference == nil {
			b.reference = newReferenceRows()
		}
		if b.reference.add(p, rec) {
			b.records++
		}
	case *eventsv1.MarketRecord:
		if b.markets == nil {
			b.markets = newMarketRows()
		}
		if b.markets.add(rec) {
			b.records++
		}
	case *eventsv1.RateRecord:
		if b.rates == nil {
			b.rates = newRateRows()
		}
		if b.rates.add(rec) {
			b.records++
		}
	case *eventsv1.DefiRecord:
		if b.defi == nil {
			b.defi = newDefiRows()
		}
		if b.defi.add(rec) {
			b.records++
		}
	case *eventsv1.EarnRecord:
		if b.earn == nil {
			b.earn = newEarnRows()
		}
		if b.earn.add(p, rec) {
			b.records++
		}
	case *eventsv1.UsageRecord:
		if b.usage == nil {
			b.usage = newUsageRows()
		}
		b.usage.add(p, rec)
		b.records++
	case *eventsv1.DeadRecord:
		if rec.Letter != nil {
			b.records++
			b.dead.add(p, rec.Letter)
		}
		if rec.Retry != nil {
			b.records++
			b.retries.add(p, rec.Retry)
		}
	}
}

func (b *Batch) all() []rows {
	all := []rows{&b.ticks, &b.prices, &b.minutes, &b.candles, &b.venues, &b.dead, &b.retries, &b.gaps, &b.past}
	if b.reference != nil {
		all = append(all, b.reference.all()...)
	}
	if b.markets != nil {
		all = append(all, b.markets.all()...)
	}
	if b.rates != nil {
		all = append(all, b.rates.all()...)
	}
	if b.defi != nil {
		all = append(all, b.defi.all()...)
	}
	if b.usage != nil {
		all = append(all, b.usage)
	}
	if b.earn != nil {
		all = append(all, b.earn.all()...)
	}
	return all
}

// Len is the number of records that have rows.
func (b *Batch) Len() int { return b.records }

// Reset empties the batch.
func (b *Batch) Reset() {
	b.records, b.tried, b.done = 0, "", 0
	for _, r := range b.all() {
		r.reset()
	}
}

// Insert writes the rows. After an error some may be kept: insert the same batch again, which goes on with the table that
// failed and leaves the same rows under FINAL as if it had been inserted once. Of several suffixes one is inserted after
// the other. An error that is not
// stream.ErrUnavailable will come again. Suffix names shadow tables of a replay; it is empty for the live ones.
func (s *Store) Insert(ctx context.Context, b *Batch, suffix string) error {
	all := b.all()
	if b.tried != suffix || b.done >= len(all) {
		b.tried, b.done = suffix, 0
	}
	for ; b.done < len(all); b.done++ {
		if err := s.insert(ctx, all[b.done], suffix); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) insert(ctx context.Context, r rows, suffix string) error {
	if r.len() == 0 {
		return nil
	}
	var names []string
	for _, c := range r.columns() {
		names = append(names, "`"+c.name+"`")
	}
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	body, err := s.send(ctx, "INSERT INTO "+r.table()+suffix+" ("+strings.Join(names, ", ")+") FORMAT Native", newBlockReader(r))
	if err != nil {
		return fmt.Errorf("inserting %d rows into %s: %w", r.len(), r.table()+suffix, err)
	}
	return body.Close()
}

// insertTimeout is when an insert counts as lost: a large one takes a tenth of a second.
const insertTimeout = time.Minute
