package processors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// ReplayChange counts the ticks that are resolved otherwise than they were.
type ReplayChange struct {
	Change string `json:"change"`
	Ticks  int64  `json:"ticks"`
}

// remapper resolves the ticks of one partition of ticks.v1 again. They hold the raw tick whole, and the
// rate that was joined to it: what was refused, or dropped as a duplicate, is not judged again.
type remapper struct {
	rejoin  func(*eventsv1.ResolvedTick, int64) *eventsv1.ResolvedTick
	origins *Origins
}

func newRemapper(rejoin func(*eventsv1.ResolvedTick, int64) *eventsv1.ResolvedTick) *remapper {
	raw, _ := schemas.TopicNamed(schemas.TopicTicksRaw)
	return &remapper{rejoin: rejoin, origins: NewOrigins(raw.Partitions)}
}

// apply returns the record as it would be written now, and what changed.
func (m *remapper) apply(rec *eventsv1.ResolvedRecord) (now *eventsv1.ResolvedRecord, change string) {
	if p := rec.GetPulse(); p != nil {
		m.origins.Observe(rec.Mark.Partition, p.Now, p.Watermark)
	}
	was := rec.GetTick()
	if was == nil {
		return rec, ""
	}
	is := m.rejoin(was, m.origins.Now())
	return &eventsv1.ResolvedRecord{Mark: rec.Mark, Body: &eventsv1.ResolvedRecord_Tick{Tick: is}}, changeOf(was, is)
}

func changeOf(was, is *eventsv1.ResolvedTick) string {
	without := func(flags uint32, f schemas.Flag) bool { return schemas.Flag(flags)&f == 0 }
	switch {
	case was.CoinId == "" && is.CoinId != "":
		return "unmapped to coin"
	case was.CoinId != "" && is.CoinId == "":
		return "coin to unmapped"
	case was.CoinId != is.CoinId:
		return "coin to another coin"
	case was.QuoteId != is.QuoteId:
		return "quote to another quote"
	case without(is.Flags, schemas.NoRate) && !without(was.Flags, schemas.NoRate):
		return "no rate to rate"
	case !without(is.Flags, schemas.NoRate) && without(was.Flags, schemas.NoRate):
		return "rate to no rate"
	case was.Flags != is.Flags || was.Rate != is.Rate:
		return "other"
	default:
		return ""
	}
}

// reportChanges sums up the changes of all partitions.
func (r *Replay) reportChanges(parts []*partReplay) error {
	changes := map[string]int64{}
	for _, p := range parts {
		for change, n := range p.Changes {
			changes[change] += n
		}
	}
	for _, change := range slices.Sorted(maps.Keys(changes)) {
		if err := r.emit(&ReplayChange{change, changes[change]}); err != nil {
			return err
		}
	}
	return nil
}

// ReadCorrections reads the corrections that the log holds now below an offset, and returns where they end.
func ReadCorrections(ctx context.Context, log stream.Config, below int64) (*schemas.Corrections, int64, error) {
	corrections := schemas.NewCorrections()
	starts, ends, err := log.LogBounds(ctx, schemas.TopicCorrections)
	if err != nil {
		return nil, 0, fmt.Errorf("reading corrections: %w", err)
	}
	start, end := starts[schemas.TopicCorrections][0], min(ends[schemas.TopicCorrections][0], below)
	err = stream.ReadRange(ctx, log, schemas.TopicCorrections, 0, start, end, func(rec *kgo.Record) error {
		record, err := schemas.DecodeRecord(schemas.TopicCorrections, rec.Value)
		if err != nil {
			return nil // the sink of the topic reports it
		}
		corrections.Apply(record.(*eventsv1.CorrectionRecord))
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("reading corrections: %w", err)
	}
	return corrections, end, nil
}

// touched is from when to when, in Unix nanoseconds, ticks were received or happened that a correction is about.
type touched struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// corrector leaves ticks of one partition of ticks.v1 out, or takes them in, by all corrections that are known. It remembers by coin and
// correction which ticks were concerned, for what is restated has a cause.
type corrector struct {
	corrections *schemas.Corrections
	touched     map[string]map[string]touched
}

// apply returns the record as it is read by corrections over their validity; the record itself is left as it is.
func (c corrector) apply(rec *eventsv1.ResolvedRecord) *eventsv1.ResolvedRecord {
	was := rec.GetTick()
	if was == nil {
		return rec
	}
	t := was.Tick
	excluded, by := c.corrections.Corrected(t.Venue, t.Symbol, t.IngestTime)
	if by != "" {
		c.touch(was.CoinId, by, min(t.IngestTime, schemas.TradeTime(t)), t.IngestTime)
	}
	flags := schemas.Flag(was.Flags) &^ schemas.Excluded
	if excluded {
		flags |= schemas.Excluded
	}
	if flags == schemas.Flag(was.Flags) {
		return rec
	}
	is := &eventsv1.ResolvedTick{
		Tick: t, CoinId: was.CoinId, QuoteId: was.QuoteId, Rate: was.Rate, RateTime: was.RateTime, RateOffset: was.RateOffset, Flags: uint32(flags),
	}
	return &eventsv1.ResolvedRecord{Mark: rec.Mark, Body: &eventsv1.ResolvedRecord_Tick{Tick: is}}
}

func (c corrector) touch(coinID, id string, first, last int64) {
	by := c.touched[coinID]
	if by == nil {
		by = map[string]touched{}
		c.touched[strings.Clone(coinID)] = by
	}
	span, known := by[id]
	if known {
		first, last = min(first, span.First), max(last, span.Last)
	}
	by[id] = touched{first, last}
}

// correctedFor is how long before the first and after the last tick that a correction is about a row may depend on it: a fold of ticks
// remembers no longer than WindowMemory, and rows are of seconds or minutes.
const correctedFor = int64(WindowMemory + time.Minute)

// correctionOf is the newest correction that a row of a coin may depend on; empty for none.
func (r *Replay) correctionOf(parts []*partReplay, coinID string, at int64) string {
	for _, c := range slices.Backward(r.corrections.All()) {
		for _, p := range parts {
			if span, ok := p.Touched[coinID][c.Id]; ok && at >= span.First-correctedFor && at <= span.Last+correctedFor {
				return c.Id
			}
		}
	}
	return ""
}
