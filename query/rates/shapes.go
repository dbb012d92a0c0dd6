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

// Entry is what a provider pays or asks for a coin, or the price that an exchange sends.
type Entry struct {
	ID             string    `json:"id" example:"defillama-yields|lending|aa70268e-4b52-42bf-a116-608b370f9501" doc:"Stable and unique across responses: source|category|pool, as key in v_rates; for a price provider|price|providerSymbol"`
	Provider       string    `json:"provider" example:"aave-v3"`
	ProviderName   string    `json:"providerName,omitempty" example:"Aave V3"`
	Symbol         string    `json:"symbol" example:"ETH"`
	Category       string    `json:"category" enum:"lending,staking,borrowing,price" doc:"lending and staking earn the rate, borrowing costs it; price: the price at an exchange"`
	Rate           float64   `json:"rate" explain:"rate/{provider}/{category}/{id}" doc:"Percent per year, compounded (APY); negative if the lender pays; for a price, USD"`
	CoinID         string    `json:"coinId" example:"ethereum"`
	ProviderSymbol string    `json:"providerSymbol,omitempty" doc:"The symbol used by the provider"`
	Metadata       *Metadata `json:"metadata,omitempty" doc:"Terms, and what the source reported; what is not known is left out"`
	UnitType       string    `json:"unitType" enum:"percentage,absolute" doc:"percentage for yields and borrowing costs, absolute for prices"`
	UnitSymbol     string    `json:"unitSymbol" enum:"%,USD" doc:"Unit of rate: percent per year, or USD for a price"`
	LastUpdated    string    `json:"lastUpdated" format:"date-time" doc:"When it was last reported"`
}

// Metadata is what else is known of a rate. What is not known is left out.
type Metadata struct {
	Source        string     `json:"source,omitempty" doc:"The source that reported it"`
	Pool          string     `json:"pool,omitempty" doc:"The id used by the source"`
	Chain         string     `json:"chain,omitempty" doc:"Blockchain, as the source names it; absent off chain"`
	Name          string     `json:"name,omitempty" doc:"What the source calls the pool or product"`
	Term          string     `json:"term,omitempty" doc:"flexible, or a number of days such as 30d"`
	APR           *float64   `json:"apr,omitempty" explain:"rate-term/apr/{provider}/{category}/{id}" doc:"Percent per year, not compounded (APR)"`
	RewardAPY     *float64   `json:"rewardApy,omitempty" explain:"rate-term/rewardApy/{provider}/{category}/{id}" doc:"The part of the rate paid in other tokens"`
	TVLUSD        *float64   `json:"tvlUsd,omitempty" explain:"rate-term/tvlUsd/{provider}/{category}/{id}" doc:"Amount supplied or staked; for borrowing, the debt"`
	CollateralUSD *float64   `json:"collateralUsd,omitempty" explain:"rate-term/collateralUsd/{provider}/{category}/{id}" doc:"Collateral pledged against the debt"`
	MaxLTV        *float64   `json:"maxLtv,omitempty" explain:"rate-term/maxLtv/{provider}/{category}/{id}" doc:"Maximum debt as a fraction of the collateral"`
	MinAmount     *float64   `json:"minAmount,omitempty" explain:"rate-term/minAmount/{provider}/{category}/{id}" doc:"In units of the coin"`
	MaxAmount     *float64   `json:"maxAmount,omitempty" explain:"rate-term/maxAmount/{provider}/{category}/{id}" doc:"In units of the coin"`
	LockupDays    *float64   `json:"lockupDays,omitempty" explain:"rate-term/lockupDays/{provider}/{category}/{id}" doc:"Days for which the amount is bound"`
	NoticeDays    *float64   `json:"noticeDays,omitempty" explain:"rate-term/noticeDays/{provider}/{category}/{id}" doc:"Unbonding or withdrawal time"`
	Payout        string     `json:"payout,omitempty" doc:"How often earnings are paid, as the source states it, such as daily"`
	Tiers         []Tier     `json:"tiers,omitempty" doc:"Rates of parts of the amount; absent if the source reports none"`
	Countries     *Countries `json:"countries,omitempty" doc:"As far as the provider states it"`
	Promo         bool       `json:"promo,omitempty" doc:"Offered for a limited time or to some users"`
	Raw           string     `json:"raw,omitempty" doc:"The number as reported by the source"`
	RawUnit       string     `json:"rawUnit,omitempty" doc:"Unit of raw, such as apr_fraction_hourly; for a price, the quote asset"`
	Compounding   string     `json:"compounding,omitempty" doc:"Assumed compounding frequency of an APR"`
	Quote         string     `json:"quote,omitempty" doc:"For a price, the quote asset: symbol of a coin or code of a currency"`
	QuoteCoinID   string     `json:"quoteCoinId,omitempty" doc:"For a price quoted in a coin: the coin's id"`
	Pair          string     `json:"pair,omitempty" doc:"For a price, the pair as BASE/QUOTE"`
	Basis         string     `json:"basis,omitempty" doc:"For a price, which input it is: last trade, bid, ask or mid"`
	RateUsed      float64    `json:"rateUsed,omitempty" explain:"venue-price/rateUsed/{provider}/{providerSymbol}" doc:"For a price, USD per unit of the quote asset"`
	ObservedAt    string     `json:"observedAt,omitempty" format:"date-time" doc:"Event time, by the source's clock"`
	Simulated     bool       `json:"simulated,omitempty"`
}

