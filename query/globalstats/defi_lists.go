package globalstats

import (
	"context"
	"net/http"

	"github.com/marketlog/marketlog/query"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// DefiLendingBody answers GET /api/v1/global-stats/defi/lending.
type DefiLendingBody struct {
	Data DefiLending   `json:"data"`
	Meta query.AgeMeta `json:"meta"`
}

// DefiLending is what protocols lend. Rates are APYs in percent, of rates on chains that count.
type DefiLending struct {
	TotalTVL             float64      `json:"totalTvl" explain:"defi/lendingTvl" doc:"USD locked in lending protocols, without borrowed amounts"`
	TotalBorrowed        float64      `json:"totalBorrowed" explain:"defi/lendingBorrowed" doc:"USD borrowed from lending protocols"`
	Utilization          *float64     `json:"utilization,omitempty" explain:"defi/lendingUtilization" doc:"totalBorrowed / (totalTvl + totalBorrowed), percent"`
	AverageSupplyAPY     *float64     `json:"averageSupplyApy,omitempty" explain:"defi/averageSupplyApy" doc:"Each rate counted once"`
	MedianSupplyAPY      *float64     `json:"medianSupplyApy,omitempty" explain:"defi/medianSupplyApy" doc:"Each rate counted once, percent"`
	TVLWeightedSupplyAPY *float64     `json:"tvlWeightedSupplyApy,omitempty" explain:"defi/lendingApy" doc:"Weighted by the amount supplied, where known"`
	AverageBorrowAPY     *float64     `json:"averageBorrowApy,omitempty" explain:"defi/averageBorrowApy" doc:"Each rate counted once"`
	ProtocolCount        uint32       `json:"protocolCount" explain:"defi/lendingProtocolCount" doc:"Number of lending protocols"`
	TopProtocols         []DefiLender `json:"topProtocols" doc:"The 20 largest by tvl"`
	ByAsset              []LentAsset  `json:"byAsset" doc:"The 50 coins with the largest amount supplied, over accepted rates"`
	Timestamp            int64        `json:"timestamp" doc:"Unix seconds"`
}

// DefiLender is a protocol that lends.
type DefiLender struct {
	Slug        string   `json:"slug" example:"aave-v3" doc:"Slug of the protocol"`
	Name        string   `json:"name" doc:"Name of the protocol"`
	Chains      []string `json:"chains" doc:"Sorted by TVL, descending"`
	TVL         float64  `json:"tvl" explain:"defi/lending/{slug}/tvl" doc:"USD"`
	Change24h   *float64 `json:"change24h,omitempty" explain:"defi/lending/{slug}/change24h" doc:"Percent, as reported by the source"`
	Change7d    *float64 `json:"change7d,omitempty" explain:"defi/lending/{slug}/change7d" doc:"Percent, as reported by the source"`
	SupplyAPY   *float64 `json:"supplyApy,omitempty" explain:"defi/lending/{slug}/supplyApy" doc:"Percent"`
	BorrowAPY   *float64 `json:"borrowApy,omitempty" explain:"defi/lending/{slug}/borrowApy" doc:"Percent"`
	Utilization *float64 `json:"utilization,omitempty" explain:"defi/lending/{slug}/utilization" doc:"Borrowed / supplied, percent; absent if the source reports no borrowed amount"`
	MarketShare *float64 `json:"marketShare,omitempty" explain:"defi/lending/{slug}/marketShare" doc:"Percent of totalTvl"`
}

// LentAsset is a coin that is lent.
type LentAsset struct {
	CoinID    string   `json:"coinId" example:"ethereum"`
	Symbol    string   `json:"symbol" example:"ETH"`
	TVL       float64  `json:"tvl" explain:"defi/lending/assets/{coinId}/tvl" doc:"USD supplied"`
	SupplyAPY *float64 `json:"supplyApy,omitempty" explain:"defi/lending/assets/{coinId}/supplyApy" doc:"Percent"`
	BorrowAPY *float64 `json:"borrowApy,omitempty" explain:"defi/lending/assets/{coinId}/borrowApy" doc:"Percent"`
}

func (d *Defi) lending() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/defi/lending", ID: "getDefiLending", Tag: tag,
		Summary:     "DeFi lending: the largest protocols and coins, and their yields, current or as of a past time",
		Description: "DefiLlama's protocols of the category Lending, with rates of protocols on chains that were reported within the last two hours. Yields of a protocol or coin are weighted by the amount supplied or borrowed, where known.",
		Params:      []query.Param{defiAsOfParam},
		Body:        DefiLendingBody{}, Hot: true, Handle: d.getLending,
	}
}

