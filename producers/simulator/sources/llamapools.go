package sources

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/schemas"
)

// defiLlamaYields serves what pools earn, what borrowers pay and what a pool earned in the past, as described on
// https://defillama.com/docs/api and made by https://github.com/DefiLlama/yield-server.
func defiLlamaYields() Source {
	return Source{
		Slug: "defillama-yields", Requests: 300, Per: time.Minute, Tagged: true, MaxAge: 10 * time.Minute,
		Routes: func(r *Reference) map[string]http.HandlerFunc {
			l := &llamaYields{Reference: r, pools: r.defi().pools()}
			return map[string]http.HandlerFunc{"GET /pools": l.list, "GET /lendBorrow": l.loans, "GET /chart/{pool}": l.chart}
		},
	}
}

type llamaYields struct {
	*Reference
	pools []*pool
}

type llamaPool struct {
	Chain        string            `json:"chain"`
	Project      string            `json:"project"`
	Symbol       string            `json:"symbol"`
	Value        int64             `json:"tvlUsd"`
	Base         provider.Nullable `json:"apyBase"`
	Reward       provider.Nullable `json:"apyReward"`
	APY          provider.Nullable `json:"apy"`
	RewardTokens []string          `json:"rewardTokens"`
	ID           string            `json:"pool"`
	Day          provider.Nullable `json:"apyPct1D"`
	Week         provider.Nullable `json:"apyPct7D"`
	Month        provider.Nullable `json:"apyPct30D"`
	Stable       bool              `json:"stablecoin"`
	ILRisk       string            `json:"ilRisk"`
	Exposure     string            `json:"exposure"`
	Predicted    llamaPrediction   `json:"predictions"`
	Meta         *string           `json:"poolMeta"`
	Mu           provider.Nullable `json:"mu"`
	Sigma        provider.Nullable `json:"sigma"`
	Count        int64             `json:"count"`
	Outlier      bool              `json:"outlier"`
	Tokens       []string          `json:"underlyingTokens"`
	IL           provider.Nullable `json:"il7d"`
	BaseWeek     provider.Nullable `json:"apyBase7d"`
	Mean         provider.Nullable `json:"apyMean30d"`
	VolumeDay    provider.Nullable `json:"volumeUsd1d"`
	VolumeWeek   provider.Nullable `json:"volumeUsd7d"`
	Inception    provider.Nullable `json:"apyBaseInception"`
}

type llamaPrediction struct {
	Class       *string `json:"predictedClass"`
	Probability *int    `json:"predictedProbability"`
	Confidence  *int    `json:"binnedConfidence"`
}

// unknownAPY is of a few pools, whose rate it could not read.
func (p *pool) unknownAPY() bool { return p.seed.At(5)%41 == 0 }

// llamaAPY are rate, base and reward in percent, as of the full hour. What is pledged earns nothing, and of some projects
// that is a rate without parts.
func (p *pool) llamaAPY(t int64) (apy, base, reward provider.Nullable) {
	s := p.at(market.FloorDiv(t, market.Hour) * market.Hour)
	none := provider.Nullable(math.NaN())
	switch {
	case p.unknownAPY():
		return none, none, none
	case p.kind == pledged && p.project.category == "CDP":
		return 0, none, none
	case p.kind == pledged:
		return 0, 0, none
	}
	base = fiveDecimals(100 * s.earns)
	if p.reward > 0 {
		reward = fiveDecimals(100 * s.reward)
		return fiveDecimals(float64(base + reward)), base, reward
	}
	return base, base, none
}

func fiveDecimals(x float64) provider.Nullable { return provider.Nullable(math.Round(x*1e5) / 1e5) }

// list serves the pools, the largest first.
func (l *llamaYields) list(w http.ResponseWriter, _ *http.Request) {
	now := l.Now().UnixNano()
	rows := make([]llamaPool, 0, len(l.pools))
	for _, p := range l.pools {
		if p.project.born <= now {
			rows = append(rows, l.row(p, now))
		}
	}
	slices.SortStableFunc(rows, func(a, b llamaPool) int { return cmp.Compare(b.Value, a.Value) })
	provider.Respond(w, http.StatusOK, map[string]any{"status": "success", "data": rows})
}

