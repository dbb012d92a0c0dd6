package sources

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// What clients ask of the two that answer GraphQL.
const (
	aaveChains   = `/graphql {"query": "{ chains(filter: MAINNET_ONLY) { name icon chainId explorerUrl isTestnet nativeWrappedToken } }"}`
	aaveReserves = `/graphql {"query": "query { markets(request: {chainIds: [1, 8453]}) { name address icon chain { name chainId } totalMarketSize totalAvailableLiquidity reserves {` +
		` underlyingToken { address symbol name decimals chainId imageUrl } aToken { symbol } vToken { symbol } isFrozen isPaused flashLoanEnabled permitSupported usdExchangeRate usdOracleAddress` +
		` size { usd usdPerToken amount { raw decimals value } } supplyInfo { apy { raw decimals value formatted } total { raw decimals value } supplyCap { amount { value } usd }` +
		` maxLTV { value formatted } liquidationThreshold { value } liquidationBonus { value } canBeCollateral supplyCapReached }` +
		` borrowInfo { apy { value formatted } total { amount { value } usd } borrowCap { amount { value } } availableLiquidity { amount { value } } utilizationRate { value }` +
		` reserveFactor { value } variableRateSlope1 { value } variableRateSlope2 { value } optimalUsageRate { value } baseVariableBorrowRate { value } borrowingState borrowCapReached } } } }"}`
	morphoStates = `/graphql {"query": "{ markets(first: 1000, orderBy: SupplyAssetsUsd, orderDirection: Desc, where: {listed: true, chainId_in: [1, 8453]}) {` +
		` pageInfo { countTotal count limit skip } items { marketId lltv listed creationTimestamp chain { id network } loanAsset { address symbol decimals price { usd } }` +
		` collateralAsset { address symbol decimals price { usd } } state { timestamp supplyAssets supplyAssetsUsd borrowAssets borrowAssetsUsd collateralAssets collateralAssetsUsd` +
		` liquidityAssets liquidityAssetsUsd utilization fee supplyApy netSupplyApy borrowApy netBorrowApy rewards { supplyApr borrowApr asset { symbol } } } } } }"}`
)

type poolRow struct {
	Pool, Project, Chain, Symbol string
	TVLUSD                       float64
	APY, APYBase, APYReward      *float64
	Exposure                     string
}

func allPools(t *testing.T, s *Server) []poolRow {
	t.Helper()
	return decoded[struct{ Data []poolRow }](t, s, "defillama-yields", "/pools").Data
}

// All categories have pools, of projects that the list of protocols has, and no more lies in them than is locked there.
func TestPoolsFitTheirProtocols(t *testing.T) {
	s := open(t, 1)
	locked, categories := map[string]map[string]float64{}, map[string]string{}
	for _, p := range decoded[[]struct {
		Slug, Category string
		ChainTvls      map[string]float64
	}](t, s, "defillama", "/protocols") {
		locked[p.Slug], categories[p.Slug] = p.ChainTvls, p.Category
	}
	pools := allPools(t, s)
	held, projects, ids, lent := map[string]map[string]float64{}, map[string]int{}, map[string]bool{}, map[string]int{}
	unknown, negative, rewarded := 0, 0, 0
	for i, p := range pools {
		projects[p.Project]++
		if held[p.Project] == nil {
			held[p.Project] = map[string]float64{}
		}
		held[p.Project][p.Chain] += p.TVLUSD
		switch {
		case ids[p.Pool] || p.Symbol == "" || p.TVLUSD <= 0 || i > 0 && p.TVLUSD > pools[i-1].TVLUSD:
			t.Errorf("pool %+v comes twice, says nothing or is not in its place", p)
		case p.APY == nil:
			unknown++
		case *p.APY < -60 || *p.APY > 120:
			t.Errorf("%+v pays %g %%", p, *p.APY)
		case *p.APY < 0:
			negative++
		case p.APYReward != nil:
			rewarded++
		}
		ids[p.Pool] = true
		if categories[p.Project] == "Lending" && p.Exposure == "single" {
			lent[p.Symbol]++
		}
	}
	for project, chains := range held {
		for chain, value := range chains {
			if most := locked[project][chain]; value > most || value < most*0.9 {
				t.Errorf("%g lies in the pools of %s on %s, %g is locked there", value, project, chain, most)
			}
		}
	}
	if len(pools) < 300 || len(pools) > 500 || len(projects) < 60 || unknown == 0 || negative == 0 || rewarded < 20 {
		t.Errorf("%d pools of %d projects, %d pay what is not known, %d lose, %d reward; want about 400 of 60, and some of each", len(pools), len(projects), unknown, negative, rewarded)
	}
	for _, symbol := range []string{"USDC", "USDT", "WETH", "WBTC", "SOL"} {
		if lent[symbol] < 3 {
			t.Errorf("%s is lent at %d places", symbol, lent[symbol])
		}
	}
}

