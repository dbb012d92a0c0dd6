package decode

import eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

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

// tvlLine is what is locked in a protocol, in all or on one chain, or on a chain by all protocols.
type tvlLine struct {
	Kind     string  `json:"kind"`
	Source   string  `json:"source"`
	Slug     *string `json:"slug"`
	Name     *string `json:"name"`
	Category *string `json:"category"`
	Chain    *string `json:"chain"`
	TVLUSD   *string `json:"tvlUsd"`
}

// protocol gives the whole first, then its parts by chain.
func (a *answers) protocol(p *eventsv1.Protocol) []any {
	whole := tvlLine{"tvl", a.source.Slug, known(p.Slug), known(p.Name), known(p.Category), nil, known(p.Tvl)}
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
