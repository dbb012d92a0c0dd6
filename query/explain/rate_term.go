package explain

import (
	"cmp"
	"context"
	"slices"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// rateTerm is a number that comes with a rate. Again makes it of what the source stated; a nil result means that it has none.
type rateTerm struct {
	name, unit, formula string
	value               func(*eventsv1.RateEntry) *float64
	again               func(schemas.RateRule, *eventsv1.Rate) *float64
}

// reportedTerm is one that is taken as it is.
func reportedTerm(name, unit string, of func(*eventsv1.Rate) *float64) rateTerm {
	return rateTerm{name, unit, asReported, func(e *eventsv1.RateEntry) *float64 { return of(e.Said) }, func(_ schemas.RateRule, r *eventsv1.Rate) *float64 { return of(r) }}
}

// coinUnit is the unit of amounts of the coin: answers have the id of the coin in its place.
const coinUnit = "coin"

var rateTerms = []rateTerm{
	{"apr", percent, "the rate without compounding", func(e *eventsv1.RateEntry) *float64 { return &e.Apr }, func(rule schemas.RateRule, r *eventsv1.Rate) *float64 {
		apr, _, err := rule.Yearly(r.Raw, r.RawUnit, r.Compounding)
		if err != nil {
			return nil
		}
		return &apr
	}},
	{"rewardApy", percent, "APY of the rate - APY of the rate without what is paid in other tokens", func(e *eventsv1.RateEntry) *float64 { return e.RewardApy },
		func(rule schemas.RateRule, r *eventsv1.Rate) *float64 {
			return rule.RewardAPY(r.Raw, r.Reward, r.RawUnit, r.Compounding)
		}},
	{"tvlUsd", usd, asReported, func(e *eventsv1.RateEntry) *float64 { return e.TvlUsd }, func(_ schemas.RateRule, r *eventsv1.Rate) *float64 { return amount(r.TvlUsd) }},
	reportedTerm("collateralUsd", usd, func(r *eventsv1.Rate) *float64 { return amount(r.GetCollateralUsd()) }),
	reportedTerm("maxLtv", "", func(r *eventsv1.Rate) *float64 { return amount(r.GetMaxLtv()) }),
	reportedTerm("minAmount", coinUnit, func(r *eventsv1.Rate) *float64 { return amount(r.GetMinAmount()) }),
	reportedTerm("maxAmount", coinUnit, func(r *eventsv1.Rate) *float64 { return amount(r.GetMaxAmount()) }),
	reportedTerm("lockupDays", days, func(r *eventsv1.Rate) *float64 {
		if r == nil {
			return nil
		}
		return r.LockupDays
	}),
	reportedTerm("noticeDays", days, func(r *eventsv1.Rate) *float64 {
		if r == nil {
			return nil
		}
		return r.NoticeDays
	}),
}

func rateTermNames() []string {
	return namesOf(rateTerms, func(t rateTerm) string { return t.name })
}

// rateTerm explains a number that comes with a rate: the record of the log in which the source reports it.
func (w *work) rateTerm(ctx context.Context, name string, parts []string) (*Node, error) {
	i := slices.Index(rateTermNames(), parts[1])
	if i < 0 {
		return nil, w.nearField(name, parts, 1, rateTermNames())
	}
	term := rateTerms[i]
	e, _, err := w.entryNamed(ctx, name, append([]string{parts[0] + "/" + term.name}, parts[2:]...))
	if err != nil {
		return nil, err
	}
	value := term.value(e)
	if value == nil {
		return nil, query.NotFound("%s of %s has no %s: its source states none", e.Pool, e.Provider, term.name)
	}
	w.simulated = w.simulated || e.Simulated
	unit := term.unit
	if unit == coinUnit {
		unit = cmp.Or(e.CoinId, e.Symbol)
	}
	n := headline("rate-term/"+term.name+"/"+e.Provider+"/"+e.Category+"/"+e.Pool, value, unit, e.Time)
	n.Method = &Method{Name: "rate-term", Version: max(e.Method, 1), Formula: term.formula}
	reported, source, err := w.reportOf(ctx, e)
	if err != nil {
		return nil, err
	}
	rule, known := schemas.RateRuleBy(e.Method)
	switch {
	case reported == nil:
		n.notReproduced("the record that states it is not in the log any more")
	case !known:
		n.notReproduced("the version of its rule is newer than this service")
	default:
		n.Records = []Place{source}
		n.compare(term.again(rule, reported))
	}
	return n, nil
}