func (d *Defi) getLending(ctx context.Context, r *query.Request) (query.Answer, error) {
	return d.answer(ctx, r, "lending", func(s *eventsv1.DefiSummary, age query.Age) (any, error) {
		data := DefiLending{
			TotalTVL: s.LendingTvl, TotalBorrowed: s.Lending.Borrowed, Utilization: s.Lending.Utilization, AverageSupplyAPY: s.LendingRates.Average,
			MedianSupplyAPY: s.LendingRates.Median, TVLWeightedSupplyAPY: s.LendingRates.Weighted, AverageBorrowAPY: s.BorrowingRates.Average,
			ProtocolCount: s.Lending.ProtocolCount, TopProtocols: []DefiLender{}, ByAsset: []LentAsset{}, Timestamp: seconds(s.Time),
		}
		for _, p := range s.Lending.Protocols {
			data.TopProtocols = append(data.TopProtocols, DefiLender{
				Slug: p.Key, Name: p.Name, Chains: append([]string{}, p.Chains...), TVL: p.Value, Change24h: p.Change24H, Change7d: p.Change7D,
				SupplyAPY: p.Apy, BorrowAPY: p.BorrowApy, Utilization: p.Utilization, MarketShare: p.Share,
			})
		}
		for _, a := range s.Lending.Assets {
			data.ByAsset = append(data.ByAsset, LentAsset{CoinID: a.Key, Symbol: a.Symbol, TVL: a.Value, SupplyAPY: a.Apy, BorrowAPY: a.BorrowApy})
		}
		return DefiLendingBody{data, age.Meta()}, nil
	})
}

// DefiStakingBody answers GET /api/v1/global-stats/defi/staking.
type DefiStakingBody struct {
	Data DefiStaking   `json:"data"`
	Meta query.AgeMeta `json:"meta"`
}

// DefiStaking is what is staked through protocols. Rates are APYs in percent, of rates on chains that count.
type DefiStaking struct {
	TotalStaked            float64       `json:"totalStaked" explain:"defi/totalStaked" doc:"USD in liquid staking and staking pools; restaked amounts are included in these"`
	LiquidStakingTVL       float64       `json:"liquidStakingTvl" explain:"defi/stakingTvl" doc:"USD"`
	LiquidStakingDominance *float64      `json:"liquidStakingDominance,omitempty" explain:"defi/liquidStakingDominance" doc:"Percent of totalStaked"`
	AverageAPY             *float64      `json:"averageApy,omitempty" explain:"defi/averageStakingApy" doc:"Each rate counted once"`
	TVLWeightedAPY         *float64      `json:"tvlWeightedApy,omitempty" explain:"defi/stakingApy" doc:"Weighted by the amount staked, where known"`
	TopProtocols           []DefiStaker  `json:"topProtocols" doc:"The 20 largest by tvl"`
	ByChain                []StakedChain `json:"byChain" doc:"The 30 chains with the largest amount staked"`
	Timestamp              int64         `json:"timestamp" doc:"Unix seconds"`
}

// DefiStaker is a protocol that stakes.
type DefiStaker struct {
	Slug        string   `json:"slug" example:"lido" doc:"Slug of the protocol"`
	Name        string   `json:"name" doc:"Name of the protocol"`
	Symbol      string   `json:"symbol,omitempty" doc:"Of the protocol's own token"`
	TVL         float64  `json:"tvl" explain:"defi/staking/{slug}/tvl" doc:"USD"`
	APY         *float64 `json:"apy,omitempty" explain:"defi/staking/{slug}/apy" doc:"Percent"`
	MarketShare *float64 `json:"marketShare,omitempty" explain:"defi/staking/{slug}/marketShare" doc:"Percent of totalStaked"`
}

