package poll

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Bounds of texts in the log; what is longer is cut or, where it names something, refused.
const (
	maxReferenceID   = 256
	maxReferenceName = 512
	maxDescription   = 16 << 10
	maxURL           = 2048
	maxListed        = 512
)

// Coin takes what a source reports about a coin.
func (r *Readings) Coin(c *eventsv1.Coin) {
	if !r.named("coin", c.SourceId, c.Symbol, c.Name) {
		return
	}
	c.Description = text(c.Description, maxDescription)
	c.ImageUrl = text(c.ImageUrl, maxURL)
	c.CreatedAt, c.Kind = text(c.CreatedAt, maxReferenceID), text(c.Kind, maxReferenceID)
	c.Categories = c.Categories[:min(len(c.Categories), maxListed)]
	for i := range c.Categories {
		c.Categories[i] = text(c.Categories[i], maxReferenceName)
	}
	c.Platforms = c.Platforms[:min(len(c.Platforms), maxListed)]
	for _, p := range c.Platforms {
		p.Name, p.Address = text(p.Name, maxReferenceName), text(p.Address, maxReferenceName)
	}
	c.Links = c.Links[:min(len(c.Links), maxListed)]
	for _, l := range c.Links {
		l.Kind, l.Url = text(l.Kind, maxReferenceName), text(l.Url, maxURL)
	}
	c.Developer = c.Developer[:min(len(c.Developer), maxListed)]
	r.add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Coin{Coin: c}})
}

// CoinMarket takes what a source reports about a coin's market. An invalid number rejects the row.
func (r *Readings) CoinMarket(m *eventsv1.CoinMarket) {
	if !r.named("coin", m.SourceId, m.Symbol, m.Name) || !r.numbers("market of "+m.SourceId,
		&m.Price, &m.MarketCap, &m.FullyDilutedValuation, &m.Volume24H, &m.High24H, &m.Low24H, &m.CirculatingSupply, &m.TotalSupply, &m.MaxSupply,
		&m.Change1H, &m.Change24H, &m.Change7D, &m.Change14D, &m.Change30D, &m.Change60D, &m.Change200D, &m.Change1Y, &m.Ath, &m.Atl) {
		return
	}
	for _, n := range []string{m.Price, m.MarketCap, m.FullyDilutedValuation, m.Volume24H, m.High24H, m.Low24H, m.CirculatingSupply, m.TotalSupply, m.MaxSupply, m.Ath, m.Atl} {
		if strings.HasPrefix(n, "-") {
			r.refuse("market of "+m.SourceId, fmt.Errorf("%w: %s", schemas.NonPositive, n))
			return
		}
	}
	m.ImageUrl = text(m.ImageUrl, maxURL)
	r.add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: m}})
}

// partMarket is the part of a coin that a source lists with the coin's market: its image.
const partMarket = "market"

// pictures are the images in lists of markets, as parts of their coins: a coin's image changes once in years, and readers
// of coins do not read the markets, which change each minute.
func pictures(records []*eventsv1.ReferenceRecord) []*eventsv1.ReferenceRecord {
	var coins []*eventsv1.ReferenceRecord
	for _, rec := range records {
		if m := rec.GetCoinMarket(); m.GetImageUrl() != "" {
			coins = append(coins, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Coin{Coin: &eventsv1.Coin{
				SourceId: m.SourceId, Part: partMarket, Symbol: m.Symbol, Name: m.Name, ImageUrl: m.ImageUrl}}})
		}
	}
	return coins
}

// Stablecoin takes what a source reports about a stablecoin.
func (r *Readings) Stablecoin(s *eventsv1.Stablecoin) {
	numbers := []*string{&s.Price, &s.Circulating}
	s.Chains = s.Chains[:min(len(s.Chains), maxListed)]
	for _, c := range s.Chains {
		c.Chain = text(c.Chain, maxReferenceName)
		numbers = append(numbers, &c.Amount)
	}
	if r.named("stablecoin", s.SourceId, s.Symbol, s.Name) && r.numbers("stablecoin "+s.SourceId, numbers...) {
		r.add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Stablecoin{Stablecoin: s}})
	}
}

// Protocol takes the value locked in a protocol.
func (r *Readings) Protocol(p *eventsv1.Protocol) {
	numbers := []*string{&p.Tvl, &p.Change1D, &p.Change7D, &p.MarketCap}
	p.Chains = p.Chains[:min(len(p.Chains), maxListed)]
	for _, c := range p.Chains {
		c.Chain = text(c.Chain, maxReferenceName)
		numbers = append(numbers, &c.Amount)
	}
	if r.named("protocol", p.Slug, p.Symbol, p.Name) && r.numbers("protocol "+p.Slug, numbers...) {
		r.add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Protocol{Protocol: p}})
	}
}

// ChainTvl takes the value locked on a chain.
func (r *Readings) ChainTvl(c *eventsv1.ChainTvl) {
	if r.named("chain", c.Chain, c.Symbol, c.Chain) && r.numbers("chain "+c.Chain, &c.Tvl) {
		r.add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_ChainTvl{ChainTvl: c}})
	}
}

// FearGreed takes the index of a day.
func (r *Readings) FearGreed(f *eventsv1.FearGreed) {
	if f.Value > 100 {
		r.refuse("fear and greed", fmt.Errorf("%w: %d of at most 100", schemas.Absurd, f.Value))
		return
	}
	f.Classification = text(f.Classification, maxReferenceName)
	r.add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_FearGreed{FearGreed: f}})
}

// Global takes a source's own sums.
func (r *Readings) Global(g *eventsv1.GlobalFigures) {
	if r.numbers("global figures", &g.TotalMarketCap, &g.TotalVolume24H, &g.BtcDominance, &g.EthDominance) {
		r.add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Global{Global: g}})
	}
}

