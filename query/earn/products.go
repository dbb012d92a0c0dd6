package earn

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	maxProducts = 500
	maxOffset   = 1_000_000
)

// ProductsBody answers GET /api/v1/earn/products.
type ProductsBody struct {
	Products []Product `json:"products" doc:"Open ones first, sorted by confidence, then by rate"`
	Meta     ListMeta  `json:"meta"`
}

// ListMeta describes a list.
type ListMeta struct {
	query.Meta
	query.AgeMeta
	Total  int `json:"total" doc:"Number of products without limit and offset"`
	Offset int `json:"offset" doc:"Products that were skipped"`
}

// ProductBody answers GET /api/v1/earn/products/{productId}.
type ProductBody struct {
	Product Product     `json:"product" doc:"The product with its variants"`
	Meta    ProductMeta `json:"meta"`
}

// ProductMeta describes one product.
type ProductMeta struct {
	AsOf        string `json:"asOf" format:"date-time" doc:"The point in time that the product is shown as of"`
	LastUpdated string `json:"lastUpdated" format:"date-time" doc:"End of the minute of its newest row"`
}

// Product is what a provider pays for a coin in a category.
type Product struct {
	ProductID    string    `json:"productId" example:"aave-v3:usd-coin:lending" doc:"provider:coin:category; never changes"`
	Provider     string    `json:"provider"`
	ProviderName string    `json:"providerName,omitempty"`
	Segment      string    `json:"segment" enum:"cefi,defi" doc:"cefi: an exchange; defi: any other provider"`
	CoinID       string    `json:"coinId"`
	Symbol       string    `json:"symbol"`
	Category     string    `json:"category" enum:"lending,staking" doc:"Whether the coin is lent or staked"`
	Status       string    `json:"status" enum:"open,silent,closed" doc:"silent: its source no longer responds"`
	Variants     []Variant `json:"variants" doc:"Open ones first, sorted by confidence, then by rate"`
}

// Variant is one way to take a product.
type Variant struct {
	VariantID        string    `json:"variantId" doc:"source:pool or source:pool:term; never changes"`
	Status           string    `json:"status" enum:"open,silent,replaced,closed" doc:"silent: its source no longer responds; replaced: now under another source or coin; closed: no longer offered"`
	Rate             float64   `json:"rate" explain:"earn/{productId}/{variantId}/rate" doc:"Percent per year, compounded (APY); equal to apy"`
	BaseRate         float64   `json:"baseRate" explain:"earn/{productId}/{variantId}/baseRate" doc:"Without rewards in other tokens; the lowest of the tiers"`
	MaxRate          float64   `json:"maxRate" explain:"earn/{productId}/{variantId}/maxRate" doc:"The highest of the tiers"`
	APR              float64   `json:"apr" explain:"earn/{productId}/{variantId}/apr" doc:"Percent per year, not compounded (APR); equal to apy if the source reported an APY"`
	APY              float64   `json:"apy" explain:"earn/{productId}/{variantId}/apy" doc:"Percent per year, compounded (APY)"`
	RewardRate       *float64  `json:"rewardRate,omitempty" explain:"earn/{productId}/{variantId}/rewardRate" doc:"The part paid in other tokens"`
	Compounding      string    `json:"compounding,omitempty" doc:"Assumed compounding frequency of an APR; absent if the source reported an APY"`
	Term             string    `json:"term,omitempty" doc:"flexible, or a number of days such as 30d"`
	LockupDays       *float64  `json:"lockupDays,omitempty" explain:"earn/{productId}/{variantId}/lockupDays" doc:"Days for which a deposit is bound"`
	Tiers            []Tier    `json:"tiers" doc:"Rates of parts of the amount; empty if the source reports none"`
	MinDeposit       *float64  `json:"minDeposit,omitempty" explain:"earn/{productId}/{variantId}/minDeposit" doc:"Units of the coin"`
	Cap              *float64  `json:"cap,omitempty" explain:"earn/{productId}/{variantId}/cap" doc:"Units of the coin; for protocols, the remaining capacity"`
	Payout           string    `json:"payout,omitempty" doc:"How often earnings are paid, as the source states it, such as daily"`
	WithdrawalNotice *float64  `json:"withdrawalNotice,omitempty" explain:"earn/{productId}/{variantId}/withdrawalNotice" doc:"Days"`
	TVL              *float64  `json:"tvl,omitempty" explain:"earn/{productId}/{variantId}/tvl" doc:"USD"`
	Promo            bool      `json:"promo" doc:"Offered for a limited time or to some users"`
	Confidence       float64   `json:"confidence" explain:"earn/{productId}/{variantId}/confidence" doc:"0 to 1"`
	Collection       string    `json:"collection" enum:"api" doc:"How it was read: api, from an interface of the source"`
	VerifiedAt       string    `json:"verifiedAt" format:"date-time" doc:"When the source last reported it; updated at least hourly"`
	Countries        Countries `json:"countries" doc:"As reported by the source, and by the terms of the exchange; both empty where neither states any"`
	Source           string    `json:"source" doc:"The source that reported it"`
	Pool             string    `json:"pool,omitempty" doc:"The product's id at the source"`
	Name             string    `json:"name,omitempty" doc:"What the source calls the product"`
	Chain            string    `json:"chain,omitempty" doc:"Blockchain, as the source names it; absent off chain"`
}

