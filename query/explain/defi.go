package explain

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// defiField is a number of all of DeFi that follows from the protocols alone.
type defiField struct {
	name, unit, formula string
	value               func(*eventsv1.DefiSummary) *float64
	// part is what a protocol adds to it, or to what it is a ratio of, by the summary of that protocol alone.
	part func(*eventsv1.DefiSummary) *float64
}

func defiSum(name, formula string, value func(*eventsv1.DefiSummary) *float64) defiField {
	return defiField{name, usd, formula, value, value}
}

var defiFields = []defiField{
	defiSum("totalTvl", "sum of tvl over the protocols, without exchanges and liquid staking", func(s *eventsv1.DefiSummary) *float64 { return &s.TotalTvl }),
	defiSum("totalTvlWithDoubleCount", "sum of tvl over the protocols, without exchanges", func(s *eventsv1.DefiSummary) *float64 { return &s.TotalTvlWithDoubleCount }),
	defiSum("lendingTvl", "sum of tvl over the protocols of category Lending", func(s *eventsv1.DefiSummary) *float64 { return &s.LendingTvl }),
	defiSum("stakingTvl", "sum of tvl over the protocols of category Liquid Staking", func(s *eventsv1.DefiSummary) *float64 { return &s.StakingTvl }),
	defiSum("borrowingTvl", "sum of what is borrowed over the protocols, without exchanges", func(s *eventsv1.DefiSummary) *float64 { return &s.BorrowingTvl }),
	defiSum("cefiTvl", "sum of tvl over the exchanges", func(s *eventsv1.DefiSummary) *float64 { return &s.CefiTvl }),
	{"defiToCefiRatio", "", "totalTvl / cefiTvl", func(s *eventsv1.DefiSummary) *float64 { return s.DefiToCefiRatio }, func(s *eventsv1.DefiSummary) *float64 { return &s.TotalTvl }},
	{"protocolCount", "", "number of protocols with locked value, without exchanges", func(s *eventsv1.DefiSummary) *float64 { return counted(s.ProtocolCount) },
		func(s *eventsv1.DefiSummary) *float64 { return counted(s.ProtocolCount) }},
	defiSum("lendingBorrowed", "sum of what is borrowed over the protocols of category Lending", lendingBorrowed),
	{"lendingUtilization", percent, "lendingBorrowed / (lendingTvl + lendingBorrowed) x 100", func(s *eventsv1.DefiSummary) *float64 { return s.Lending.Utilization }, lendingBorrowed},
	{"lendingProtocolCount", "", "number of protocols of category Lending", lendingProtocols, lendingProtocols},
	defiSum("totalStaked", "sum of tvl over the protocols of categories Liquid Staking and Staking Pool", totalStaked),
	{"liquidStakingDominance", percent, "stakingTvl / totalStaked x 100", func(s *eventsv1.DefiSummary) *float64 { return s.Staking.LiquidDominance }, totalStaked},
	defiSum("totalCollateral", "sum of tvl and what is borrowed over the protocols from which anything is", totalCollateral),
	{"collateralizationRatio", percent, "totalCollateral / borrowingTvl x 100", func(s *eventsv1.DefiSummary) *float64 { return s.Borrowing.CollateralizationRatio }, totalCollateral},
	{"borrowingUtilization", percent, "borrowingTvl / totalCollateral x 100", func(s *eventsv1.DefiSummary) *float64 { return s.Borrowing.Utilization }, totalCollateral},
}

func lendingBorrowed(s *eventsv1.DefiSummary) *float64 { return known(s.GetLending().GetBorrowed()) }
func lendingProtocols(s *eventsv1.DefiSummary) *float64 {
	return counted(s.GetLending().GetProtocolCount())
}
func totalStaked(s *eventsv1.DefiSummary) *float64 { return known(s.GetStaking().GetStaked()) }
func totalCollateral(s *eventsv1.DefiSummary) *float64 {
	return known(s.GetBorrowing().GetCollateral())
}

func known(value float64) *float64 { return &value }

func defiFieldNames() []string {
	names := make([]string, len(defiFields))
	for i, f := range defiFields {
		names[i] = f.name
	}
	return names
}

// defiRepeated is within what time a summary of DeFi is written again.
const defiRepeated = 6 * minute

