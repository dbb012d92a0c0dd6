package quotes

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// FixingFor is how long a fixing counts, from the beginning of its day: Easter leaves five days without one.
	FixingFor = 6 * 24 * time.Hour
	// fixingLead is how far ahead of its reading the day of a fixing may begin: it is already tomorrow further east.
	fixingLead = 24 * time.Hour
	// fixingDays is how many days Fixings keeps, the newest: more than can count for any tick that the log holds, and few
	// enough to look through.
	fixingDays = 16
)

// Fixings holds the reference rates of the last days, units per EUR. Safe for concurrent use.
type Fixings struct {
	mu sync.RWMutex
	// days are in ascending order.
	days []fixingDay
}

// fixingDay is what was fixed for a day, and its beginning in Unix nanoseconds.
type fixingDay struct {
	begin int64
	units map[string]fixed // by currency
}

// fixed is what was published of a currency for one day, corrections included, in the order in which it counts.
type fixed []datedUnits

type datedUnits struct {
	from  int64 // log time, Unix nanoseconds
	units float64
}

// NewFixings is empty: it has no rate for anything.
func NewFixings() *Fixings { return &Fixings{} }

// Apply takes one record of reference.raw.v1. Only fixings against EUR, as the ECB publishes them, count here, and none of
// a day that had not begun. The order in which records are applied makes no difference.
func (x *Fixings) Apply(value []byte) {
	record, err := schemas.DecodeRecord(schemas.TopicReferenceRaw, value)
	if err != nil {
		return
	}
	rec, _ := record.(*eventsv1.ReferenceRecord)
	if rec.GetFixing() == nil || rec.GetFixing().Base != "EUR" {
		return
	}
	f := rec.GetFixing()
	date, err := time.Parse(time.DateOnly, f.Date)
	rate, errRate := strconv.ParseFloat(f.Rate, 64)
	if err != nil || errRate != nil || !(rate > 0) || math.IsInf(rate, 1) || f.Quote == f.Base || date.UnixNano()-f.IngestTime > int64(fixingLead) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	i, known := slices.BinarySearchFunc(x.days, date.UnixNano(), func(d fixingDay, begin int64) int { return cmp.Compare(d.begin, begin) })
	if !known {
		x.days = slices.Insert(x.days, i, fixingDay{date.UnixNano(), map[string]fixed{}})
	}
	x.days[i].units[f.Quote] = x.days[i].units[f.Quote].with(datedUnits{f.IngestTime + int64(referenceWait), rate})
	if len(x.days) > fixingDays {
		x.days = slices.Delete(x.days, 0, 1)
	}
}

// with adds what was published; of two published at the same time the higher counts.
func (f fixed) with(t datedUnits) fixed {
	i, known := slices.BinarySearchFunc(f, t, func(a, b datedUnits) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.units, b.units))
	})
	if known {
		return f
	}
	return slices.Insert(f, i, t)
}

// at is what counts at a log time (Unix nanoseconds), 0 for nothing yet.
func (f fixed) at(now int64) float64 {
	for _, t := range slices.Backward(f) {
		if t.from <= now {
			return t.units
		}
	}
	return 0
}

// USD is what one unit of a currency costs in USD at a log time (Unix nanoseconds) by the newest day on which both were
// fixed, if that is not too old. Rates of two days make no rate: while those of a new day are read one by one, they would
// be off by what the dollar moved.
func (x *Fixings) USD(currency string, now int64) (float64, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, d := range slices.Backward(x.days) {
		if now-d.begin > int64(FixingFor) {
			break
		}
		dollar, other := d.units[schemas.USD].at(now), d.units[currency].at(now)
		if currency == "EUR" {
			other = 1
		}
		if dollar > 0 && other > 0 {
			return dollar / other, true
		}
	}
	return 0, false
}
