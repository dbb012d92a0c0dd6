package processors

import (
	"maps"
	"slices"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// ReplayChange counts the ticks that are resolved otherwise than they were.
type ReplayChange struct {
	Change string `json:"change"`
	Ticks  int64  `json:"ticks"`
}

// remapper resolves the ticks of one partition of ticks.v1 anew. They hold the raw tick whole, and the
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
		if err := r.Emit(&ReplayChange{change, changes[change]}); err != nil {
			return err
		}
	}
	return nil
}
