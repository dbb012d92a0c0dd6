package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// summedRates are the statistics of what providers report of a coin in a category.
type summedRates struct {
	views.RateSum
	best             float64
	providers, rates int
}

// rateStatistic is one of them; count means that it is a number of something.
type rateStatistic struct {
	name, formula string
	count         bool
	value         func(summedRates) float64
}

var rateStatistics = []rateStatistic{
	{"minRate", "lowest of the rates that count", false, func(s summedRates) float64 { return s.Min }},
	{"maxRate", "highest of the rates that count", false, func(s summedRates) float64 { return s.Max }},
	{"averageRate", "mean of the rates that count, added up from the lowest on", false, func(s summedRates) float64 { return s.Mean }},
	{"medianRate", "median of the rates that count", false, func(s summedRates) float64 { return s.Median }},
	{bestRate, "highest of the rates that count, of borrowing the lowest", false, func(s summedRates) float64 { return s.best }},
	{"providerCount", "number of providers of the rates that count", true, func(s summedRates) float64 { return float64(s.providers) }},
	{"rateCount", "number of rates that count", true, func(s summedRates) float64 { return float64(s.rates) }},
}

// categoryPrice is the category of prices, in USD, of which each accepted venue has one.
const categoryPrice = "price"

// bestRate is the statistic that prices have none of.
const bestRate = "bestRate"

func rateStatisticNames() []string {
	return namesOf(rateStatistics, func(s rateStatistic) string { return s.name })
}

// rateStatistic explains a statistic of the rates of a coin in a category.
func (w *work) rateStatistic(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	i := slices.IndexFunc(rateStatistics, func(s rateStatistic) bool { return s.name == parts[3] })
	categories := append(slices.Clone(schemas.RateCategories), categoryPrice)
	switch {
	case i < 0 || parts[2] == categoryPrice && parts[3] == bestRate:
		return nil, w.nearField(name, parts, 3, slices.DeleteFunc(rateStatisticNames(), func(s string) bool { return s == parts[3] }))
	case !slices.Contains(categories, parts[2]):
		return nil, w.nearField(name, parts, 2, categories)
	}
	of := rateStatistics[i]
	if parts[2] == categoryPrice {
		return w.priceStatistic(ctx, name, parts, of)
	}
	coinID := parts[1] // some coins have rates and are in no list of coins
	if coin, ok := w.snapshot.Find(coinID); ok {
		coinID = coin.ID
	}
	n, err := w.statisticOf(ctx, of, parts[2], func(e *eventsv1.RateEntry) bool { return e.CoinId == coinID }, depth)
	if n == nil && err == nil {
		return nil, query.NotFound("nobody reports a rate of %s in %s that counts", strings.ToValidUTF8(coinID, "�"), parts[2])
	}
	if err != nil {
		return nil, err
	}
	n.Number = "rate-statistics/" + coinID + "/" + parts[2] + "/" + of.name
	return n, nil
}

