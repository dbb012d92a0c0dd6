package decode

import (
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

type stablecoinLine struct {
	Kind         string  `json:"kind"`
	Source       string  `json:"source"`
	ID           string  `json:"id"`
	Symbol       *string `json:"symbol"`
	Name         *string `json:"name"`
	PegType      *string `json:"pegType"`
	PegMechanism *string `json:"pegMechanism"`
	Price        *string `json:"price"`
	Circulating  *string `json:"circulating"`
	// Chains hold the part of it that is on each.
	Chains map[string]string `json:"chains"`
	Dead   bool              `json:"dead"`
}

func (a *answers) stablecoin(s *eventsv1.Stablecoin) stablecoinLine {
	return stablecoinLine{
		"stablecoin", a.source.Slug, s.SourceId, known(s.Symbol), known(s.Name), known(s.PegType), known(s.PegMechanism),
		known(s.Price), known(s.Circulating), amounts(s.Chains), s.Dead,
	}
}

func amounts(chains []*eventsv1.ChainAmount) map[string]string {
	if len(chains) == 0 {
		return nil
	}
	byChain := make(map[string]string, len(chains))
	for _, c := range chains {
		byChain[c.Chain] = c.Amount
	}
	return byChain
}

type fearGreedLine struct {
	Kind           string  `json:"kind"`
	Source         string  `json:"source"`
	Value          uint32  `json:"value"`
	Classification *string `json:"classification"`
	EventTime      *string `json:"eventTime"`
}

func (a *answers) fearGreed(f *eventsv1.FearGreed) fearGreedLine {
	return fearGreedLine{"fear_greed", a.source.Slug, f.Value, known(f.Classification), stamp(f.EventTime)}
}

// tvlLine is what is locked in a protocol, in all or on one chain, or on a chain by all protocols, or by all on all at a time of
// the past, which it names.
type tvlLine struct {
	Kind     string  `json:"kind"`
	Source   string  `json:"source"`
	Slug     *string `json:"slug"`
	Name     *string `json:"name"`
	Category *string `json:"category"`
	Chain    *string `json:"chain"`
	TVLUSD   *string `json:"tvlUsd"`
	// EventTime is that of the past.
	EventTime *string `json:"eventTime,omitempty"`
}

// protocol gives the whole first, then its parts by chain.
func (a *answers) protocol(p *eventsv1.Protocol) []any {
	whole := tvlLine{Kind: "tvl", Source: a.source.Slug, Slug: known(p.Slug), Name: known(p.Name), Category: known(p.Category), TVLUSD: known(p.Tvl)}
	lines := []any{whole}
	for _, c := range p.Chains {
		part := whole
		part.Chain, part.TVLUSD = known(c.Chain), known(c.Amount)
		lines = append(lines, part)
	}
	return lines
}

func (a *answers) chain(c *eventsv1.ChainTvl) tvlLine {
	return tvlLine{Kind: "tvl", Source: a.source.Slug, Chain: known(c.Chain), TVLUSD: known(c.Tvl)}
}

func (a *answers) defiPast(p *eventsv1.DefiPast) tvlLine {
	return tvlLine{Kind: "tvl", Source: a.source.Slug, TVLUSD: known(p.TotalTvl), EventTime: stamp(p.EventTime)}
}

// rateLine is what an amount earns or costs. Apr and Apy are percent a year.
type rateLine struct {
	Kind      string  `json:"kind"`
	Source    string  `json:"source"`
	Project   *string `json:"project"`
	Chain     *string `json:"chain"`
	Pool      string  `json:"pool"`
	Symbol    *string `json:"symbol"`
	Category  *string `json:"category"`
	Raw       string  `json:"raw"`
	RawUnit   string  `json:"rawUnit"`
	APR       *string `json:"apr"`
	APY       *string `json:"apy"`
	RewardAPY *string `json:"rewardApy"`
	TVLUSD    *string `json:"tvlUsd"`
	Term      *string `json:"term"`
	EventTime *string `json:"eventTime"`
}

func (a *answers) rate(r *eventsv1.Rate) rateLine {
	line := rateLine{
		Kind: "rate", Source: a.source.Slug, Project: known(r.Project), Chain: known(r.Chain), Pool: r.Pool, Symbol: known(r.Symbol),
		Category: known(r.Category), Raw: r.Raw, RawUnit: r.RawUnit, TVLUSD: known(r.TvlUsd), Term: known(r.Term), EventTime: stamp(r.EventTime),
	}
	line.APR, line.APY = yearly(r.Raw, r)
	_, line.RewardAPY = yearly(r.Reward, r)
	return line
}

// yearly is a rate in percent a year: as APR and APY, of what is reported as APY only that, since its compounding is not
// given. What needs no compounding is exact.
func yearly(raw string, r *eventsv1.Rate) (apr, apy *string) {
	_, compounded, err := schemas.Yearly(raw, r.RawUnit, r.Compounding)
	if err != nil {
		return nil, nil
	}
	rate, err := decimal.NewFromString(raw)
	if err != nil {
		return nil, nil
	}
	if strings.Contains(r.RawUnit, "fraction") {
		rate = rate.Shift(2)
	}
	if strings.HasPrefix(r.RawUnit, "apy") {
		return nil, known(rate.String())
	}
	switch {
	case strings.HasSuffix(r.RawUnit, "_hourly"):
		rate = rate.Mul(decimal.NewFromInt(schemas.HoursOfYear))
	case strings.HasSuffix(r.RawUnit, "_daily"):
		rate = rate.Mul(decimal.NewFromInt(schemas.DaysOfYear))
	}
	if r.Compounding == "none" {
		return known(rate.String()), known(rate.String())
	}
	return known(rate.String()), known(strconv.FormatFloat(compounded, 'f', -1, 64))
}