// StakedChain is a chain on which something is staked.
type StakedChain struct {
	Chain        string   `json:"chain" example:"Ethereum" doc:"Name of the chain"`
	CoinID       string   `json:"coinId,omitempty" doc:"The chain's own coin" example:"ethereum"`
	TVL          float64  `json:"tvl" explain:"defi/staking/chains/{chain}/tvl" doc:"USD"`
	APY          *float64 `json:"apy,omitempty" explain:"defi/staking/chains/{chain}/apy" doc:"Percent"`
	StakingRatio *float64 `json:"stakingRatio,omitempty" explain:"defi/staking/chains/{chain}/stakingRatio" doc:"tvl as percent of the market cap of the chain's coin; only the amount staked through these protocols"`
	Share        *float64 `json:"share,omitempty" explain:"defi/staking/chains/{chain}/share" doc:"Percent of totalStaked"`
}

func (d *Defi) staking() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/defi/staking", ID: "getDefiStaking", Tag: tag,
		Summary:     "DeFi staking: the largest protocols and chains, and their yields, current or as of a past time",
		Description: "DefiLlama's protocols of the categories Liquid Staking and Staking Pool, not those of restaking, with rates that were reported within the last two hours. Yields of a protocol or chain are weighted by the amount staked, where known.",
		Params:      []query.Param{defiAsOfParam},
		Body:        DefiStakingBody{}, Hot: true, Handle: d.getStaking,
	}
}

func (d *Defi) getStaking(ctx context.Context, r *query.Request) (query.Answer, error) {
	return d.answer(ctx, r, "staking", func(s *eventsv1.DefiSummary, age query.Age) (any, error) {
		data := DefiStaking{
			TotalStaked: s.Staking.Staked, LiquidStakingTVL: s.StakingTvl, LiquidStakingDominance: s.Staking.LiquidDominance,
			AverageAPY: s.StakingRates.Average, TVLWeightedAPY: s.StakingRates.Weighted, TopProtocols: []DefiStaker{}, ByChain: []StakedChain{},
			Timestamp: seconds(s.Time),
		}
		for _, p := range s.Staking.Protocols {
			data.TopProtocols = append(data.TopProtocols, DefiStaker{Slug: p.Key, Name: p.Name, Symbol: p.Symbol, TVL: p.Value, APY: p.Apy, MarketShare: p.Share})
		}
		for _, c := range s.Staking.Chains {
			data.ByChain = append(data.ByChain, StakedChain{Chain: c.Key, CoinID: c.CoinId, TVL: c.Value, APY: c.Apy, StakingRatio: c.StakingRatio, Share: c.Share})
		}
		return DefiStakingBody{data, age.Meta()}, nil
	})
}

// DefiBorrowingBody answers GET /api/v1/global-stats/defi/borrowing.
type DefiBorrowingBody struct {
	Data DefiBorrowing `json:"data"`
	Meta query.AgeMeta `json:"meta"`
}

// DefiBorrowing is what is owed to protocols. Rates are APYs in percent, of rates on chains that count.
type DefiBorrowing struct {
	TotalDebt              float64         `json:"totalDebt" explain:"defi/borrowingTvl" doc:"USD"`
	TotalCollateral        float64         `json:"totalCollateral" explain:"defi/totalCollateral" doc:"USD supplied to the protocols with debt: locked plus borrowed"`
	CollateralizationRatio *float64        `json:"collateralizationRatio,omitempty" explain:"defi/collateralizationRatio" doc:"totalCollateral / totalDebt, percent"`
	Utilization            *float64        `json:"utilization,omitempty" explain:"defi/borrowingUtilization" doc:"totalDebt / totalCollateral, percent"`
	AverageBorrowAPY       *float64        `json:"averageBorrowApy,omitempty" explain:"defi/averageBorrowApy" doc:"Each rate counted once"`
	DebtWeightedBorrowAPY  *float64        `json:"debtWeightedBorrowApy,omitempty" explain:"defi/borrowApy" doc:"Weighted by the debt, where known"`
	TopProtocols           []DefiCreditor  `json:"topProtocols" doc:"The 20 largest by debt"`
	ByAsset                []BorrowedAsset `json:"byAsset" doc:"The 50 coins with the largest debt, over accepted rates"`
	Timestamp              int64           `json:"timestamp" doc:"Unix seconds"`
}