// statisticOf explains a statistic of the rates in a category that count and that takes chooses, without its name; nil where there is none.
func (w *work) statisticOf(ctx context.Context, of rateStatistic, category string, takes func(*eventsv1.RateEntry) bool, depth int) (*Node, error) {
	counted, last, at := []*eventsv1.RateEntry(nil), schemas.Minute(w.asOf.UnixNano()), w.asOf.UnixNano()
	if !w.past {
		current := w.Yields.Current(w.now)
		if counted, last, at = current.Counted, current.Time, w.now.UnixNano(); last == 0 {
			return nil, query.Starting("no minute of rates was folded yet")
		}
	} else if err := w.agedOut(ctx, schemas.TopicRates, last); err != nil {
		return nil, err
	}
	logged, err := w.loggedRates(ctx, last)
	if err != nil {
		return nil, err
	}
	logged = slices.DeleteFunc(slices.Clone(logged), func(l loggedRate) bool {
		return !takes(l.entry) || l.entry.Category != category || !views.RateCounts(l.entry, at)
	})
	again := make([]*eventsv1.RateEntry, len(logged))
	for i, l := range logged {
		again[i] = l.entry
	}
	if w.past { // what was served is what the log has
		counted = again
	}
	served, ok := sumRates(counted, category, takes)
	if !ok {
		return nil, nil
	}
	n := of.node(served, percent, last)
	if recomputed, ok := sumRates(again, category, takes); w.past {
		n.Note = "worked out of the rates that the log has as of then, which is all that there is to compare with"
	} else if ok {
		n.compare(known(of.value(recomputed)))
	} else {
		n.notReproduced("the log no longer has the rates")
	}
	for _, l := range logged {
		w.simulated = w.simulated || l.entry.Simulated
		in := stated(rateNumber(l.entry), &l.entry.Apy, percent, l.entry.Time, l.at)
		if len(n.Inputs) < shown && w.expands(depth-1) {
			if in, err = w.rateOf(ctx, l.entry, at); err != nil {
				return nil, err
			}
			in.Records = append(in.Records, l.at)
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(false)
	return n, nil
}

// sumRates sums up the rates in a category that takes chooses; false where there is none.
func sumRates(entries []*eventsv1.RateEntry, category string, takes func(*eventsv1.RateEntry) bool) (s summedRates, ok bool) {
	var rates []float64
	providers := map[string]bool{}
	for _, e := range entries {
		if e.Category == category && takes(e) {
			rates = append(rates, e.Apy)
			providers[e.Provider] = true
		}
	}
	if len(rates) == 0 {
		return s, false
	}
	s = summedRates{RateSum: views.SumRates(rates), providers: len(providers), rates: len(rates)}
	if s.best = s.Max; category == schemas.RateBorrowing {
		s.best = s.Min
	}
	return s, true
}

// node is the statistic without its name.
func (of rateStatistic) node(s summedRates, unit string, at int64) *Node {
	if of.count {
		unit = ""
	}
	value := of.value(s)
	n := headline("", &value, unit, at)
	n.Method = &Method{Name: "rate-statistics", Version: 1, Formula: of.formula}
	return n
}

// priceStatistic explains a statistic of the prices of the providers of a coin: those that its newest price was made of.
func (w *work) priceStatistic(ctx context.Context, name string, parts []string, of rateStatistic) (*Node, error) {
	coin, err := w.coin(name, parts, 1)
	if err != nil {
		return nil, err
	}
	e := w.Prices.Entry(coin.Own)
	if w.past {
		entries, err := w.Prices.AsOf(ctx, w.History, []schemas.Coin{coin.Own}, w.asOf)
		if err != nil {
			return nil, query.FaultOfPast(err, w.asOf)
		}
		e = entries[coin.ID]
	}
	if e == nil {
		return nil, query.NotFound("no provider of ours has a price of %s", coin.ID)
	}
	p := e.Latest
	accepted := func(inputs []*eventsv1.PriceInput) (s summedRates, ok bool) {
		var prices []float64
		for _, in := range inputs {
			if in.Accepted {
				prices = append(prices, in.PriceUsd)
			}
		}
		if len(prices) == 0 {
			return s, false
		}
		return summedRates{RateSum: views.SumRates(prices), providers: len(prices), rates: len(prices)}, true
	}
	served, ok := accepted(p.Inputs)
	if !ok {
		return nil, query.NotFound("no price of a provider of %s counts", coin.ID)
	}
	w.simulated = w.simulated || p.Simulated
	n := of.node(served, usd, p.Time)
	n.Number = "rate-statistics/" + coin.ID + "/" + categoryPrice + "/" + of.name
	_, considered, isKnown := aggregatedAgain(p)
	if recomputed, ok := accepted(considered); isKnown && ok {
		n.compare(known(of.value(recomputed)))
	} else {
		n.notReproduced(fmt.Sprintf("version %d of the rule of prices is newer than this service", p.Method))
	}
	for _, in := range considered {
		if in.Accepted {
			n.Inputs = append(n.Inputs, w.vote(ctx, in, nil))
		}
	}
	n.fewer(false)
	return n, nil
}
