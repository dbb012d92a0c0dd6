package rates

import (
	"strconv"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Units of rates.
const (
	unitPercentage = "percentage"
	unitAbsolute   = "absolute"
)

// Entry is what a provider pays or asks for a coin, or the price that an exchange tells.
type Entry struct {
	ID             string    `json:"id" example:"defillama-yields|lending|aa70268e-4b52-42bf-a116-608b370f9501" doc:"The same for this rate in every answer, and of no other: source|category|pool, which is key in v_rates; of a price provider|price|providerSymbol"`
	Provider       string    `json:"provider" example:"aave-v3"`
	ProviderName   string    `json:"providerName,omitempty" example:"Aave V3"`
	Symbol         string    `json:"symbol" example:"ETH"`
	Category       string    `json:"category" enum:"lending,staking,borrowing,price"`
	Rate           float64   `json:"rate" doc:"Percent a year, compounded (APY), below zero where it costs the lender; of a price USD"`
	CoinID         string    `json:"coinId" example:"ethereum"`
	ProviderSymbol string    `json:"providerSymbol,omitempty" doc:"The provider's own symbol"`
	Metadata       *Metadata `json:"metadata,omitempty"`
	UnitType       string    `json:"unitType" enum:"percentage,absolute"`
	UnitSymbol     string    `json:"unitSymbol" enum:"%,USD"`
	LastUpdated    string    `json:"lastUpdated" format:"date-time" doc:"When it was last told"`
}

// Metadata is what else is known of a rate. What is not known is left out.
type Metadata struct {
	Source        string     `json:"source,omitempty" doc:"Who told it"`
	Pool          string     `json:"pool,omitempty" doc:"The source's own id"`
	Chain         string     `json:"chain,omitempty"`
	Name          string     `json:"name,omitempty"`
	Term          string     `json:"term,omitempty" doc:"flexible, or a number of days such as 30d"`
	APR           *float64   `json:"apr,omitempty" doc:"Percent a year, not compounded"`
	RewardAPY     *float64   `json:"rewardApy,omitempty" doc:"The part of the rate that is paid in other tokens"`
	TVLUSD        *float64   `json:"tvlUsd,omitempty" doc:"Supplied or staked; of borrowing owed"`
	CollateralUSD *float64   `json:"collateralUsd,omitempty" doc:"Pledged against what is owed"`
	MaxLTV        *float64   `json:"maxLtv,omitempty" doc:"What may be owed, as a fraction of what is pledged"`
	MinAmount     *float64   `json:"minAmount,omitempty" doc:"In units of the coin"`
	MaxAmount     *float64   `json:"maxAmount,omitempty" doc:"In units of the coin"`
	LockupDays    *float64   `json:"lockupDays,omitempty"`
	NoticeDays    *float64   `json:"noticeDays,omitempty" doc:"How long leaving takes"`
	Payout        string     `json:"payout,omitempty"`
	Tiers         []Tier     `json:"tiers,omitempty"`
	Countries     *Countries `json:"countries,omitempty" doc:"As far as the provider tells"`
	Promo         bool       `json:"promo,omitempty" doc:"For a while, or for some"`
	Raw           string     `json:"raw,omitempty" doc:"The number as it was told"`
	RawUnit       string     `json:"rawUnit,omitempty" doc:"What it is, such as apr_fraction_hourly; of a price the quote"`
	Compounding   string     `json:"compounding,omitempty" doc:"How often an APR is taken to be reinvested"`
	Quote         string     `json:"quote,omitempty" doc:"Of a price, what it is told in: symbol of a coin or code of a currency"`
	QuoteCoinID   string     `json:"quoteCoinId,omitempty" doc:"Of a price that is told in a coin"`
	Pair          string     `json:"pair,omitempty" doc:"Of a price, BASE/QUOTE"`
	Basis         string     `json:"basis,omitempty" doc:"Of a price, what it was taken from"`
	RateUsed      float64    `json:"rateUsed,omitempty" doc:"Of a price, USD for one unit of the quote"`
	ObservedAt    string     `json:"observedAt,omitempty" format:"date-time" doc:"By the source's clock"`
	Simulated     bool       `json:"simulated,omitempty"`
}

// Tier is the rate of a part of an amount.
type Tier struct {
	From *float64 `json:"from,omitempty" doc:"In units of the coin"`
	To   *float64 `json:"to,omitempty" doc:"Left out without an upper bound"`
	Rate float64  `json:"rate" doc:"Percent a year, compounded"`
}

// Countries are lists of ISO 3166 codes.
type Countries struct {
	Allow []string `json:"allow,omitempty" doc:"Only these"`
	Deny  []string `json:"deny,omitempty" doc:"All but these"`
}

// Meta tells about an answer, and how old the rates in it are as a whole; each has its own time.
type Meta struct {
	query.Meta
	query.AgeMeta
	Reason string `json:"reason,omitempty" doc:"Why there are none"`
}

// ListMeta tells about a list.
type ListMeta struct {
	Meta
	Offset    int  `json:"offset" doc:"Rows that were passed over"`
	Truncated bool `json:"truncated,omitempty" doc:"There are more: ask again with an offset that is greater by count"`
}

// noRates says why an answer about a coin or provider that is known is empty.
const noRates = "no_rates"

func (ix *index) meta(r *query.Request, age query.Age, count int) Meta {
	m := Meta{Meta: query.Meta{Count: count, LastUpdated: query.FormatTime(ix.current.Time), Clamped: r.Clamped()}, AgeMeta: age.Meta()}
	if count == 0 {
		m.Reason = noRates
	}
	return m
}

// tell writes a rate that counts.
func (e *rate) response(u *Unit, ix *index) Entry {
	return Entry{
		ID: rateID(e.Source, e.Category, e.Pool), Provider: e.Provider, ProviderName: u.nameOf(ix, e.Provider), Symbol: e.coin.symbol, Category: e.Category, Rate: e.Apy, CoinID: e.coin.id,
		ProviderSymbol: e.ProviderSymbol, Metadata: metadata(e.RateEntry), UnitType: unitPercentage, UnitSymbol: "%",
		LastUpdated: query.FormatTime(e.Heard),
	}
}

// rateID names a rate by what a source calls it, so it stays when the provider's name, its coin or anything that is told of it
// changes. It is the key of v_rates; slugs and categories have no bar.
func rateID(source, category, pool string) string { return source + "|" + category + "|" + pool }

func metadata(e *eventsv1.RateEntry) *Metadata {
	said := e.Said
	if said == nil {
		said = &eventsv1.Rate{}
	}
	m := &Metadata{
		Source: e.Source, Pool: e.Pool, Chain: e.Chain, Name: e.Name, Term: e.Term, RewardAPY: e.RewardApy, TVLUSD: e.TvlUsd,
		CollateralUSD: decimal(said.CollateralUsd), MaxLTV: decimal(said.MaxLtv), MinAmount: decimal(said.MinAmount), MaxAmount: decimal(said.MaxAmount),
		LockupDays: said.LockupDays, NoticeDays: said.NoticeDays, Payout: said.Payout, Promo: said.Promo,
		Raw: said.Raw, RawUnit: said.RawUnit, Compounding: said.Compounding, ObservedAt: query.FormatTime(said.EventTime), Simulated: e.Simulated,
	}
	if said.Compounding != "" { // how an APY was compounded is not known
		m.APR = &e.Apr
	}
	if rule, known := schemas.RateRuleBy(e.Method); known {
		for _, tier := range said.Tiers {
			if _, apy, err := rule.Yearly(tier.Raw, said.RawUnit, said.Compounding); err == nil {
				m.Tiers = append(m.Tiers, Tier{decimal(tier.From), decimal(tier.To), apy})
			}
		}
	}
	if len(said.Served)+len(said.Refused) > 0 {
		m.Countries = &Countries{said.Served, said.Refused}
	}
	return m
}

// decimal reads what the log holds as an exact decimal; nil where nothing is told.
func decimal(text string) *float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &n
}