// DefiCreditor is a protocol that is owed something.
type DefiCreditor struct {
	Slug                   string   `json:"slug" example:"aave-v3" doc:"Slug of the protocol"`
	Name                   string   `json:"name" doc:"Name of the protocol"`
	Debt                   float64  `json:"debt" explain:"defi/borrowing/{slug}/debt" doc:"USD"`
	Collateral             *float64 `json:"collateral,omitempty" explain:"defi/borrowing/{slug}/collateral" doc:"USD"`
	CollateralizationRatio *float64 `json:"collateralizationRatio,omitempty" explain:"defi/borrowing/{slug}/collateralizationRatio" doc:"Percent"`
	BorrowAPY              *float64 `json:"borrowApy,omitempty" explain:"defi/borrowing/{slug}/borrowApy" doc:"Percent"`
	MarketShare            *float64 `json:"marketShare,omitempty" explain:"defi/borrowing/{slug}/marketShare" doc:"Percent of totalDebt"`
}

// BorrowedAsset is a coin that is owed.
type BorrowedAsset struct {
	CoinID    string   `json:"coinId" example:"usd-coin"`
	Symbol    string   `json:"symbol" example:"USDC"`
	Debt      float64  `json:"debt" explain:"defi/borrowing/assets/{coinId}/debt" doc:"USD"`
	BorrowAPY *float64 `json:"borrowApy,omitempty" explain:"defi/borrowing/assets/{coinId}/borrowApy" doc:"Percent"`
}

func (d *Defi) borrowing() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/defi/borrowing", ID: "getDefiBorrowing", Tag: tag,
		Summary:     "DeFi borrowing: debt, collateral and rates, current or as of a past time",
		Description: "All of DefiLlama's protocols with borrowed amounts, exchanges left out, and rates of protocols on chains that were reported within the last two hours. Rates of a protocol or coin are weighted by the debt, where known.",
		Params:      []query.Param{defiAsOfParam},
		Body:        DefiBorrowingBody{}, Hot: true, Handle: d.getBorrowing,
	}
}

func (d *Defi) getBorrowing(ctx context.Context, r *query.Request) (query.Answer, error) {
	return d.answer(ctx, r, "borrowing", func(s *eventsv1.DefiSummary, age query.Age) (any, error) {
		data := DefiBorrowing{
			TotalDebt: s.BorrowingTvl, TotalCollateral: s.Borrowing.Collateral, CollateralizationRatio: s.Borrowing.CollateralizationRatio,
			Utilization: s.Borrowing.Utilization, AverageBorrowAPY: s.BorrowingRates.Average, DebtWeightedBorrowAPY: s.BorrowingRates.Weighted,
			TopProtocols: []DefiCreditor{}, ByAsset: []BorrowedAsset{}, Timestamp: seconds(s.Time),
		}
		for _, p := range s.Borrowing.Protocols {
			data.TopProtocols = append(data.TopProtocols, DefiCreditor{
				Slug: p.Key, Name: p.Name, Debt: p.Value, Collateral: p.Collateral, CollateralizationRatio: p.CollateralizationRatio,
				BorrowAPY: p.BorrowApy, MarketShare: p.Share,
			})
		}
		for _, a := range s.Borrowing.Assets {
			data.ByAsset = append(data.ByAsset, BorrowedAsset{CoinID: a.Key, Symbol: a.Symbol, Debt: a.Value, BorrowAPY: a.BorrowApy})
		}
		return DefiBorrowingBody{data, age.Meta()}, nil
	})
}