// maxPointsOfDay bounds the points of a day of the past: one for each minute.
const maxPointsOfDay = 24 * 60

// CoinPast takes a day of a coin's market from a source's history. A number that is invalid or negative,
// refuses the day.
func (r *Readings) CoinPast(p *eventsv1.CoinPast) {
	what := "past of " + p.SourceId
	if !r.named(what, p.SourceId, "", "") {
		return
	}
	if len(p.Points) > maxPointsOfDay {
		r.refuse(what, fmt.Errorf("%w: %d points of a day", schemas.Absurd, len(p.Points)))
		return
	}
	for _, point := range p.Points {
		if !r.numbers(what, &point.MarketCap, &point.Volume24H) {
			return
		}
		if strings.HasPrefix(point.MarketCap, "-") || strings.HasPrefix(point.Volume24H, "-") {
			r.refuse(what, fmt.Errorf("%w: %s, %s", schemas.NonPositive, point.MarketCap, point.Volume24H))
			return
		}
	}
	r.add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinPast{CoinPast: p}})
}

// DefiPast takes a value of all of DeFi from a source's history.
func (r *Readings) DefiPast(p *eventsv1.DefiPast) {
	const what = "past of DeFi"
	if !r.numbers(what, &p.TotalTvl) {
		return
	}
	if strings.HasPrefix(p.TotalTvl, "-") {
		r.refuse(what, fmt.Errorf("%w: %s", schemas.NonPositive, p.TotalTvl))
		return
	}
	r.add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_DefiPast{DefiPast: p}})
}

// maxTiers bounds the tiers of a rate.
const maxTiers = 64

// Rate takes what an amount earns or costs. A row whose rate is not a number, or beyond all bounds, is refused; one whose rate
// is missing is not known, and gives no row.
func (r *Readings) Rate(rate *eventsv1.Rate) {
	if rate.Raw == "" {
		return
	}
	what := "rate of " + rate.Pool
	if !r.named(what, rate.Pool, rate.Symbol, rate.Name) || !r.named(what, rate.Project, rate.Chain, rate.CoinId) {
		return
	}
	rate.Tiers = rate.Tiers[:min(len(rate.Tiers), maxTiers)]
	numbers := []*string{&rate.Raw, &rate.Reward, &rate.TvlUsd, &rate.MinAmount, &rate.MaxAmount, &rate.CollateralUsd, &rate.MaxLtv}
	for _, tier := range rate.Tiers {
		numbers = append(numbers, &tier.From, &tier.To, &tier.Raw)
	}
	if !r.numbers(what, numbers...) {
		return
	}
	if rate.Category != "" && !schemas.IsRateCategory(rate.Category) {
		r.refuse(what, fmt.Errorf("%w: the category %.40q", schemas.Undecodable, rate.Category))
		return
	}
	for _, tier := range append([]*eventsv1.RateTier{{Raw: rate.Raw}}, rate.Tiers...) {
		if _, _, err := schemas.Yearly(tier.Raw, rate.RawUnit, rate.Compounding); err != nil {
			r.refuse(what, err)
			return
		}
	}
	for _, n := range []string{rate.TvlUsd, rate.MinAmount, rate.MaxAmount, rate.CollateralUsd, rate.MaxLtv} {
		if strings.HasPrefix(n, "-") {
			r.refuse(what, fmt.Errorf("%w: %s", schemas.NonPositive, n))
			return
		}
	}
	rate.Tokens = rate.Tokens[:min(len(rate.Tokens), maxListed)]
	for i := range rate.Tokens {
		rate.Tokens[i] = text(rate.Tokens[i], maxReferenceName)
	}
	rate.Term, rate.Payout = text(rate.Term, maxReferenceID), text(rate.Payout, maxReferenceID)
	r.add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Rate{Rate: rate}})
}

func (r *Readings) add(rec *eventsv1.ReferenceRecord) { r.Records = append(r.Records, rec) }

func (r *Readings) refuse(what string, err error) {
	r.Refused = append(r.Refused, fmt.Errorf("reading the %.80s: %w", what, err))
}

// named rejects what has no name to distinguish it.
func (r *Readings) named(what, id, symbol, name string) bool {
	for _, s := range []string{id, symbol, name} {
		if len(s) > maxReferenceName || !utf8.ValidString(s) {
			r.refuse(what, fmt.Errorf("%w: the name %.40q", schemas.Undecodable, s))
			return false
		}
	}
	if id == "" || len(id) > maxReferenceID {
		r.refuse(what, fmt.Errorf("%w: the id %.40q", schemas.Undecodable, id))
		return false
	}
	return true
}

// maxReferenceDigits bounds the spelling of a number: supplies of 10^30 exist, and prices of 10^-20.
const maxReferenceDigits = 64

// numbers makes decimals canonical; empty ones stay empty.
func (r *Readings) numbers(what string, fields ...*string) bool {
	for _, f := range fields {
		if *f == "" {
			continue
		}
		canonical, err := schemas.CanonicalDecimal(*f)
		if err == nil && len(canonical) > maxReferenceDigits {
			err = fmt.Errorf("%w: %.40s", schemas.Absurd, canonical)
		}
		if err != nil {
			r.refuse(what, err)
			return false
		}
		*f = canonical
	}
	return true
}

// text cuts what is too long, and replaces what is no UTF-8: a string of the log is.
func text(s string, longest int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= longest {
		return s
	}
	for longest > 0 && !utf8.RuneStart(s[longest]) {
		longest--
	}
	return s[:longest]
}
