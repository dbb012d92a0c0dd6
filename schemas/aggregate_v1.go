package schemas

import (
	"math"
	"slices"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// This file is frozen: records state that they were made by version 1, and testdata/aggregate/v1.json holds what it
// gives to the last bit. A rule that is to change becomes another version.

// AggregateV1 is version 1 of the aggregation: a market counts in full until two minutes after it was last received.
// It is called as Aggregate is.
func AggregateV1(inputs []*eventsv1.PriceInput, now int64) (Aggregated, []*eventsv1.PriceInput) {
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
			valueV1(in, now)
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
		// Two inputs far apart are equally far from their mean: neither can be believed.
		out.Reason = ReasonNoConsensus
		return out, inputs
	}
	out.Price = median(prices)
	out.Min, out.Max = prices[0], prices[len(prices)-1]
	describeV1(&out, votes, inputs, prices[:0], providers, now)
	return out, inputs
}

// valueV1 sets what one market contributes, or why it contributes nothing. The last price is held inside the
// spread: a print of a minute ago must not count against the quotes of this second.
func valueV1(in *eventsv1.PriceInput, now int64) {
	in.Value, in.PriceUsd, in.Accepted, in.Reason, in.Basis, in.DeviationPct = 0, 0, false, "", "", 0
	hasLast := in.Last > 0 && receivedLately(in.LastHeard, now)
	usable := quoteUsable(in, now, int64(FreshFor))
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

// describeV1 adds what is published beside the price: confidence, score, volume and source. The interval
// follows Pyth's aggregation: each vote counts as three, its value and its value plus and minus
// its own uncertainty, and the quartiles of all give the width
// (https://docs.pyth.network/price-feeds/how-pyth-works/price-aggregation).
func describeV1(out *Aggregated, votes, inputs []*eventsv1.PriceInput, scratch []float64, providers int, now int64) {
	var nearest *eventsv1.PriceInput
	for _, in := range votes {
		if !in.Accepted {
			continue
		}
		half := in.Range60 * in.Rate / 2
		if quoteUsable(in, now, int64(FreshFor)) {
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
