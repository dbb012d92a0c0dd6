package schemas

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// AggregateVersion is the version of Aggregate. Each version is a function of its own that never changes once records
// were made by it, so that they can be made again: AggregateBy finds it.
const AggregateVersion = 2

// Bounds of the aggregation rule.
const (
	// FreshFor is how long a market counts after it was last received.
	FreshFor = 120 * time.Second
	// PriceRepeat is how often an unchanged price is published again, in log time: its second shows when it was
	// last looked at. A minute is a whole number of them, so that each minute begins with a price.
	PriceRepeat = 20 * time.Second
	// MaxDeviation is how far an input may lie from the first median, as a fraction of it;
	// exactly this much still counts.
	MaxDeviation = 0.5
	// MaxSpread is the widest quote that can hold a last price, as a fraction of its mid.
	MaxSpread = 0.10
	// minConfidence is the least half width of a vote, as a fraction of its price: 1 bp.
	minConfidence = 1e-4
	// fullScoreAt is the number of accepted providers from which their number no longer lowers
	// the score.
	fullScoreAt = 5
)

// Why an input did not count, beside the flags of its tick.
const (
	// InputOutlier lies more than MaxDeviation from the first median.
	InputOutlier = "outlier"
	// InputOtherMarket is a further market of a provider that already has one vote.
	InputOtherMarket = "other_market"
	// InputNoRate has a quote that could not be converted to USD.
	InputNoRate = "no_rate"
	// InputCrossed has a bid above its ask and no fresh last price.
	InputCrossed = "crossed"
	// InputSilent was not received for longer than its own pace allows.
	InputSilent = "silent"
	// InputExcluded is left out by an operator's correction, whatever version of the rule is applied to the others.
	InputExcluded = "excluded"
	// InputWide has a quote wider than MaxSpread, or one side of it only, and no fresh last price.
	InputWide = "wide"
)

// Why a price record repeats the last good price instead of a new one.
const (
	ReasonNoFreshInputs = "no_fresh_inputs"
	ReasonNoConsensus   = "no_consensus"
)

// What the value of a market was taken from.
const (
	// BasisLast is the last traded price, inside the spread or without a usable quote.
	BasisLast = "last"
	// BasisBid is the bid, because the last price lay below it; BasisAsk likewise above.
	BasisBid = "bid"
	BasisAsk = "ask"
	// BasisMid is the mean of bid and ask, because no trade was received lately.
	BasisMid = "mid"
)

// Aggregated is what Aggregate makes of one coin's markets. Prices are in USD. Score is 0 to 1.
type Aggregated struct {
	Price, Median0, Min, Max float64
	Confidence, Score        float64
	Volume24h                float64
	Accepted, Rejected       int
	Source                   string
	// Reason is empty, ReasonNoFreshInputs or ReasonNoConsensus; then there is no price.
	Reason string
}

// Equals compares with what was published, to the last digit.
func (r Aggregated) Equals(p *eventsv1.Price) bool {
	return r.Reason == p.Reason && r.Price == p.Price && r.Median0 == p.Median0 && r.Min == p.Min && r.Max == p.Max &&
		r.Confidence == p.Confidence && r.Score == p.Score && r.Volume24h == p.Volume24H && r.Source == p.Source &&
		r.Accepted == int(p.Accepted) && r.Rejected == int(p.Rejected)
}

// Aggregate is the one rule that turns the markets of a coin into its price: each provider votes
// once, with its best fresh market; the price is the median of the votes that lie within
// MaxDeviation of the median of all. It is used to publish, to answer for a region and to
// explain, so all three agree. This is its current version, AggregateVersion.
//
// It sorts inputs in place by provider and preference and fills their Value, PriceUsd, Accepted,
// Reason, DeviationPct and Basis; markets that are not fresh at now (Unix nanoseconds) are
// removed from the returned slice. The result depends on nothing but inputs and now.
func Aggregate(inputs []*eventsv1.PriceInput, now int64) (Aggregated, []*eventsv1.PriceInput) {
	return withoutExcluded(aggregateV2, valueV2, inputs, now)
}

// AggregateBy is Aggregate by the version that a record says it was made with, 0 for 1; false where this binary does not
// know the version, since a newer one made the record.
func AggregateBy(version uint32, inputs []*eventsv1.PriceInput, now int64) (out Aggregated, considered []*eventsv1.PriceInput, known bool) {
	switch version {
	case 0, 1:
		out, considered = withoutExcluded(AggregateV1, valueV1, inputs, now)
	case 2:
		out, considered = withoutExcluded(aggregateV2, valueV2, inputs, now)
	default:
		return out, inputs, false
	}
	return out, considered, true
}