// Tier is the rate of the part of an amount between two bounds, in units of the coin.
type Tier struct {
	From float64  `json:"from" explain:"earn/{productId}/{variantId}/tiers/{from}/from" doc:"Lower bound, units of the coin; 0 if the source reports none"`
	To   *float64 `json:"to,omitempty" explain:"earn/{productId}/{variantId}/tiers/{from}/to" doc:"Absent if there is no upper bound"`
	Rate float64  `json:"rate" explain:"earn/{productId}/{variantId}/tiers/{from}/rate" doc:"Percent per year, compounded (APY)"`
	APR  float64  `json:"apr" explain:"earn/{productId}/{variantId}/tiers/{from}/apr" doc:"Percent per year, not compounded (APR)"`
}

// Countries are by ISO 3166 code: as the source reports, and by the terms of the exchange; both empty where neither reports any.
type Countries struct {
	Allow []string `json:"allow" doc:"Only these countries, by ISO 3166 code, without those in deny; empty for all"`
	Deny  []string `json:"deny" doc:"Not these countries, by ISO 3166 code"`
}

func (u *Unit) getProducts(ctx context.Context, r *query.Request) (query.Answer, error) {
	least := r.Number("min_confidence")
	s, at, err := u.stateAt(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	body, simulated := ProductsBody{Products: []Product{}}, false
	coin, category, provider := "", r.Text("category"), strings.ToLower(r.Text("provider"))
	if r.Has("symbol") {
		coin = u.coinID(r.Text("symbol"))
		snapshot := u.catalog.Snapshot()
		if snapshot.ByID(coin) == nil && !slices.ContainsFunc(s.variants, func(v *eventsv1.EarnVariant) bool { return v.CoinId == coin }) {
			return query.Answer{}, query.NoCoin(snapshot, r.Text("symbol"))
		}
	}
	limit, offset := int(r.Integer("limit")), int(r.Integer("offset"))
	for _, p := range s.products {
		first := p.variants[0]
		if coin != "" && first.CoinId != coin || category != "" && first.Category != category || provider != "" && first.Provider != provider || first.Confidence < least {
			continue
		}
		if body.Meta.Total++; body.Meta.Total <= offset || len(body.Products) == limit {
			continue
		}
		body.Products = append(body.Products, u.response(p, least))
		simulated = simulated || p.simulated()
	}
	body.Meta.Count, body.Meta.Offset, body.Meta.Clamped = len(body.Products), offset, r.Clamped()
	body.Meta.LastUpdated, body.Meta.AgeMeta = query.FormatTime(s.time), query.AgeOf(s.time, at, staleAfter).Meta()
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}

func (u *Unit) getProduct(ctx context.Context, r *query.Request) (query.Answer, error) {
	id := strings.ToLower(r.Text("productId"))
	var variants []*eventsv1.EarnVariant
	at, past := r.Time("asOf")
	var err error
	if past {
		variants, err = views.EarnVariantsAsOf(ctx, u.history, id, at)
	} else {
		at = r.Now
		variants, err = u.history.EarnVariantsAt(ctx, id, at)
	}
	if err != nil {
		return query.Answer{}, query.FaultOfPast(err, at)
	}
	if len(variants) == 0 {
		return query.Answer{}, query.NotFound("no earn product has the id %q at %s", strings.ToValidUTF8(id, "�"), query.FormatTime(at.UnixNano()))
	}
	p := group(withoutOld(variants, at))[0]
	body := ProductBody{Product: u.response(p, 0), Meta: ProductMeta{AsOf: query.FormatTime(at.UnixNano())}}
	newest := int64(0)
	for _, v := range variants {
		newest = max(newest, v.Time)
	}
	body.Meta.LastUpdated = query.FormatTime(newest)
	answer, err := query.Encode(body)
	answer.Simulated = p.simulated()
	return answer, err
}

// withoutOld leaves out what was closed long before, unless all of it was.
func withoutOld(variants []*eventsv1.EarnVariant, at time.Time) []*eventsv1.EarnVariant {
	var kept []*eventsv1.EarnVariant
	for _, v := range variants {
		if v.Status == schemas.EarnOpen || v.Status == schemas.EarnSilent || at.UnixNano()-v.Time <= int64(closedFor) {
			kept = append(kept, v)
		}
	}
	if len(kept) == 0 {
		return variants
	}
	return kept
}

// simulated means that invented numbers are in it.
func (p *product) simulated() bool {
	for _, v := range p.variants {
		if v.Simulated {
			return true
		}
	}
	return false
}

// response is a product with its variants of at least a confidence.
func (u *Unit) response(p *product, least float64) Product {
	first := p.variants[0]
	shown := Product{
		ProductID: p.id, Provider: first.Provider, ProviderName: first.ProviderName, Segment: first.Segment, CoinID: first.CoinId, Symbol: first.Symbol,
		Category: first.Category, Status: p.status, Variants: []Variant{},
	}
	for _, v := range p.variants {
		if v.Confidence >= least {
			shown.Variants = append(shown.Variants, toVariant(v, u.countries(v)))
		}
	}
	return shown
}

// countries are those of a variant as far as its source reports, and what the exchange that offers it serves at all.
func (u *Unit) countries(v *eventsv1.EarnVariant) Countries {
	venue := u.venues[v.Provider]
	c := Countries{Allow: listed(v.Served), Deny: append(append([]string{}, v.Refused...), venue.Refuses...)}
	slices.Sort(c.Deny)
	c.Deny = slices.Compact(c.Deny)
	switch {
	case len(venue.Serves) == 0:
	case len(c.Allow) == 0:
		c.Allow = slices.Sorted(slices.Values(venue.Serves))
	default:
		both := slices.DeleteFunc(slices.Clone(c.Allow), func(code string) bool { return !slices.Contains(venue.Serves, code) })
		if len(both) == 0 { // nobody is served, and an empty list would mean everybody
			c.Deny = slices.Concat(c.Deny, c.Allow)
			slices.Sort(c.Deny)
			c.Deny = slices.Compact(c.Deny)
		} else {
			c.Allow = both
		}
	}
	return c
}

func toVariant(v *eventsv1.EarnVariant, countries Countries) Variant {
	shown := Variant{
		VariantID: v.VariantId, Status: v.Status, Rate: v.Apy, BaseRate: v.BaseApy, MaxRate: v.MaxApy, APR: v.Apr, APY: v.Apy, RewardRate: v.RewardApy,
		Compounding: v.Compounding, Term: v.Term, LockupDays: v.LockupDays, Tiers: []Tier{}, MinDeposit: amount(v.MinAmount), Cap: amount(v.MaxAmount),
		Payout: v.Payout, WithdrawalNotice: v.NoticeDays, TVL: v.TvlUsd, Promo: v.Promo, Confidence: v.Confidence, Collection: v.Collection,
		VerifiedAt: query.FormatTime(v.Heard), Countries: countries,
		Source: v.Source, Pool: v.Pool, Name: v.Name, Chain: v.Chain,
	}
	for _, t := range v.Tiers {
		tier := Tier{To: amount(t.To), Rate: t.Apy, APR: t.Apr}
		if from := amount(t.From); from != nil {
			tier.From = *from
		}
		shown.Tiers = append(shown.Tiers, tier)
	}
	return shown
}

// amount reads a decimal of the log; nil where it is not one.
func amount(text string) *float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &n
}

// listed is never null.
func listed(codes []string) []string {
	if codes == nil {
		return []string{}
	}
	return codes
}