// Borrowers pay more than lenders get, and owe less than these have supplied.
func TestLoansFitTheirPools(t *testing.T) {
	s := open(t, 1)
	pools := map[string]poolRow{}
	for _, p := range allPools(t, s) {
		pools[p.Pool] = p
	}
	owed, loans, minted := map[string]float64{}, 0, 0
	for _, l := range decoded[[]struct {
		Pool                           string
		APYBaseBorrow                  *float64
		TotalSupplyUSD, TotalBorrowUSD float64
		LTV                            float64
		MintedCoin                     *string
	}](t, s, "defillama-yields", "/lendBorrow") {
		p, ok := pools[l.Pool]
		if !ok || l.TotalBorrowUSD > l.TotalSupplyUSD || l.LTV <= 0 || l.LTV >= 1 {
			t.Errorf("loan %+v of pool %+v", l, p)
		}
		loans++
		owed[p.Project] += l.TotalBorrowUSD
		if l.MintedCoin != nil {
			minted++
		} else if l.APYBaseBorrow != nil && p.APYBase != nil && *l.APYBaseBorrow < *p.APYBase {
			t.Errorf("%s %s costs %g and pays %g", p.Project, p.Symbol, *l.APYBaseBorrow, *p.APYBase)
		}
	}
	if loans < 150 || minted < 10 {
		t.Errorf("%d loans, %d of them are minted or lent by others", loans, minted)
	}
	for _, p := range decoded[[]struct {
		Slug      string
		ChainTvls map[string]float64
	}](t, s, "defillama", "/protocols") {
		if listed := p.ChainTvls["borrowed"]; owed[p.Slug] > 0 && listed > 0 && (owed[p.Slug] > 3*listed || owed[p.Slug] < listed/3) {
			t.Errorf("%g is owed to the pools of %s, %g by the list of protocols", owed[p.Slug], p.Slug, listed)
		}
	}
}

// A chart ends with what the pool is now, and goes no faster than a market does.
func TestChartsLeadToNow(t *testing.T) {
	s := open(t, 1)
	for i, p := range allPools(t, s) {
		if i%40 != 0 || p.APY == nil {
			continue
		}
		days := decoded[struct {
			Data []struct {
				Timestamp time.Time
				TVLUSD    float64
				APY       float64
			}
		}](t, s, "defillama-yields", "/chart/"+p.Pool).Data
		last := days[len(days)-1]
		if len(days) < 100 || last.APY != *p.APY || last.TVLUSD != p.TVLUSD || last.Timestamp.After(simulatortest.Noon) || last.Timestamp.Before(simulatortest.Noon.Add(-2*time.Hour)) {
			t.Errorf("%d days of %+v end with %+v", len(days), p, last)
		}
		for j, d := range days[1:] {
			if before := days[j]; !d.Timestamp.After(before.Timestamp) || math.Abs(d.APY-before.APY) > 0.3*math.Abs(before.APY)+4 {
				t.Errorf("%s %s jumps from %+v to %+v", p.Project, p.Symbol, before, d)
			}
		}
	}
}

// A project reports of itself what DefiLlama reports of it.
func TestProjectsAgreeWithDefiLlama(t *testing.T) {
	s := open(t, 1)
	listed := map[string]float64{}
	for _, p := range allPools(t, s) {
		if p.APYBase != nil {
			listed[p.Project+" "+p.Chain+" "+p.Symbol] = *p.APYBase / 100
		}
	}
	compared := 0
	compare := func(key, apy string) {
		t.Helper()
		x, err := strconv.ParseFloat(apy, 64)
		if want, ok := listed[key]; err != nil || ok && math.Abs(x-want) > 0.03*want+1e-6 { // counted within the hour
			t.Errorf("%s pays %s by itself, %g at DefiLlama", key, apy, want)
		} else if ok {
			compared++
		}
	}
	for _, m := range decoded[struct {
		Data struct {
			Markets []struct {
				Chain    struct{ Name string }
				Reserves []struct {
					UnderlyingToken struct{ Symbol string }
					SupplyInfo      struct{ APY struct{ Value string } }
				}
			}
		}
	}](t, s, "aave", aaveReserves).Data.Markets {
		for _, r := range m.Reserves {
			compare("aave-v3 "+m.Chain.Name+" "+r.UnderlyingToken.Symbol, r.SupplyInfo.APY.Value)
		}
	}
	for _, m := range kaminoMarkets {
		for _, r := range decoded[[]struct{ LiquidityToken, SupplyAPY string }](t, s, "kamino", "/kamino-market/"+m.key+"/reserves/metrics") {
			compare("kamino-lend Solana "+r.LiquidityToken, r.SupplyAPY)
		}
	}
	if compared < 15 {
		t.Errorf("%d rates are compared, want more", compared)
	}
}

func TestQueriesAreAnsweredAsFarAsTheySelect(t *testing.T) {
	s := open(t, 1)
	answers := func(query string) (int, string) {
		w := answerTo(t, s, "morpho", `/graphql {"query": "`+query+`"}`)
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	if code, body := answers("{ markets(first: 1, where: {chainId_in: [1]}) { items { chain { network } } } }"); code != http.StatusOK || body != `{"data":{"markets":{"items":[{"chain":{"network":"Ethereum"}}]}}}` {
		t.Errorf("status %d, %s", code, body)
	}
	for query, why := range map[string]string{
		"{ markets { items { uniqueKey } } }": "Cannot query field", "{ vaults { items { address } } }": "Cannot query field", "{ markets { items } }": "must have a selection",
		"{ markets { items { lltv { value } } } }": "must not have a selection", "{ markets { items { lltv }": "Syntax Error", "{}": "Syntax Error", "": "Syntax Error",
		"{ markets(first: 1 { items } }": "Syntax Error", strings.Repeat("{ markets ", 20): "Syntax Error",
	} {
		if code, body := answers(query); code != http.StatusBadRequest || !strings.Contains(body, why) {
			t.Errorf("%s: status %d, %s", query, code, body)
		}
	}
}

func TestPoolsKnowTheirCoins(t *testing.T) {
	s := open(t, 1)
	for on, coins := range poolCoins {
		if held := s.references[0].defi().held(on); len(held) != len(coins) {
			t.Errorf("on %s %d of %d coins are known", market.Chains[on].Name, len(held), len(coins))
		}
	}
	for _, p := range s.references[0].defi().pools() {
		if slices.ContainsFunc(p.coins, func(k poolCoin) bool { return k.coin == nil }) || p.owed != nil && p.owed.coin == nil {
			t.Errorf("a pool of %s has a coin that nobody knows", p.project.name)
		}
	}
}