// withoutExcluded applies a version of the rule to the inputs that no correction excludes. The others, which have the reason InputExcluded
// before, are listed with what they would have contributed, and their providers count among the rejected; the score and the volume do
// not depend on them. Without any it is the rule itself.
func withoutExcluded(rule func([]*eventsv1.PriceInput, int64) (Aggregated, []*eventsv1.PriceInput), value func(*eventsv1.PriceInput, int64),
	inputs []*eventsv1.PriceInput, now int64) (Aggregated, []*eventsv1.PriceInput) {
	isExcluded := func(in *eventsv1.PriceInput) bool { return in.Reason == InputExcluded }
	if !slices.ContainsFunc(inputs, isExcluded) {
		return rule(inputs, now)
	}
	var excluded, others []*eventsv1.PriceInput
	for _, in := range inputs {
		switch {
		case !isExcluded(in):
			others = append(others, in)
		case Fresh(in, now):
			excluded = append(excluded, in)
		}
	}
	out, considered := rule(others, now)
	provided := map[string]bool{}
	for _, in := range considered {
		provided[in.Provider] = true
	}
	for _, in := range excluded {
		value(in, now)
		if in.Reason == "" && out.Median0 > 0 {
			in.DeviationPct = (in.PriceUsd - out.Median0) / out.Median0 * 100
		}
		in.Reason = InputExcluded
		if !provided[in.Provider] {
			provided[in.Provider] = true
			out.Rejected++
		}
		considered = append(considered, in)
	}
	slices.SortFunc(considered, compareInputs)
	return out, considered
}

// Fresh reports whether a market was received at most FreshFor before now (Unix nanoseconds).
func Fresh(in *eventsv1.PriceInput, now int64) bool {
	return receivedLately(in.LastHeard, now) || receivedLately(in.QuoteHeard, now)
}

// QuoteAged reports whether the bid and ask of an input were too old to count in a price that a version of the aggregation (see
// AggregateBy) made at an instant (Unix nanoseconds).
func QuoteAged(version uint32, in *eventsv1.PriceInput, made int64) bool {
	longest := int64(FreshFor)
	if version >= 2 {
		longest = span(in)
	}
	return in.QuoteHeard == 0 || made-in.QuoteHeard > longest
}

func receivedLately(receivedAt, now int64) bool {
	return receivedAt != 0 && now-receivedAt <= int64(FreshFor)
}

// quoteUsable reports whether the quote was received within a span (nanoseconds) before now, is uncrossed and no wider than MaxSpread.
func quoteUsable(in *eventsv1.PriceInput, now, span int64) bool {
	return in.Bid > 0 && in.Ask >= in.Bid && in.QuoteHeard != 0 && now-in.QuoteHeard <= span &&
		in.Ask-in.Bid <= MaxSpread*mid(in)
}

func mid(in *eventsv1.PriceInput) float64 { return (in.Bid + in.Ask) / 2 }

// MarketValue is what a market is worth in its quote asset: the value that the rule gave it; without one, as where its quote could not be converted,
// the last trade price, or the mid; 0 where it has stated neither.
func MarketValue(in *eventsv1.PriceInput) float64 {
	switch {
	case in.Value > 0:
		return in.Value
	case in.Last > 0:
		return in.Last
	case in.Bid > 0 && in.Ask > 0:
		return mid(in)
	}
	return 0
}

// acceptedVolume sums the 24 h volumes in USD of all fresh markets of the accepted providers.
// Inputs are grouped by provider.
func acceptedVolume(inputs []*eventsv1.PriceInput) float64 {
	total := 0.0
	for i := 0; i < len(inputs); {
		j, ok, sum := i, false, 0.0
		for ; j < len(inputs) && inputs[j].Provider == inputs[i].Provider; j++ {
			ok = ok || inputs[j].Accepted
			sum += inputs[j].Volume24H
		}
		if ok {
			total += sum
		}
		i = j
	}
	return total
}

// closer orders by distance from the price, then larger volume, then slug.
func closer(a, b *eventsv1.PriceInput, price float64) bool {
	da, db := math.Abs(a.PriceUsd-price), math.Abs(b.PriceUsd-price)
	switch {
	case da != db:
		return da < db
	case a.Volume24H != b.Volume24H:
		return a.Volume24H > b.Volume24H
	default:
		return a.Provider < b.Provider
	}
}

// median sorts values in place and returns the middle one, or the mean of the middle two.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// nearestRank is the smallest of the sorted values that at least the fraction q of all do not exceed.
func nearestRank(sorted []float64, q float64) float64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// quotePreference orders a provider's markets: the fewer conversions, the better.
var quotePreference = []string{"USD", "tether", "usd-coin", "EUR", "GBP", "bitcoin", "ethereum"}

// QuotePreference lists the quote assets of the first places of QuoteRank.
func QuotePreference() []string { return slices.Clone(quotePreference) }

// QuoteRank is the place of a quote asset (coin id or currency code) in the order in which a
// provider's markets are preferred; quotes that are not named there share the last place.
func QuoteRank(quoteID string) int {
	for i, q := range quotePreference {
		if q == quoteID {
			return i
		}
	}
	return len(quotePreference)
}

func compareInputs(a, b *eventsv1.PriceInput) int {
	if c := strings.Compare(a.Provider, b.Provider); c != 0 {
		return c
	}
	return compareMarkets(a.QuoteId, a.Symbol, b.QuoteId, b.Symbol)
}

// compareMarkets orders the markets of one provider and coin, by quote and symbol, the best first.
func compareMarkets(quoteA, symbolA, quoteB, symbolB string) int {
	if c := QuoteRank(quoteA) - QuoteRank(quoteB); c != 0 {
		return c
	}
	if quoteA != quoteB {
		// By letter, not by case: currency codes are upper case and coin ids lower.
		return cmp.Or(strings.Compare(strings.ToLower(quoteA), strings.ToLower(quoteB)), strings.Compare(quoteA, quoteB))
	}
	return strings.Compare(symbolA, symbolB)
}
