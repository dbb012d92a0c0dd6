package explain

import (
	"cmp"
	"context"
	"slices"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// defiField is a number of all of DeFi. It follows from the protocols, the rates or the market caps of coins.
type defiField struct {
	name, unit, formula string
	value               func(*eventsv1.DefiSummary) *float64
	// part is what a protocol adds to it, or to what it is a ratio of, by the summary of that protocol alone; nil for what is of rates or coins.
	part func(*eventsv1.DefiSummary) *float64
	// rates are what it is made of; nil for what is of protocols or coins.
	rates *defiRatesUse
}

func defiSum(name, formula string, value func(*eventsv1.DefiSummary) *float64) defiField {
	return defiField{name: name, unit: usd, formula: formula, value: value, part: value}
}

// defiMean is a mean or the median of all rates of a category.
func defiMean(name, category, formula string, how defiRatesHow, value func(*eventsv1.DefiSummary) *float64) defiField {
	return defiField{name: name, unit: percent, formula: formula, value: value, rates: &defiRatesUse{category, how}}
}

func defiOfCoins(name, unit, formula string, value func(*eventsv1.DefiSummary) *float64) defiField {
	return defiField{name: name, unit: unit, formula: formula, value: value}
}

var defiFields = []defiField{
	defiSum("totalTvl", "sum of tvl over the protocols, without exchanges and liquid staking", func(s *eventsv1.DefiSummary) *float64 { return &s.TotalTvl }),
	defiSum("totalTvlWithDoubleCount", "sum of tvl over the protocols, without exchanges", func(s *eventsv1.DefiSummary) *float64 { return &s.TotalTvlWithDoubleCount }),
	defiSum("lendingTvl", "sum of tvl over the protocols of category Lending", func(s *eventsv1.DefiSummary) *float64 { return &s.LendingTvl }),
	defiSum("stakingTvl", "sum of tvl over the protocols of category Liquid Staking", func(s *eventsv1.DefiSummary) *float64 { return &s.StakingTvl }),
	defiSum("borrowingTvl", "sum of what is borrowed over the protocols, without exchanges", func(s *eventsv1.DefiSummary) *float64 { return &s.BorrowingTvl }),
	defiSum("cefiTvl", "sum of tvl over the exchanges", func(s *eventsv1.DefiSummary) *float64 { return &s.CefiTvl }),
	{"defiToCefiRatio", "", "totalTvl / cefiTvl", func(s *eventsv1.DefiSummary) *float64 { return s.DefiToCefiRatio }, func(s *eventsv1.DefiSummary) *float64 { return &s.TotalTvl }, nil},
	{"protocolCount", "", "number of protocols with locked value, without exchanges", func(s *eventsv1.DefiSummary) *float64 { return counted(s.ProtocolCount) },
		func(s *eventsv1.DefiSummary) *float64 { return counted(s.ProtocolCount) }, nil},
	defiSum("lendingBorrowed", "sum of what is borrowed over the protocols of category Lending", lendingBorrowed),
	{"lendingUtilization", percent, "lendingBorrowed / (lendingTvl + lendingBorrowed) x 100", func(s *eventsv1.DefiSummary) *float64 { return s.Lending.Utilization }, lendingBorrowed, nil},
	{"lendingProtocolCount", "", "number of protocols of category Lending", lendingProtocols, lendingProtocols, nil},
	defiSum("totalStaked", "sum of tvl over the protocols of categories Liquid Staking and Staking Pool", totalStaked),
	{"liquidStakingDominance", percent, "stakingTvl / totalStaked x 100", func(s *eventsv1.DefiSummary) *float64 { return s.Staking.LiquidDominance }, totalStaked, nil},
	defiSum("totalCollateral", "sum of tvl and what is borrowed over the protocols from which anything is", totalCollateral),
	{"collateralizationRatio", percent, "totalCollateral / borrowingTvl x 100", func(s *eventsv1.DefiSummary) *float64 { return s.Borrowing.CollateralizationRatio }, totalCollateral, nil},
	{"borrowingUtilization", percent, "borrowingTvl / totalCollateral x 100", func(s *eventsv1.DefiSummary) *float64 { return s.Borrowing.Utilization }, totalCollateral, nil},
	defiMean("lendingApy", schemas.RateLending, weighted("the rates that count in lending", "what is supplied"), defiByWeight, func(s *eventsv1.DefiSummary) *float64 { return ratesOf(s.LendingRates).Weighted }),
	defiMean("stakingApy", schemas.RateStaking, weighted("the rates that count in staking", "what is staked"), defiByWeight, func(s *eventsv1.DefiSummary) *float64 { return ratesOf(s.StakingRates).Weighted }),
	defiMean("borrowApy", schemas.RateBorrowing, weighted("the rates that count in borrowing", "the debt"), defiByWeight, func(s *eventsv1.DefiSummary) *float64 { return ratesOf(s.BorrowingRates).Weighted }),
	defiMean("averageSupplyApy", schemas.RateLending, "mean of the rates that count in lending, each counted once", defiOnce, func(s *eventsv1.DefiSummary) *float64 { return ratesOf(s.LendingRates).Average }),
	defiMean("medianSupplyApy", schemas.RateLending, "median of the rates that count in lending", defiOnce, func(s *eventsv1.DefiSummary) *float64 { return ratesOf(s.LendingRates).Median }),
	defiMean("averageStakingApy", schemas.RateStaking, "mean of the rates that count in staking, each counted once", defiOnce, func(s *eventsv1.DefiSummary) *float64 { return ratesOf(s.StakingRates).Average }),
	defiMean("averageBorrowApy", schemas.RateBorrowing, "mean of the rates that count in borrowing, each counted once", defiOnce, func(s *eventsv1.DefiSummary) *float64 { return ratesOf(s.BorrowingRates).Average }),
	defiOfCoins("defiMarketCap", usd, "sum of marketCap over the coins of DeFi, in the order of their ids", func(s *eventsv1.DefiSummary) *float64 { return s.DefiMarketCap }),
	defiOfCoins(defiDominance, percent, "defiMarketCap / totalMarketCap of the whole market x 100", func(s *eventsv1.DefiSummary) *float64 { return s.DefiMarketDominance }),
	// No summary has it: what is served is worked out of the coins at hand.
	defiOfCoins(categorizedCap, percent, "sum of marketCap over the coins whose categories are known / sum over all coins x 100, both in the order of rank", nil),
}

// defiDominance is a share of the whole market.
const defiDominance = "defiMarketDominance"

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
	return namesOf(defiFields, func(f defiField) string { return f.name })
}

