// Package earn publishes what can be earned with which coin, where and on which terms. It groups the rates of rates.v1 into products
// whose names outlive every restart and every change of a rate, publishes each change of a term with its time, and fixes once a day,
// at midnight UTC, what flexible deposits of USD stablecoins earn. A fixing is of what the log held up to that midnight, whenever
// it is written.
//
// The formulas are those of schemas, and on the page docs/formulas.md.
package earn

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Name is the consumer group.
const Name = "earn"

// Minutes is the declaration of this processor; the caller adds the log.
func Minutes(table *schemas.CoinTable) *processors.Minutes {
	return &processors.Minutes{
		Name: Name, Inputs: []string{schemas.TopicRates}, Output: schemas.TopicEarn,
		New: func() processors.MinuteFold { return New(table) },
	}
}

// New makes the fold. The table says whether a coin is a stablecoin.
func New(table *schemas.CoinTable) processors.MinuteFold {
	return &fold{table: table, byRate: map[rateKey]*variant{}, loaded: map[rateKey]int64{}}
}

type fold struct {
	table *schemas.CoinTable
	// byRate are the variants that are open or silent, by the rate that each is made of.
	byRate map[rateKey]*variant
	// variants are the same by their ids, but for those that came in the open minute, and those that end in it.
	variants []*variant
	// loaded is the minute of the newest row of a rate that was read back: what is reported up to it changes nothing.
	loaded map[rateKey]int64
	// received are the entries of the open minute, by rate.
	received []*eventsv1.RateEntry
	// closed is the last minute that was.
	closed int64
}

// rateKey is what a rate is known by.
type rateKey struct{ source, category, pool string }

// variant is the current state of a variant.
type variant struct {
	rate rateKey
	row  *eventsv1.EarnVariant
	// before is the row at the end of the minute before, nil for one that is new.
	before *eventsv1.EarnVariant
	// written is the row as it was written last, without its times, and writtenAt when that was.
	written   []byte
	writtenAt int64
}

func (v *variant) gone() bool {
	return v.row.Status == schemas.EarnClosed || v.row.Status == schemas.EarnReplaced
}

// Load takes the rows of variants. Those that are gone are left to the end of the next minute.
func (f *fold) Load(rec eventsv1.Marked) {
	r, ok := rec.(*eventsv1.EarnRecord)
	if !ok || r.GetVariant() == nil {
		return
	}
	row := r.GetVariant()
	key := rateKey{row.Source, row.Category, row.Pool}
	f.loaded[key] = row.Time
	v := f.byRate[key]
	switch {
	case v == nil:
		v = &variant{rate: key}
		f.byRate[key] = v
		f.variants = append(f.variants, v)
	case !sameVariant(v.row, row): // the rate is of another product by now, or was of another one before
		i := slices.IndexFunc(f.variants, func(v *variant) bool { return sameVariant(v.row, row) })
		if i < 0 {
			i = len(f.variants)
			f.variants = append(f.variants, &variant{rate: key})
		}
		v = f.variants[i]
	}
	v.row, v.before, v.written, v.writtenAt = row, row, content(row), row.Time
	if !v.gone() {
		f.byRate[key] = v
	}
}

func sameVariant(a, b *eventsv1.EarnVariant) bool {
	return a.ProductId == b.ProductId && a.VariantId == b.VariantId
}

// Take folds an entry of rates. What it changes is seen when the minute ends: a midnight may lie before.
func (f *fold) Take(minute int64, _ processors.Input, rec eventsv1.Marked) {
	r, ok := rec.(*eventsv1.RateRecord)
	if !ok || r.GetEntry() == nil || !slices.Contains(schemas.EarnCategories, r.GetEntry().Category) {
		return
	}
	e := r.GetEntry()
	if minute > f.loaded[rateKey{e.Source, e.Category, e.Pool}] {
		f.received = append(f.received, e)
	}
}

// Close writes the fixings of the midnights that have passed, the variants and terms that changed, and the rows that are due.
func (f *fold) Close(minute int64, out *processors.Outputs) {
	if out != nil && f.closed != 0 {
		for midnight := nextMidnight(f.closed); midnight < minute; midnight += day {
			if !f.fix(midnight, minute, out) {
				break // nothing was received since, so nothing counts on the days after it either
			}
		}
	}
	for _, e := range f.received {
		f.apply(minute, e)
	}
	f.received = f.received[:0]
	if out != nil { // what was judged while minutes are read again lies in the rows, some of which are of later minutes
		f.judge(minute)
	}
	slices.SortFunc(f.variants, func(a, b *variant) int {
		return cmp.Or(strings.Compare(a.row.ProductId, b.row.ProductId), strings.Compare(a.row.VariantId, b.row.VariantId))
	})
	if out != nil {
		clear(f.loaded)
		f.write(minute, out)
		if minute%day == 0 {
			f.fix(minute, minute, out)
		}
		out.Emit(schemas.TopicEarn, 0, "", minute, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Pulse{
			Pulse: &eventsv1.Pulse{Now: minute, Watermark: minute},
		}})
	}
	f.variants = slices.DeleteFunc(f.variants, func(v *variant) bool {
		if v.gone() && f.byRate[v.rate] == v {
			delete(f.byRate, v.rate)
		}
		return v.gone()
	})
	for _, v := range f.variants {
		v.before = v.row
	}
	f.closed = minute
}

const day = int64(24 * time.Hour)

// nextMidnight is the first one after a minute.
func nextMidnight(minute int64) int64 { return minute - minute%day + day }