func (l *llamaYields) row(p *pool, now int64) llamaPool {
	none := provider.Nullable(math.NaN())
	apy, base, reward := p.llamaAPY(now)
	before := func(days int64) provider.Nullable {
		then, _, _ := p.llamaAPY(now - days*market.Day)
		return fiveDecimals(float64(apy - then))
	}
	row := llamaPool{
		Chain: market.Chains[p.on].Name, Project: p.project.slug(), Symbol: p.symbol(), Value: int64(p.value(now)),
		Base: base, Reward: reward, APY: apy,
		ID: p.id, Day: before(1), Week: before(7), Month: before(30), Stable: true, ILRisk: "no", Exposure: "single",
		Mu: none, Sigma: none, Count: market.FloorDiv(now-p.project.born, market.Day), IL: none, BaseWeek: none, Mean: none,
		VolumeDay: none, VolumeWeek: none,
		Inception: none, Outlier: apy > 60,
	}
	if p.meta != "" {
		row.Meta = &p.meta
	}
	if p.reward > 0 {
		row.RewardTokens = []string{market.Contract(p.seed.Of("reward"), market.Chains[p.on].ID)}
	}
	for _, k := range p.coins {
		row.Stable = row.Stable && k.coin.Stable
		row.Tokens = append(row.Tokens, p.contract(k))
	}
	if !p.unknownAPY() {
		row.Mean, row.Mu, row.Sigma = fiveDecimals(float64(apy-before(30)/2)), apy, fiveDecimals(0.05+0.1*p.seed.Unit(6))
		class, probability, confidence := [...]string{"Down", "Stable/Up"}[p.seed.At(7)%2], 50+int(p.seed.At(8)%50), 1+int(p.seed.At(9)%3)
		row.Predicted = llamaPrediction{&class, &probability, &confidence}
	}
	if p.kind == paired {
		row.Exposure = "multi"
		if !row.Stable {
			row.ILRisk = "yes"
		}
		traded := p.at(now).earns * p.value(now) / 365 / 0.003
		row.VolumeDay, row.VolumeWeek = fiveDecimals(traded), fiveDecimals(7*traded)
	}
	return row
}

// value is what the pool holds as of the full hour, less what of it was lent.
func (p *pool) value(t int64) float64 {
	return p.at(market.FloorDiv(t, market.Hour) * market.Hour).value
}

// loans state what borrowers pay, by the ids of pools.
func (l *llamaYields) loans(w http.ResponseWriter, _ *http.Request) {
	now := market.FloorDiv(l.Now().UnixNano(), market.Hour) * market.Hour
	rows := []map[string]any{}
	for _, p := range l.pools {
		if p.kind != lent && p.kind != pledged || p.project.born > now {
			continue
		}
		s, none := p.at(now), provider.Nullable(math.NaN())
		row := map[string]any{
			"pool": p.id, "apyBaseBorrow": fiveDecimals(100 * s.costs), "apyRewardBorrow": none,
			"totalSupplyUsd": int64(s.supplied),
			"totalBorrowUsd": int64(s.owed), "debtCeilingUsd": none, "ltv": math.Round(p.ltv*100) / 100,
			"borrowable": true, "mintedCoin": nil,
			"rewardTokens": nil, "underlyingTokens": []string{p.contract(p.coins[0])}, "borrowFactor": none,
		}
		switch {
		case p.owed != nil:
			row["mintedCoin"], row["totalSupplyUsd"] = p.owed.symbol, int64(s.value)
			row["debtCeilingUsd"] = int64(s.supplied - s.owed)
		case p.coins[0].coin.Kind == schemas.KindStaked && p.seed.At(10)%2 == 0: // only to be pledged
			row["borrowable"], row["apyBaseBorrow"], row["totalBorrowUsd"] = false, none, 0
		case p.seed.At(11)%9 == 0: // for a while more is paid to borrowers than they pay
			row["apyRewardBorrow"] = fiveDecimals(100 * s.costs * 2 * p.seed.Unit(12))
		}
		rows = append(rows, row)
	}
	provider.Respond(w, http.StatusOK, rows)
}

// chartSpan is how far a chart goes back at most.
const chartSpan = 5 * 365 * market.Day

// chart serves a pool at the end of each day, and its newest value.
func (l *llamaYields) chart(w http.ResponseWriter, req *http.Request) {
	now := l.Now().UnixNano()
	i := slices.IndexFunc(l.pools, func(p *pool) bool { return p.id == req.PathValue("pool") })
	if i < 0 {
		provider.Respond(w, http.StatusOK, map[string]any{"status": "success", "data": []any{}})
		return
	}
	p := l.pools[i]
	type chartRow struct {
		Time   string            `json:"timestamp"`
		Value  int64             `json:"tvlUsd"`
		APY    provider.Nullable `json:"apy"`
		Base   provider.Nullable `json:"apyBase"`
		Reward provider.Nullable `json:"apyReward"`
		IL     provider.Nullable `json:"il7d"`
		Week   provider.Nullable `json:"apyBase7d"`
	}
	rows := []chartRow{}
	for first := market.FloorDiv(max(p.project.born, now-chartSpan), market.Day); first*market.Day <= now; first++ {
		counted := 61*market.Second + int64(p.seed.At(first)%1000)*int64(time.Millisecond) // when it was, within its hour
		at := min(first*market.Day+23*market.Hour, market.FloorDiv(now-counted, market.Hour)*market.Hour) + counted
		if at < p.project.born {
			continue
		}
		apy, base, reward := p.llamaAPY(at)
		rows = append(rows, chartRow{provider.SpellTime(at, geckoTime), int64(p.value(at)), apy, base, reward, provider.Nullable(math.NaN()), provider.Nullable(math.NaN())})
	}
	provider.Respond(w, http.StatusOK, map[string]any{"status": "success", "data": rows})
}
