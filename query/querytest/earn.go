package querytest

import (
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// variant publishes a variant of an earn product, as text, as the fold writes it in the minute of the clock. What hangs on
// others follows from them, and the highest APY is the only one unless the script gives more.
func (w *Fixture) variant(text string) {
	v := &eventsv1.EarnVariant{}
	w.read(text, v)
	minute := w.Now.Truncate(time.Minute).UnixNano()
	v.ProductId, v.VariantId = schemas.EarnProductID(v.Provider, v.CoinId, v.Category), schemas.EarnVariantID(v.Source, v.Pool, v.Term)
	v.Segment, v.Collection, v.Interval, v.Time = schemas.EarnSegment(v.Provider), schemas.EarnAPI, int64(time.Hour), minute
	if v.Heard == 0 {
		v.Heard = minute
	}
	if v.MaxApy == 0 {
		v.Apr, v.BaseApy, v.MaxApy = v.Apy, v.Apy, v.Apy
	}
	w.earned(true, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Variant{Variant: v}})
}

// change publishes a change of an earn product's terms, as text.
func (w *Fixture) change(text string) {
	c := &eventsv1.EarnChange{Time: w.Now.Truncate(time.Minute).UnixNano(), Category: schemas.RateLending}
	w.read(text, c)
	w.earned(true, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Change{Change: c}})
}

// fixing publishes a fixing of the benchmark, as text: one of the fold, or one that an operator wrote.
func (w *Fixture) fixing(folded bool, text string) {
	f := &eventsv1.EarnFixing{Time: w.Now.Truncate(time.Minute).UnixNano(), MethodologyVersion: schemas.EarnMethodology}
	w.read(text, f)
	w.earned(folded, &eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Fixing{Fixing: f}})
}

func (w *Fixture) earned(folded bool, rec *eventsv1.EarnRecord) {
	offset := w.Offset()
	if folded {
		rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: w.Now.Truncate(time.Minute).UnixNano()}
	}
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicEarn, Offset: offset}, rec)
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
}
