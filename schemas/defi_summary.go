package schemas

import (
	"cmp"
	"slices"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Lengths of the lists in a summary of DeFi.
const (
	defiProtocols = 20
	defiAssets    = 50
	defiChains    = 30
)

// DefiInputs are what a summary of DeFi is made from.
type DefiInputs struct {
	// Protocols and Rates in an order that the log fixes: floats are summed in it.
	Protocols []*eventsv1.DefiProtocol
	Rates     []DefiRate
	// ChainCoins are the ids of the chains' own coins.
	ChainCoins map[string]string
	// Coins of DeFi, in an order that the log fixes. Caps are of all coins that have one.
	Coins []string
	Caps  map[string]float64
	// TotalMarketCap is of all coins, 0 where it is not known.
	TotalMarketCap float64
}

// NewDefiSummary is all of DeFi as of the end of a minute; nil while nothing is known to be locked anywhere. When the
// protocols were read, and whether anything is simulated, is left to the caller.
func NewDefiSummary(minute int64, in DefiInputs) *eventsv1.DefiSummary {
	s := &eventsv1.DefiSummary{Time: minute, Lending: &eventsv1.DefiLending{}, Staking: &eventsv1.DefiStaking{}, Borrowing: &eventsv1.DefiBorrowing{}}
	var lending, staking, borrowing []*eventsv1.DefiProtocol
	for _, p := range in.Protocols {
		if p.Category == tvlExchange {
			s.CefiTvl += p.Tvl
			continue
		}
		s.TotalTvlWithDoubleCount += p.Tvl
		s.BorrowingTvl += p.Borrowed
		if p.Tvl > 0 {
			s.ProtocolCount++
		}
		// What liquid staking gives out for a stake is locked in other protocols again.
		if p.Category == tvlLiquidStaking {
			s.StakingTvl += p.Tvl
		} else {
			s.TotalTvl += p.Tvl
		}
		if p.Category == tvlLending {
			s.LendingTvl += p.Tvl
			s.Lending.Borrowed += p.Borrowed
			lending = append(lending, p)
		}
		if countsAsStaked(p.Category) {
			s.Staking.Staked += p.Tvl
			staking = append(staking, p)
		}
		if p.Borrowed > 0 {
			s.Borrowing.Collateral += p.Tvl + p.Borrowed
			borrowing = append(borrowing, p)
		}
	}
	if s.TotalTvlWithDoubleCount == 0 && s.BorrowingTvl == 0 {
		return nil
	}
	s.DefiToCefiRatio = ratio(s.TotalTvl, s.CefiTvl)
	for _, id := range in.Coins {
		if marketCap, ok := in.Caps[id]; ok {
			s.DefiMarketCap = known(s.GetDefiMarketCap() + marketCap)
		}
	}
	if s.DefiMarketCap != nil {
		s.DefiMarketDominance = percentage(*s.DefiMarketCap, in.TotalMarketCap)
	}
	rates := groupDefiRates(in.Rates)
	s.LendingRates, s.StakingRates, s.BorrowingRates = rates.all(RateLending), rates.all(RateStaking), rates.all(RateBorrowing)
	fillDefiLending(s, lending, rates)
	fillDefiStaking(s, staking, rates, in)
	fillDefiBorrowing(s, borrowing, rates)
	return s
}

func fillDefiLending(s *eventsv1.DefiSummary, protocols []*eventsv1.DefiProtocol, rates *defiRates) {
	l := s.Lending
	l.Utilization = percentage(l.Borrowed, s.LendingTvl+l.Borrowed)
	l.ProtocolCount = uint32(len(protocols))
	for _, p := range protocols {
		row := &eventsv1.DefiRow{
			Key: p.Slug, Name: p.Name, Symbol: p.Symbol, Value: p.Tvl, Share: percentage(p.Tvl, s.LendingTvl),
			Change24H: p.Change1D, Change7D: p.Change7D,
			Apy: rates.of(RateLending, byProvider, p.Slug).apy(), BorrowApy: rates.of(RateBorrowing, byProvider, p.Slug).apy(),
		}
		if p.Borrowed > 0 { // else it is not known
			row.Utilization = percentage(p.Borrowed, p.Tvl+p.Borrowed)
		}
		for _, c := range p.Chains {
			row.Chains = append(row.Chains, c.Chain)
		}
		l.Protocols = append(l.Protocols, row)
	}
	l.Protocols = largest(l.Protocols, defiProtocols)
	for id, g := range rates.groups[groupKind{RateLending, byCoin}] {
		l.Assets = append(l.Assets, &eventsv1.DefiRow{
			Key: id, Symbol: g.symbol, Value: g.weight, Apy: g.apy(), BorrowApy: rates.of(RateBorrowing, byCoin, id).apy(),
		})
	}
	l.Assets = largest(l.Assets, defiAssets)
}

func fillDefiStaking(s *eventsv1.DefiSummary, protocols []*eventsv1.DefiProtocol, rates *defiRates, in DefiInputs) {
	st := s.Staking
	st.LiquidDominance = percentage(s.StakingTvl, st.Staked)
	st.ProtocolCount = uint32(len(protocols))
	onChain := map[string]float64{}
	for _, p := range protocols {
		st.Protocols = append(st.Protocols, &eventsv1.DefiRow{
			Key: p.Slug, Name: p.Name, Symbol: p.Symbol, Value: p.Tvl, Share: percentage(p.Tvl, st.Staked),
			Apy: rates.of(RateStaking, byProvider, p.Slug).apy(),
		})
		for _, c := range p.Chains {
			onChain[c.Chain] += c.Amount
		}
	}
	st.Protocols = largest(st.Protocols, defiProtocols)
	for chain, amount := range onChain {
		coin := in.ChainCoins[chain]
		st.Chains = append(st.Chains, &eventsv1.DefiRow{
			Key: chain, Name: chain, CoinId: coin, Value: amount, Share: percentage(amount, st.Staked),
			Apy: rates.of(RateStaking, byChain, chain).apy(), StakingRatio: percentage(amount, in.Caps[coin]),
		})
	}
	st.Chains = largest(st.Chains, defiChains)
}

func fillDefiBorrowing(s *eventsv1.DefiSummary, protocols []*eventsv1.DefiProtocol, rates *defiRates) {
	b := s.Borrowing
	b.CollateralizationRatio, b.Utilization = percentage(b.Collateral, s.BorrowingTvl), percentage(s.BorrowingTvl, b.Collateral)
	b.ProtocolCount = uint32(len(protocols))
	for _, p := range protocols {
		collateral := p.Tvl + p.Borrowed
		b.Protocols = append(b.Protocols, &eventsv1.DefiRow{
			Key: p.Slug, Name: p.Name, Symbol: p.Symbol, Value: p.Borrowed, Share: percentage(p.Borrowed, s.BorrowingTvl), Collateral: &collateral,
			CollateralizationRatio: percentage(collateral, p.Borrowed), BorrowApy: rates.of(RateBorrowing, byProvider, p.Slug).apy(),
		})
	}
	b.Protocols = largest(b.Protocols, defiProtocols)
	for id, g := range rates.groups[groupKind{RateBorrowing, byCoin}] {
		b.Assets = append(b.Assets, &eventsv1.DefiRow{Key: id, Symbol: g.symbol, Value: g.weight, BorrowApy: g.apy()})
	}
	b.Assets = largest(b.Assets, defiAssets)
}

// largest are the rows of a list that are published: those of a known value, the largest first, of equal ones by key.
func largest(rows []*eventsv1.DefiRow, most int) []*eventsv1.DefiRow {
	rows = slices.DeleteFunc(rows, func(r *eventsv1.DefiRow) bool { return !(r.Value > 0) })
	slices.SortFunc(rows, func(a, b *eventsv1.DefiRow) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Key, b.Key))
	})
	return rows[:min(most, len(rows))]
}

