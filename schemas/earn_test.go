package schemas_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestACorrectionLeavesProvidersOut(t *testing.T) {
	fixing := &eventsv1.EarnFixing{Date: "2026-01-06", Segment: schemas.EarnOverall, Median: 4, TvlWeighted: proto.Float64(40), ProviderCount: 3, TvlUsd: 3, Revision: 1, Simulated: true, Time: 1,
		Quotes: []*eventsv1.EarnQuote{
			{Provider: "aave-v3", Segment: schemas.EarnDeFi, Apy: 5, TvlUsd: 2}, {Provider: "nonsense", Segment: schemas.EarnDeFi, Apy: 110, TvlUsd: 1},
			{Provider: "okx", Segment: schemas.EarnCeFi, Apy: 4},
		}}
	want := &eventsv1.EarnFixing{Date: "2026-01-06", Segment: schemas.EarnOverall, Median: 4.5, TvlWeighted: proto.Float64(5), ProviderCount: 2, TvlUsd: 2,
		Quotes: []*eventsv1.EarnQuote{fixing.Quotes[0], fixing.Quotes[2]}, MethodologyVersion: schemas.EarnMethodology, Revision: 2, Supersedes: "2026-01-06/overall/1", Reason: "why", Simulated: true, Time: 7}
	if diff := cmp.Diff(want, schemas.CorrectEarnFixing(fixing, []string{"nonsense"}, "why", 7), protocmp.Transform()); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
	for _, without := range [][]string{nil, {"gate"}, {"aave-v3", "nonsense", "okx"}} {
		if got := schemas.CorrectEarnFixing(fixing, without, "why", 7); got != nil {
			t.Errorf("without %v: got %v, want none", without, got)
		}
	}
}

func TestRatesOfTiersThatAreNoneAreLeftOut(t *testing.T) {
	v := schemas.NewEarnVariant(&eventsv1.RateEntry{Provider: "okx", CoinId: "tether", Category: schemas.RateLending, Source: "okx-earn", Pool: "USDT", Term: "7d", Apy: 5, RewardApy: proto.Float64(2),
		Said: &eventsv1.Rate{RawUnit: "apr_fraction", Compounding: "none", Tiers: []*eventsv1.RateTier{{From: "0", To: "9", Raw: "0.08"}, {From: "9", Raw: "-"}, {From: "10", Raw: "0.01"}}}}, 60e9)
	if v.ProductId != "okx:tether:lending" || v.VariantId != "okx-earn:USDT:7d" || v.Segment != schemas.EarnCeFi {
		t.Errorf("got the names %s, %s, %s", v.ProductId, v.VariantId, v.Segment)
	}
	if len(v.Tiers) != 2 || v.BaseApy != 1 || v.MaxApy != 8 {
		t.Errorf("got tiers %v, from %g to %g, want two, from 1 to 8", v.Tiers, v.BaseApy, v.MaxApy)
	}
}

// Whatever tiers a source lists, the base is at most the rate and the greatest at least.
func TestARateLiesBetweenItsBaseAndItsGreatest(t *testing.T) {
	for _, test := range []struct {
		tiers     []string
		reward    *float64
		base, top float64
	}{
		{nil, nil, 4, 4}, {[]string{"0.08", "0.1"}, nil, 4, 10}, {[]string{"0.08", "0.01"}, nil, 1, 8}, {[]string{"0.01", "0.02"}, nil, 1, 4},
		{[]string{"0.08"}, proto.Float64(1), 3, 8}, {[]string{"0.02"}, proto.Float64(1), 2, 4}, {nil, proto.Float64(-1), 4, 5},
	} {
		reported := &eventsv1.Rate{RawUnit: "apr_fraction", Compounding: "none"}
		for _, raw := range test.tiers {
			reported.Tiers = append(reported.Tiers, &eventsv1.RateTier{Raw: raw})
		}
		v := schemas.NewEarnVariant(&eventsv1.RateEntry{Provider: "binance", CoinId: "tether", Category: schemas.RateLending, Apy: 4, RewardApy: test.reward, Said: reported}, 60e9)
		if v.BaseApy != test.base || v.MaxApy != test.top {
			t.Errorf("tiers %v: got %g to %g around %g, want %g to %g", test.tiers, v.BaseApy, v.MaxApy, v.Apy, test.base, test.top)
		}
	}
}
