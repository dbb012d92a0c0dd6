package schemas

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// AggregateVersion changes whenever Aggregate could give another result for the same inputs.
const AggregateVersion = 1

// Bounds of the aggregation rule.
const (
	// FreshFor is how long a market counts after it was last heard.
	FreshFor = 120 * time.Second
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
	// BasisMid is the mean of bid and ask, because no trade was heard lately.
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

// Aggregate is the one rule that turns the markets of a coin into its price: each provider votes
// once, with its best fresh market; the price is the median of the votes that lie within
// MaxDeviation of the median of all. It is used to publish, to answer for a region and to
// explain, so all three agree.
//
// It sorts inputs in place by provider and preference and fills their Value, PriceUsd, Accepted,
// Reason, DeviationPct and Basis; markets that are not fresh at now (Unix nanoseconds) are
// removed from the returned slice. The result depends on nothing but inputs and now.
func Aggregate(inputs []*eventsv1.PriceInput, now int64) (Aggregated, []*eventsv1.PriceInput) {
	inputs = slices.DeleteFunc(inputs, func(in *eventsv1.PriceInput) bool { return !Fresh(in, now) })
	slices.SortFunc(inputs, compareInputs)
	var out Aggregated
	if len(inputs) == 0 {
		out.Reason = ReasonNoFreshInputs
		return out, inputs
	}
	votes := make([]*eventsv1.PriceInput, 0, len(inputs))
	providers := 0
	for i := 0; i < len(inputs); {
		j := i
		voted := false
		for ; j < len(inputs) && inputs[j].Provider == inputs[i].Provider; j++ {
			in := inputs[j]
			value(in, now)
			switch {
			case in.Reason != "":
			case voted:
				in.Reason = InputOtherMarket
			default:
				voted = true
				votes = append(votes, in)
			}
		}
		providers++
		i = j
	}
	if len(votes) == 0 {
		out.Rejected = providers
		out.Reason = ReasonNoConsensus
		return out, inputs
	}
	prices := make([]float64, 0, 3*len(votes))
	for _, in := range votes {
		prices = append(prices, in.PriceUsd)
	}
	out.Median0 = median(prices)
	prices = prices[:0]
	for _, in := range votes {
		deviation := (in.PriceUsd - out.Median0) / out.Median0
		in.DeviationPct = deviation * 100
		if math.Abs(deviation) > MaxDeviation {
			in.Reason = InputOutlier
			continue
		}
		in.Accepted = true
		prices = append(prices, in.PriceUsd)
	}
	out.Accepted = len(prices)
	out.Rejected = providers - out.Accepted
	if out.Accepted == 0 {
		// Two inputs far apart stand equally far from their mean: neither can be believed.
		out.Reason = ReasonNoConsensus
		return out, inputs
	}
	out.Price = median(prices)
	out.Min, out.Max = prices[0], prices[len(prices)-1]
	describe(&out, votes, inputs, prices[:0], providers, now)
	return out, inputs
}

// Fresh says whether a market was heard at most FreshFor before now (Unix nanoseconds).
func Fresh(in *eventsv1.PriceInput, now int64) bool {
	return heardLately(in.LastHeard, now) || heardLately(in.QuoteHeard, now)
}

func heardLately(heard, now int64) bool { return heard != 0 && now-heard <= int64(FreshFor) }

// value sets what one market says, or why it says nothing. The last price is held inside the
// spread: a print of a minute ago must not stand against the quotes of this second.
func value(in *eventsv1.PriceInput, now int64) {
	in.Value, in.PriceUsd, in.Accepted, in.Reason, in.Basis, in.DeviationPct = 0, 0, false, "", "", 0
	hasLast := in.Last > 0 && heardLately(in.LastHeard, now)
	usable := quoteUsable(in, now)
	switch {
	case usable && hasLast && in.Last < in.Bid:
		in.Value, in.Basis = in.Bid, BasisBid
	case usable && hasLast && in.Last > in.Ask:
		in.Value, in.Basis = in.Ask, BasisAsk
	case hasLast:
		in.Value, in.Basis = in.Last, BasisLast
	case usable:
		in.Value, in.Basis = mid(in), BasisMid
	case in.Ask > 0 && in.Bid > in.Ask:
		in.Reason = InputCrossed
		return
	default:
		in.Reason = InputWide
		return
	}
	if in.Unpriced || !(in.Rate > 0) {
		in.Reason = InputNoRate
		return
	}
	in.PriceUsd = in.Value * in.Rate
}

// quoteUsable says whether the quote is fresh, uncrossed and no wider than MaxSpread.
func quoteUsable(in *eventsv1.PriceInput, now int64) bool {
	return in.Bid > 0 && in.Ask >= in.Bid && heardLately(in.QuoteHeard, now) &&
		in.Ask-in.Bid <= MaxSpread*mid(in)
}

func mid(in *eventsv1.PriceInput) float64 { return (in.Bid + in.Ask) / 2 }

// describe adds what is told beside the price: confidence, score, volume and source. The interval
// follows Pyth's aggregation: each vote counts as three, its value and its value plus and minus
// its own uncertainty, and the quartiles of all give the width
// (https://docs.pyth.network/price-feeds/how-pyth-works/price-aggregation).
func describe(out *Aggregated, votes, inputs []*eventsv1.PriceInput, scratch []float64, providers int, now int64) {
	var nearest *eventsv1.PriceInput
	for _, in := range votes {
		if !in.Accepted {
			continue
		}
		half := in.Range60 * in.Rate / 2
		if quoteUsable(in, now) {
			half = (in.Ask - in.Bid) * in.Rate / 2
		}
		half = max(half, in.PriceUsd*minConfidence)
		scratch = append(scratch, in.PriceUsd-half, in.PriceUsd, in.PriceUsd+half)
		if nearest == nil || closer(in, nearest, out.Price) {
			nearest = in
		}
	}
	slices.Sort(scratch)
	out.Confidence = max(out.Price-nearestRank(scratch, 0.25), nearestRank(scratch, 0.75)-out.Price)
	out.Score = min(1, float64(out.Accepted)/fullScoreAt) *
		float64(out.Accepted) / float64(providers) *
		max(0, 1-100*out.Confidence/out.Price)
	out.Source = nearest.Provider
	out.Volume24h = acceptedVolume(inputs)
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