// Tier is the rate of a part of an amount.
type Tier struct {
	From *float64 `json:"from,omitempty" doc:"In units of the coin"`
	To   *float64 `json:"to,omitempty" doc:"Absent if there is no upper bound"`
	Rate float64  `json:"rate" doc:"Percent per year, compounded (APY)"`
}

// Countries are lists of ISO 3166 codes.
type Countries struct {
	Allow []string `json:"allow,omitempty" doc:"Only these countries"`
	Deny  []string `json:"deny,omitempty" doc:"All countries but these"`
}

// Meta describes an answer, and how old the rates in it are as a whole; each has its own time.
type Meta struct {
	query.Meta
	query.AgeMeta
	Reason string `json:"reason,omitempty" doc:"Why the list is empty"`
}

// ListMeta describes a list.
type ListMeta struct {
	Meta
	Offset    int  `json:"offset" doc:"Rows that were skipped"`
	Truncated bool `json:"truncated,omitempty" doc:"There are more: repeat the request with the offset raised by count"`
}

// noRates reports why an answer about a coin or provider that is known is empty.
const noRates = "no_rates"

func (ix *index) meta(r *query.Request, age query.Age, count int) Meta {
	m := Meta{Meta: query.Meta{Count: count, LastUpdated: query.FormatTime(ix.current.Time), Clamped: r.Clamped()}, AgeMeta: age.Meta()}
	if count == 0 {
		m.Reason = noRates
	}
	return m
}

// response is an accepted rate as it is returned.
func (e *rate) response(u *Unit, ix *index) Entry {
	return Entry{
		ID: rateID(e.Source, e.Category, e.Pool), Provider: e.Provider, ProviderName: u.nameOf(ix, e.Provider), Symbol: e.coin.symbol, Category: e.Category, Rate: e.Apy, CoinID: e.coin.id,
		ProviderSymbol: e.ProviderSymbol, Metadata: metadata(e.RateEntry), UnitType: unitPercentage, UnitSymbol: "%",
		LastUpdated: query.FormatTime(e.Heard),
	}
}

// rateID names a rate by what a source calls it, so it stays when the provider's name, its coin or anything that is reported of
// it changes. It is the key of v_rates; slugs and categories have no bar.
func rateID(source, category, pool string) string { return source + "|" + category + "|" + pool }

func metadata(e *eventsv1.RateEntry) *Metadata {
	reported := e.Said
	if reported == nil {
		reported = &eventsv1.Rate{}
	}
	m := &Metadata{
		Source: e.Source, Pool: e.Pool, Chain: e.Chain, Name: e.Name, Term: e.Term, RewardAPY: e.RewardApy, TVLUSD: e.TvlUsd,
		CollateralUSD: decimal(reported.CollateralUsd), MaxLTV: decimal(reported.MaxLtv), MinAmount: decimal(reported.MinAmount), MaxAmount: decimal(reported.MaxAmount),
		LockupDays: reported.LockupDays, NoticeDays: reported.NoticeDays, Payout: reported.Payout, Promo: reported.Promo,
		Raw: reported.Raw, RawUnit: reported.RawUnit, Compounding: reported.Compounding, ObservedAt: query.FormatTime(reported.EventTime), Simulated: e.Simulated,
	}
	if reported.Compounding != "" { // how an APY was compounded is not known
		m.APR = &e.Apr
	}
	if rule, known := schemas.RateRuleBy(e.Method); known {
		for _, tier := range reported.Tiers {
			if _, apy, err := rule.Yearly(tier.Raw, reported.RawUnit, reported.Compounding); err == nil {
				m.Tiers = append(m.Tiers, Tier{decimal(tier.From), decimal(tier.To), apy})
			}
		}
	}
	if len(reported.Served)+len(reported.Refused) > 0 {
		m.Countries = &Countries{reported.Served, reported.Refused}
	}
	return m
}

// decimal reads what the log holds as an exact decimal; nil where nothing is reported.
func decimal(text string) *float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &n
}