// defi explains a number of all of DeFi, or of a protocol in one of its lists: the protocols are those of the states of the last hour, and what their source stated since.
func (w *work) defi(ctx context.Context, name string, parts []string) (*Node, error) {
	switch len(parts) {
	case 4:
		return w.defiRow(ctx, name, parts)
	case 3:
		return nil, unknown(name, "")
	}
	i := slices.IndexFunc(defiFields, func(f defiField) bool { return f.name == parts[1] })
	if i < 0 {
		return nil, w.nearField(name, parts, 1, defiFieldNames())
	}
	field := defiFields[i]
	whole, err := w.wholeDefi(ctx)
	if err != nil {
		return nil, err
	}
	summary := whole.summary
	n := whole.node("defi/"+field.name, field.value(summary), field.unit, field.formula)
	unit := field.unit
	if unit == percent { // a share of what is locked or borrowed
		unit = usd
	}
	for _, p := range whole.protocols {
		alone := schemas.NewDefiSummary(summary.Time, schemas.DefiInputs{Protocols: []*eventsv1.DefiProtocol{p.reported}})
		if alone == nil { // an exchange is no DeFi by itself
			alone = &eventsv1.DefiSummary{}
			if field.name == "cefiTvl" {
				alone.CefiTvl = p.reported.Tvl
			}
		}
		if value := field.part(alone); *value > 0 {
			n.Inputs = append(n.Inputs, stated("protocol/"+p.reported.Slug+"/"+field.name, value, unit, p.reported.Heard, p.at))
		}
	}
	if whole.again != nil {
		n.compare(field.value(whole.again))
	} else {
		n.notReproduced("the log no longer has what protocols state")
	}
	slices.SortStableFunc(n.Inputs, func(a, b *Node) int { return cmp.Compare(*b.Value, *a.Value) })
	n.fewer(field.unit == usd)
	return n, nil
}

// wholeDefi is all of DeFi at the end of a minute: what the fold wrote, and what the protocols give again.
type wholeDefi struct {
	summary   *eventsv1.DefiSummary
	at        Place
	protocols []statedProtocol
	again     *eventsv1.DefiSummary // nil where the log has none of them
}

// node is a number of the summary.
func (d *wholeDefi) node(number string, value *float64, unit, formula string) *Node {
	n := headline(number, value, unit, d.summary.Time)
	n.Method = &Method{Name: "defi-summary", Version: logic(schemas.TopicDefi), Formula: formula}
	n.Records = []Place{d.at}
	return n
}

// wholeDefi reads the summary of the last minute, or of the one that was asked for, and what its protocols state.
func (w *work) wholeDefi(ctx context.Context) (*wholeDefi, error) {
	if w.protocols != nil {
		return w.protocols, nil
	}
	at := w.now.UnixNano()
	if w.past {
		at = w.asOf.UnixNano()
		if err := w.agedOut(ctx, schemas.TopicDefi, at); err != nil {
			return nil, err
		}
	}
	known := map[string]statedProtocol{}
	var summary *eventsv1.DefiSummary
	var summaryAt Place
	_, err := w.scan(ctx, schemas.TopicDefi, 0, schemas.Minute(at)-int64(stateEvery)-defiRepeated, at, func(r *kgo.Record) bool {
		record, err := schemas.DecodeRecord(schemas.TopicDefi, r.Value)
		rec, ok := record.(*eventsv1.DefiRecord)
		if err != nil || !ok {
			return true
		}
		held := place(schemas.TopicDefi, 0, r.Offset)
		if s := rec.GetSummary(); s != nil {
			summary, summaryAt = s, held
		}
		for _, p := range rec.GetState().GetProtocols() {
			known[p.Slug] = statedProtocol{p, rec.GetState().Minute, held}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if summary == nil {
		return nil, query.Starting("there is no summary of DeFi yet")
	}
	w.simulated = w.simulated || summary.Simulated
	whole := &wholeDefi{summary: summary, at: summaryAt}
	if whole.protocols, err = w.protocolsOf(ctx, known, summary); err != nil {
		return nil, err
	}
	in := schemas.DefiInputs{}
	for _, p := range whole.protocols {
		in.Protocols = append(in.Protocols, p.reported)
	}
	whole.again = schemas.NewDefiSummary(summary.Time, in)
	w.protocols = whole
	return whole, nil
}

// statedProtocol is what counts of a protocol, from a minute on.
type statedProtocol struct {
	reported *eventsv1.DefiProtocol
	end      int64
	at       Place
}

// protocolsOf adds to states what the source stated since each of them, up to the minute of a summary, and returns all that count by slug,
// as the fold does.
func (w *work) protocolsOf(ctx context.Context, known map[string]statedProtocol, summary *eventsv1.DefiSummary) ([]statedProtocol, error) {
	err := w.reportsSince(ctx, schemas.TopicReferenceRaw, summary.Time-int64(stateEvery)-defiRepeated, summary.Time, func(end int64, rec *eventsv1.ReferenceRecord, at Place) {
		reported := rec.GetProtocol()
		if reported == nil || reported.Source != schemas.DefiTVLSource || end <= known[reported.Slug].end {
			return
		}
		known[reported.Slug] = statedProtocol{schemas.NewDefiProtocol(reported), end, at}
	})
	if err != nil {
		return nil, err
	}
	var all []statedProtocol
	for _, slug := range slices.Sorted(maps.Keys(known)) {
		if p := known[slug]; p.reported != nil && summary.Read-p.reported.Heard <= int64(schemas.DefiForgottenAfter) {
			all = append(all, p)
		}
	}
	return all, nil
}