// defi explains a number of all of DeFi, or of a protocol in one of its lists: protocols and coins are those of the
// states of the last hour, and what sources stated since; rates and market caps are what the log has of the hour.
func (w *work) defi(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	switch len(parts) {
	case 2:
	case 3:
		return nil, unknown(name, "")
	default:
		return w.defiRow(ctx, name, parts, depth)
	}
	i := slices.IndexFunc(defiFields, func(f defiField) bool { return f.name == parts[1] })
	if i < 0 {
		return nil, w.nearField(name, parts, 1, defiFieldNames())
	}
	whole, err := w.wholeDefi(ctx)
	if err != nil {
		return nil, err
	}
	return w.defiOf(ctx, whole, defiFields[i], depth)
}

// defiOf explains a number of all of DeFi at the end of a minute.
func (w *work) defiOf(ctx context.Context, whole *wholeDefi, field defiField, depth int) (*Node, error) {
	summary := whole.summary
	switch {
	case field.name == categorizedCap:
		return w.categorized(ctx, whole, field, depth)
	case field.rates != nil:
		n := whole.node("defi/"+field.name, field.value(summary), field.unit, field.formula)
		if err := w.ratesOfDefi(ctx, whole); err != nil {
			return nil, err
		}
		whole.compare(n, field.value)
		return n, w.addRates(ctx, n, whole, *field.rates, func(schemas.DefiRate) bool { return true }, depth)
	case field.part == nil:
		return w.defiCap(ctx, whole, field, depth)
	}
	n := whole.node("defi/"+field.name, field.value(summary), field.unit, field.formula)
	unit := field.unit
	if unit == percent { // a share of what is locked or borrowed
		unit = usd
	}
	for _, p := range whole.protocols {
		alone := schemas.NewDefiSummary(summary.Time, schemas.DefiInputs{Protocols: []*eventsv1.DefiProtocol{p.value}})
		if alone == nil { // an exchange is no DeFi by itself
			alone = &eventsv1.DefiSummary{}
			if field.name == "cefiTvl" {
				alone.CefiTvl = p.value.Tvl
			}
		}
		if value := field.part(alone); *value > 0 {
			n.Inputs = append(n.Inputs, stated("protocol/"+p.value.Slug+"/"+field.name, value, unit, p.value.Heard, p.at))
		}
	}
	whole.compare(n, field.value)
	slices.SortStableFunc(n.Inputs, func(a, b *Node) int { return cmp.Compare(*b.Value, *a.Value) })
	n.fewer(field.unit == usd)
	return n, nil
}
