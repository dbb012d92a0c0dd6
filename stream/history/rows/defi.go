package rows

import (
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// defiRows are the rows of the fold of DeFi. A minute takes the place of the offset in their versions.
type defiRows struct {
	summaries columnBatch[*eventsv1.DefiSummary]
	lists     columnBatch[listed]
}

// listed is a row in one of the lists of a summary.
type listed struct {
	*eventsv1.DefiRow
	list     string
	position uint32
	time     int64
}

func newDefiRows() topicRows {
	return &defiRows{summaries: defiBatch(), lists: defiListBatch()}
}

func (r *defiRows) all() []native.Rows { return []native.Rows{&r.summaries, &r.lists} }

// add adds the rows of a record; it is false for one that has none.
func (r *defiRows) add(_ Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.DefiRecord)
	s := rec.GetSummary()
	if s == nil {
		return false
	}
	r.summaries.appendDerived(rec.Mark, s)
	for _, l := range []struct {
		name string
		rows []*eventsv1.DefiRow
	}{
		{"lending_protocols", s.GetLending().GetProtocols()}, {"lending_assets", s.GetLending().GetAssets()},
		{"staking_protocols", s.GetStaking().GetProtocols()}, {"staking_chains", s.GetStaking().GetChains()},
		{"borrowing_protocols", s.GetBorrowing().GetProtocols()}, {"borrowing_assets", s.GetBorrowing().GetAssets()},
	} {
		for i, row := range l.rows {
			r.lists.appendDerived(rec.Mark, listed{row, l.name, uint32(i + 1), s.Time})
		}
	}
	return true
}

func defiBatch() columnBatch[*eventsv1.DefiSummary] {
	type summary = *eventsv1.DefiSummary
	rates := func(apy, rates string, of func(summary) *eventsv1.DefiRates) []field[summary] {
		var all []field[summary]
		for _, part := range [][]field[summary]{
			optionalOf(apy, func(s summary) *float64 { return optionalIn(of(s)).Weighted }),
			optionalOf(apy+"_average", func(s summary) *float64 { return optionalIn(of(s)).Average }),
			optionalOf(apy+"_median", func(s summary) *float64 { return optionalIn(of(s)).Median }),
			countOf(rates, func(s summary) uint32 { return of(s).GetCount() }),
		} {
			all = append(all, part...)
		}
		return all
	}
	return newColumnBatch("defi",
		secondOf("time", summary.GetTime), instantOf("read_time", summary.GetRead),
		floatOf("total_tvl", summary.GetTotalTvl), floatOf("total_tvl_with_double_count", summary.GetTotalTvlWithDoubleCount),
		floatOf("lending_tvl", summary.GetLendingTvl), floatOf("staking_tvl", summary.GetStakingTvl),
		floatOf("borrowing_tvl", summary.GetBorrowingTvl), floatOf("cefi_tvl", summary.GetCefiTvl),
		optionalOf("defi_market_cap", func(s summary) *float64 { return s.DefiMarketCap }),
		optionalOf("defi_market_dominance", func(s summary) *float64 { return s.DefiMarketDominance }),
		optionalOf("defi_to_cefi_ratio", func(s summary) *float64 { return s.DefiToCefiRatio }), countOf("protocols", summary.GetProtocolCount),
		rates("lending_apy", "lending_rates", summary.GetLendingRates), rates("staking_apy", "staking_rates", summary.GetStakingRates),
		rates("borrow_apy", "borrowing_rates", summary.GetBorrowingRates),
		floatOf("lending_borrowed", func(s summary) float64 { return s.GetLending().GetBorrowed() }),
		optionalOf("lending_utilization", func(s summary) *float64 { return optionalIn(s.Lending).Utilization }),
		countOf("lending_protocols", func(s summary) uint32 { return s.GetLending().GetProtocolCount() }),
		floatOf("staked", func(s summary) float64 { return s.GetStaking().GetStaked() }),
		optionalOf("liquid_staking_dominance", func(s summary) *float64 { return optionalIn(s.Staking).LiquidDominance }),
		countOf("staking_protocols", func(s summary) uint32 { return s.GetStaking().GetProtocolCount() }),
		floatOf("collateral", func(s summary) float64 { return s.GetBorrowing().GetCollateral() }),
		optionalOf("collateralization_ratio", func(s summary) *float64 { return optionalIn(s.Borrowing).CollateralizationRatio }),
		optionalOf("borrowing_utilization", func(s summary) *float64 { return optionalIn(s.Borrowing).Utilization }),
		countOf("borrowing_protocols", func(s summary) uint32 { return s.GetBorrowing().GetProtocolCount() }),
		flagOf("simulated", summary.GetSimulated))
}

// optionalIn is a message that is left out as an empty one.
func optionalIn[M any](m *M) *M {
	if m == nil {
		m = new(M)
	}
	return m
}

func defiListBatch() columnBatch[listed] {
	return newColumnBatch("defi_lists",
		lowCardinalityOf("list", func(l listed) string { return l.list }), countOf("position", func(l listed) uint32 { return l.position }),
		secondOf("time", func(l listed) int64 { return l.time }), stringOf("key", func(l listed) string { return l.Key }),
		stringOf("name", func(l listed) string { return l.Name }), stringOf("symbol", func(l listed) string { return l.Symbol }),
		stringOf("coin_id", func(l listed) string { return l.CoinId }), listOf("chains", func(l listed) []string { return l.Chains }),
		floatOf("value", func(l listed) float64 { return l.Value }), optionalOf("share", func(l listed) *float64 { return l.Share }),
		optionalOf("change_24h", func(l listed) *float64 { return l.Change24H }), optionalOf("change_7d", func(l listed) *float64 { return l.Change7D }),
		optionalOf("apy", func(l listed) *float64 { return l.Apy }), optionalOf("borrow_apy", func(l listed) *float64 { return l.BorrowApy }),
		optionalOf("utilization", func(l listed) *float64 { return l.Utilization }), optionalOf("collateral", func(l listed) *float64 { return l.Collateral }),
		optionalOf("collateralization_ratio", func(l listed) *float64 { return l.CollateralizationRatio }),
		optionalOf("staking_ratio", func(l listed) *float64 { return l.StakingRatio }))
}