// apply takes what an entry holds into its variant.
func (f *fold) apply(minute int64, e *eventsv1.RateEntry) {
	key := rateKey{e.Source, e.Category, e.Pool}
	v := f.byRate[key]
	if !schemas.EarnOffered(e) {
		switch {
		case v == nil:
		case e.Ended:
			f.turn(v, minute, schemas.EarnSilent)
		default:
			f.turn(v, minute, schemas.EarnReplaced)
		}
		return
	}
	row := schemas.NewEarnVariant(e, minute)
	if v != nil && !sameVariant(v.row, row) {
		f.turn(v, minute, schemas.EarnReplaced)
		v = nil
	}
	if v == nil {
		v = &variant{rate: key}
		f.byRate[key] = v
		f.variants = append(f.variants, v)
	}
	v.row = row
}

// turn changes the status of a variant.
func (f *fold) turn(v *variant, minute int64, status string) {
	if v.row.Status == status {
		return
	}
	v.row = copied(v.row, minute)
	v.row.Status = status
	v.row.Confidence = schemas.EarnConfidence(v.row)
}

// judge closes the silent variants whose source has reported others since, and those that have been silent for long. A source
// is read as a whole, so what it reported an interval later it reported without them.
func (f *fold) judge(minute int64) {
	type sourceCategory struct{ source, category string }
	newest := map[sourceCategory]int64{}
	for _, v := range f.variants {
		key := sourceCategory{v.rate.source, v.rate.category}
		newest[key] = max(newest[key], v.row.Heard)
	}
	for _, v := range f.variants {
		if v.row.Status != schemas.EarnSilent {
			continue
		}
		since := newest[sourceCategory{v.rate.source, v.rate.category}] - v.row.Heard
		if since > 0 && since >= v.row.Interval || minute-v.row.Heard >= int64(schemas.EarnSilentFor) {
			f.turn(v, minute, schemas.EarnClosed)
		}
	}
}

// write adds the changes of terms to out, and the rows that changed or are due.
func (f *fold) write(minute int64, out *processors.Outputs) {
	for from := 0; from < len(f.variants); {
		to := from + 1
		for to < len(f.variants) && f.variants[to].row.ProductId == f.variants[from].row.ProductId {
			to++
		}
		writeChanges(f.variants[from:to], minute, out)
		from = to
	}
	for _, v := range f.variants {
		due := minute-v.writtenAt >= int64(processors.StateEvery)
		switch {
		case v.row != v.before:
			now := content(v.row)
			if bytes.Equal(now, v.written) && !due {
				continue
			}
			v.written = now
		case due:
			v.row = copied(v.row, minute)
		default:
			continue
		}
		v.writtenAt = minute
		out.Emit(schemas.TopicEarn, 0, v.row.ProductId, minute, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Variant{Variant: v.row}})
	}
}

// writeChanges adds what changed of a product: of the whole of it, and of each variant what is not covered by that.
func writeChanges(variants []*variant, minute int64, out *processors.Outputs) {
	change := func(v *eventsv1.EarnVariant, id, field, before, after string) {
		out.Emit(schemas.TopicEarn, 0, v.ProductId, minute, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Change{Change: &eventsv1.EarnChange{
			ProductId: v.ProductId, VariantId: id, Provider: v.Provider, CoinId: v.CoinId, Symbol: v.Symbol, Category: v.Category,
			Field: field, Before: before, After: after, Time: minute, Simulated: v.Simulated,
		}}})
	}
	before := schemas.EarnStatus(rows(variants, func(v *variant) *eventsv1.EarnVariant { return v.before }))
	after := schemas.EarnStatus(rows(variants, func(v *variant) *eventsv1.EarnVariant { return v.row }))
	if before != after {
		change(variants[0].row, "", schemas.EarnStatusField, before, after)
	}
	for _, v := range variants {
		for _, field := range schemas.EarnFields {
			was, is := "", schemas.EarnTerm(v.row, field)
			if v.before != nil {
				was = schemas.EarnTerm(v.before, field)
			}
			switch {
			case was == is:
			case field == schemas.EarnStatusField && before != after && was == before && is == after:
			case field != schemas.EarnStatusField && v.before == nil: // its first terms are in its row
			default:
				change(v.row, v.row.VariantId, field, was, is)
			}
		}
	}
}

func rows(variants []*variant, of func(*variant) *eventsv1.EarnVariant) []*eventsv1.EarnVariant {
	var list []*eventsv1.EarnVariant
	for _, v := range variants {
		if row := of(v); row != nil {
			list = append(list, row)
		}
	}
	return list
}

// fix adds the fixings of a midnight to out; false if nothing counts.
func (f *fold) fix(midnight, minute int64, out *processors.Outputs) bool {
	quotes, simulated := schemas.EarnQuotes(f.table, rows(f.variants, func(v *variant) *eventsv1.EarnVariant { return v.row }), midnight)
	for _, segment := range schemas.EarnSegments {
		if fixing := schemas.NewEarnFixing(segment, quotes, midnight, minute); fixing != nil {
			fixing.Simulated = simulated
			out.Emit(schemas.TopicEarn, 0, "", minute, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Fixing{Fixing: fixing}})
		}
	}
	return len(quotes) > 0
}

// copied is a row as of a minute: one that was written must not be changed.
func copied(row *eventsv1.EarnVariant, minute int64) *eventsv1.EarnVariant {
	row = proto.CloneOf(row)
	row.Time = minute
	return row
}

// content is a row without its times.
func content(row *eventsv1.EarnVariant) []byte {
	at, received := row.Time, row.Heard
	row.Time, row.Heard = 0, 0
	value, err := row.MarshalVT()
	row.Time, row.Heard = at, received
	if err != nil {
		panic(err) // the only error is a buffer of the wrong size
	}
	return value
}