// ratio is nil where there is nothing to divide by.
func ratio(part, whole float64) *float64 {
	if !(whole > 0) {
		return nil
	}
	return known(part / whole)
}

func percentage(part, whole float64) *float64 {
	if !(whole > 0) {
		return nil
	}
	return known(part / whole * 100)
}

// defiRates are rates by what they have in common.
type defiRates struct {
	groups map[groupKind]map[string]*rateGroup
	apys   map[string][]float64 // by category
}

// groupKind is a category and what its rates are grouped by.
type groupKind struct {
	category string
	by       rateKey
}

type rateKey int

const (
	byNothing rateKey = iota
	byProvider
	byCoin
	byChain
)

// rateGroup are rates of which the mean is published.
type rateGroup struct {
	symbol string
	count  int
	sum    float64
	// weight is the sum of what is supplied, staked or owed, weighted that of the rates times it.
	weight, weighted float64
}

func groupDefiRates(rates []DefiRate) *defiRates {
	all := &defiRates{groups: map[groupKind]map[string]*rateGroup{}, apys: map[string][]float64{}}
	for _, r := range rates {
		for by, key := range map[rateKey]string{byNothing: "", byProvider: r.Provider, byCoin: r.CoinID, byChain: r.Chain} {
			kind := groupKind{r.Category, by}
			if all.groups[kind] == nil {
				all.groups[kind] = map[string]*rateGroup{}
			}
			g := all.groups[kind][key]
			if g == nil {
				g = &rateGroup{symbol: r.Symbol}
				all.groups[kind][key] = g
			}
			g.count++
			g.sum += r.APY
			g.weight += r.TVL
			g.weighted += float64(r.APY * r.TVL)
		}
		all.apys[r.Category] = append(all.apys[r.Category], r.APY)
	}
	return all
}

// of is nil where there is no such rate.
func (r *defiRates) of(category string, by rateKey, key string) *rateGroup {
	return r.groups[groupKind{category, by}][key]
}

// apy is the mean by weight; where no weight is known, that of the rates each counted once.
func (g *rateGroup) apy() *float64 {
	switch {
	case g == nil:
		return nil
	case g.weight > 0:
		return known(g.weighted / g.weight)
	default:
		return known(g.sum / float64(g.count))
	}
}

// all are the means over a category. The one by weight is not known where no weight is.
func (r *defiRates) all(category string) *eventsv1.DefiRates {
	g := r.of(category, byNothing, "")
	if g == nil {
		return &eventsv1.DefiRates{}
	}
	return &eventsv1.DefiRates{
		Count: uint32(g.count), Average: known(g.sum / float64(g.count)), Median: known(median(r.apys[category])), Weighted: ratio(g.weighted, g.weight),
	}
}
