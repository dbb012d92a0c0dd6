package explain

import (
	"cmp"
	"context"
	"slices"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// defiRatesHow is how rates make a number of DeFi.
type defiRatesHow int

const (
	// defiByWeight is their mean by what is supplied, staked or owed; of a group with no known amount, each counts once.
	defiByWeight defiRatesHow = iota
	// defiOnce counts each of them once.
	defiOnce
	// defiAmount is the sum of what is supplied, staked or owed.
	defiAmount
)

// defiRatesUse is of which category the rates are that make a number, and how.
type defiRatesUse struct {
	category string
	how      defiRatesHow
}

// ratesOf are the means of a category; none where there are none.
func ratesOf(r *eventsv1.DefiRates) *eventsv1.DefiRates {
	if r == nil {
		return &eventsv1.DefiRates{}
	}
	return r
}

// weighted writes a mean for people.
func weighted(rates, weight string) string {
	return "sum of (rate x " + weight + ") / sum of " + weight + ", USD, over " + rates
}

// countedRate is a rate that counts in DeFi, as the log has it.
type countedRate struct {
	loggedRate
	counted schemas.DefiRate
}

// ratesOfDefi reads the rates that count at the minute of the summary, in the order in which the fold adds them up.
func (w *work) ratesOfDefi(ctx context.Context, whole *wholeDefi) error {
	if whole.rates != nil {
		return nil
	}
	at := whole.summary.Time
	if w.past {
		if err := w.agedOut(ctx, schemas.TopicRates, at); err != nil {
			return err
		}
	}
	logged, err := w.loggedRates(ctx, at)
	if err != nil {
		return err
	}
	whole.rates = []countedRate{}
	for _, l := range logged {
		if counted, ok := schemas.NewDefiRate(l.entry); ok && at <= schemas.DefiRateUntil(l.entry) {
			whole.rates = append(whole.rates, countedRate{l, counted})
			whole.in.Rates = append(whole.in.Rates, counted)
		}
	}
	whole.make()
	return nil
}

// addRates gives a number the rates that it is made of, the largest first, each with what it weighs; or, where it is the sum of what they
// weigh, that alone.
func (w *work) addRates(ctx context.Context, n *Node, whole *wholeDefi, use defiRatesUse, of func(schemas.DefiRate) bool, depth int) error {
	var used []countedRate
	known := false
	for _, r := range whole.rates {
		if r.counted.Category == use.category && of(r.counted) {
			used = append(used, r)
			known = known || r.counted.TVL > 0
		}
	}
	if use.how != defiOnce && known { // one without a weight adds nothing
		used = slices.DeleteFunc(used, func(r countedRate) bool { return r.counted.TVL == 0 })
	}
	slices.SortStableFunc(used, func(a, b countedRate) int { return cmp.Compare(b.counted.TVL, a.counted.TVL) })
	for _, r := range used {
		e := r.entry
		weight := stated("weight/"+e.Provider+"/"+e.Category+"/"+e.Pool, &r.counted.TVL, usd, e.Time, r.at)
		if use.how == defiAmount {
			n.Inputs = append(n.Inputs, weight)
			continue
		}
		in := stated(rateNumber(e), &e.Apy, percent, e.Time, r.at)
		if len(n.Inputs) < shown && w.expands(depth-1) {
			var err error
			if in, err = w.rateOf(ctx, e, whole.summary.Time); err != nil {
				return err
			}
			in.Records = append(in.Records, r.at)
		}
		if use.how == defiByWeight && known {
			in.Inputs = append(in.Inputs, weight)
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(use.how == defiAmount)
	return nil
}
