package schemas_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// at is the second that the tests evaluate in.
var at = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC).UnixNano()

func ago(d time.Duration) int64 { return at - int64(d) }

// traded is a market in USD with a last price that was just received.
func traded(provider string, last float64) *eventsv1.PriceInput {
	return &eventsv1.PriceInput{Provider: provider, Symbol: "BTC-USD", QuoteId: schemas.USD, Last: last, LastHeard: at, Rate: 1}
}

func quoted(provider string, bid, ask float64) *eventsv1.PriceInput {
	return &eventsv1.PriceInput{Provider: provider, Symbol: "BTC-USD", QuoteId: schemas.USD, Bid: bid, Ask: ask, QuoteHeard: at, Rate: 1}
}

func TestMedianOfOneVoteEach(t *testing.T) {
	for name, test := range map[string]struct {
		prices []float64
		want   schemas.Aggregated // price, median0, min, max, counts and reason are compared
	}{
		"one":                          {[]float64{100}, schemas.Aggregated{Price: 100, Median0: 100, Min: 100, Max: 100, Accepted: 1}},
		"two: the mean":                {[]float64{100, 103}, schemas.Aggregated{Price: 101.5, Median0: 101.5, Min: 100, Max: 103, Accepted: 2}},
		"three: the middle one":        {[]float64{100, 103, 101}, schemas.Aggregated{Price: 101, Median0: 101, Min: 100, Max: 103, Accepted: 3}},
		"four: the middle two's mean":  {[]float64{1, 2, 2.5, 2.6}, schemas.Aggregated{Price: 2.5, Median0: 2.25, Min: 2, Max: 2.6, Accepted: 3, Rejected: 1}},
		"exactly 50 % off stays":       {[]float64{100, 100, 150, 50, 100}, schemas.Aggregated{Price: 100, Median0: 100, Min: 50, Max: 150, Accepted: 5}},
		"more does not":                {[]float64{100, 100, 150.01, 49.99, 100}, schemas.Aggregated{Price: 100, Median0: 100, Min: 100, Max: 100, Accepted: 3, Rejected: 2}},
		"outliers from both sides":     {[]float64{1, 100, 101, 102, 9000}, schemas.Aggregated{Price: 101, Median0: 101, Min: 100, Max: 102, Accepted: 3, Rejected: 2}},
		"two far apart: none":          {[]float64{1, 10}, schemas.Aggregated{Median0: 5.5, Rejected: 2, Reason: schemas.ReasonNoConsensus}},
		"four in two camps: none":      {[]float64{1, 1, 10, 10}, schemas.Aggregated{Median0: 5.5, Rejected: 4, Reason: schemas.ReasonNoConsensus}},
		"three with an odd one: two":   {[]float64{1, 10, 10}, schemas.Aggregated{Price: 10, Median0: 10, Min: 10, Max: 10, Accepted: 2, Rejected: 1}},
		"the smallest price there is":  {[]float64{1e-18, 1e-18, 1.5e-18}, schemas.Aggregated{Price: 1e-18, Median0: 1e-18, Min: 1e-18, Max: 1.5e-18, Accepted: 3}},
		"the largest price there is":   {[]float64{1e12, 1e12}, schemas.Aggregated{Price: 1e12, Median0: 1e12, Min: 1e12, Max: 1e12, Accepted: 2}},
		"the second median is another": {[]float64{40, 50, 98, 102, 104, 400}, schemas.Aggregated{Price: 100, Median0: 100, Min: 50, Max: 104, Accepted: 4, Rejected: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var inputs []*eventsv1.PriceInput
			for i, p := range test.prices {
				inputs = append(inputs, traded(string(rune('a'+i)), p))
			}
			got, _ := schemas.Aggregate(inputs, at)
			got.Confidence, got.Score, got.Source = 0, 0, ""
			if got != test.want {
				t.Errorf("Aggregate(%v):\ngot  %+v\nwant %+v", test.prices, got, test.want)
			}
		})
	}
}

func TestNoInputs(t *testing.T) {
	got, inputs := schemas.Aggregate(nil, at)
	if want := (schemas.Aggregated{Reason: schemas.ReasonNoFreshInputs}); got != want || len(inputs) != 0 {
		t.Errorf("got %+v and %d inputs, want %+v and none", got, len(inputs), want)
	}
}

// The value of a market is the last price held inside the spread.
func TestValueOfAMarket(t *testing.T) {
	both := func(bid, ask, last float64) *eventsv1.PriceInput {
		in := quoted("a", bid, ask)
		in.Last, in.LastHeard = last, at
		return in
	}
	for name, test := range map[string]struct {
		in     *eventsv1.PriceInput
		value  float64
		basis  string
		reason string
	}{
		"last inside":                 {both(99, 101, 100.5), 100.5, schemas.BasisLast, ""},
		"last on the bid":             {both(99, 101, 99), 99, schemas.BasisLast, ""},
		"last below":                  {both(99, 101, 90), 99, schemas.BasisBid, ""},
		"last above":                  {both(99, 101, 110), 101, schemas.BasisAsk, ""},
		"no quote":                    {traded("a", 90), 90, schemas.BasisLast, ""},
		"no last":                     {quoted("a", 99, 102), 100.5, schemas.BasisMid, ""},
		"exactly 10 % wide holds":     {both(95, 105, 90), 95, schemas.BasisBid, ""},
		"wider holds nothing":         {both(94.9, 105, 90), 90, schemas.BasisLast, ""},
		"crossed holds nothing":       {both(101, 99, 90), 90, schemas.BasisLast, ""},
		"locked holds":                {both(100, 100, 90), 100, schemas.BasisBid, ""},
		"one side holds nothing":      {both(99, 0, 90), 90, schemas.BasisLast, ""},
		"wide and nothing else":       {quoted("a", 90, 110), 0, "", schemas.InputWide},
		"one side and nothing else":   {quoted("a", 99, 0), 0, "", schemas.InputWide},
		"crossed and nothing else":    {quoted("a", 101, 100), 0, "", schemas.InputCrossed},
		"quote heard too long ago":    {aged(both(99, 101, 90), ago(121*time.Second), at), 90, schemas.BasisLast, ""},
		"last heard too long ago":     {aged(both(99, 102, 90), at, ago(121*time.Second)), 100.5, schemas.BasisMid, ""},
		"last heard just long enough": {aged(both(99, 101, 90), at, ago(120*time.Second)), 99, schemas.BasisBid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, inputs := schemas.Aggregate([]*eventsv1.PriceInput{test.in}, at)
			if len(inputs) != 1 {
				t.Fatalf("got %d inputs, want the one", len(inputs))
			}
			if got := inputs[0]; got.Value != test.value || got.Basis != test.basis || got.Reason != test.reason {
				t.Errorf("got %v by %q %q, want %v by %q %q", got.Value, got.Basis, got.Reason, test.value, test.basis, test.reason)
			}
		})
	}
}

func aged(in *eventsv1.PriceInput, quote, last int64) *eventsv1.PriceInput {
	in.QuoteHeard, in.LastHeard = quote, last
	return in
}

func TestMarketsThatAreNotFreshAreLeftOut(t *testing.T) {
	kept, left := traded("a", 100), traded("b", 200)
	kept.LastHeard, left.LastHeard = ago(schemas.FreshFor), ago(schemas.FreshFor)-1
	got, inputs := schemas.Aggregate([]*eventsv1.PriceInput{left, kept}, at)
	if len(inputs) != 1 || inputs[0] != kept || got.Price != 100 {
		t.Errorf("got price %v of %v, want 100 of the market heard exactly 120 s ago", got.Price, inputs)
	}
}

// A rate that is missing, zero or no number refuses the input: nothing is worth 1 by default.
func TestNoRateNoVote(t *testing.T) {
	for name, in := range map[string]*eventsv1.PriceInput{
		"flagged":     {Rate: 1, Unpriced: true},
		"zero":        {Rate: 0},
		"negative":    {Rate: -1},
		"not a value": {Rate: math.NaN()},
	} {
		in.Provider, in.Symbol, in.QuoteId, in.Last, in.LastHeard = "a", "BTC-USDT", "tether", 100, at
		got, inputs := schemas.Aggregate([]*eventsv1.PriceInput{in, traded("b", 100)}, at)
		if inputs[0].Reason != schemas.InputNoRate || inputs[0].Accepted || got.Accepted != 1 || got.Rejected != 1 {
			t.Errorf("%s: got %v and %+v, want it refused with %q", name, inputs[0], got, schemas.InputNoRate)
		}
	}
}

// Confidence and score can be computed by anyone from the inputs: the votes are 99, 100, 101 by a
// quote of half width 1, 100.5 to 103.5 by a range of 3, and 102 ± 1 bp.
func TestConfidenceAndScore(t *testing.T) {
	quote := quoted("a", 99, 101)
	ranged := traded("b", 102)
	ranged.Range60 = 3
	bare := traded("c", 102)
	refused := traded("d", 1000)
	got, _ := schemas.Aggregate([]*eventsv1.PriceInput{refused, bare, ranged, quote}, at)
	// Sorted: 99 100 100.5 101 101.9898 102 102 102.0102 103.5; ranks ceil(2.25) and ceil(6.75).
	if got.Price != 102 {
		t.Fatalf("got price %v, want 102", got.Price)
	}
	if want := 102 - 100.5; got.Confidence != want {
		t.Errorf("got confidence %v, want %v", got.Confidence, want)
	}
	// Three of five wanted, three of four accepted, and 1.5 in 102 is more than 1 %.
	if got.Score != 0 {
		t.Errorf("got score %v, want 0 where the interval is wider than 1 %%", got.Score)
	}
	narrow := []*eventsv1.PriceInput{traded("a", 100), traded("b", 100), traded("c", 100)}
	got, _ = schemas.Aggregate(narrow, at)
	if want := 3.0 / 5 * (1 - 100*got.Confidence/100); math.Abs(got.Score-want) > 1e-12 || math.Abs(got.Confidence-0.01) > 1e-12 {
		t.Errorf("three that agree: got confidence %v and score %v, want 0.01 (1 bp) and %v", got.Confidence, got.Score, want)
	}
}

// The source is the accepted provider nearest to the price, then that with more volume, then by name.
func TestSource(t *testing.T) {
	larger := traded("z", 101)
	larger.Volume24H = 5
	for name, test := range map[string]struct {
		inputs []*eventsv1.PriceInput
		want   string
	}{
		"nearest":     {[]*eventsv1.PriceInput{traded("a", 90), traded("b", 101), traded("c", 102)}, "b"},
		"more volume": {[]*eventsv1.PriceInput{traded("a", 99), larger}, "z"},
		"by name":     {[]*eventsv1.PriceInput{traded("b", 101), traded("a", 99)}, "a"},
		"accepted":    {[]*eventsv1.PriceInput{traded("a", 100), traded("b", 100), traded("0", 1000)}, "a"},
	} {
		if got, _ := schemas.Aggregate(test.inputs, at); got.Source != test.want {
			t.Errorf("%s: got source %q, want %q", name, got.Source, test.want)
		}
	}
}

// inputsGen draws the markets of a coin as they may really be: several of one provider, stale,
// crossed, wide and one-sided ones, missing rates, outliers.
func inputsGen() *rapid.Generator[[]*eventsv1.PriceInput] {
	quotes := []string{schemas.USD, "tether", "usd-coin", "EUR", "GBP", "bitcoin", "ethereum", "dai", "JPY", ""}
	return rapid.Custom(func(t *rapid.T) []*eventsv1.PriceInput {
		level := rapid.SampledFrom([]float64{1e-9, 0.37, 1, 64_321.5, 9e11}).Draw(t, "level")
		price := func(label string) float64 {
			if rapid.IntRange(0, 9).Draw(t, label+" far") == 0 {
				return level * rapid.Float64Range(0.01, 100).Draw(t, label)
			}
			return level * rapid.Float64Range(0.97, 1.03).Draw(t, label)
		}
		receivedAt := func(label string) int64 {
			return ago(time.Duration(rapid.Int64Range(-int64(10*time.Second), int64(150*time.Second)).Draw(t, label)))
		}
		var inputs []*eventsv1.PriceInput
		for p := range rapid.IntRange(0, 9).Draw(t, "providers") {
			for m := range rapid.IntRange(1, 4).Draw(t, "markets") {
				quote := rapid.SampledFrom(quotes).Draw(t, "quote")
				in := &eventsv1.PriceInput{
					Provider: string(rune('a' + p)), Symbol: string(rune('A' + m)), QuoteId: quote,
					Rate:      rapid.SampledFrom([]float64{1, 1, 0.999, 1.08, 0}).Draw(t, "rate"),
					Unpriced:  rapid.IntRange(0, 9).Draw(t, "unpriced") == 0,
					Range60:   level * rapid.Float64Range(0, 0.02).Draw(t, "range"),
					Volume24H: rapid.Float64Range(0, 1e9).Draw(t, "volume"),
				}
				if rapid.Bool().Draw(t, "traded") {
					in.Last, in.LastHeard = price("last"), receivedAt("last heard")
				}
				if rapid.Bool().Draw(t, "quoted") {
					in.Bid, in.QuoteHeard = price("bid"), receivedAt("quote heard")
					in.Ask = in.Bid * rapid.Float64Range(0.98, 1.2).Draw(t, "spread")
				}
				inputs = append(inputs, in)
			}
		}
		return rapid.Permutation(inputs).Draw(t, "order")
	})
}

func clone(inputs []*eventsv1.PriceInput) []*eventsv1.PriceInput {
	out := make([]*eventsv1.PriceInput, len(inputs))
	for i, in := range inputs {
		out[i] = proto.CloneOf(in)
	}
	return out
}

func TestPriceLiesBetweenItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got, inputs := schemas.Aggregate(inputsGen().Draw(t, "inputs"), at)
		accepted, providers := 0, map[string]int{}
		for _, in := range inputs {
			if in.Accepted {
				accepted++
			}
			if in.Accepted == (in.Reason != "") {
				t.Fatalf("accepted=%v with reason %q: %v", in.Accepted, in.Reason, in)
			}
			if in.Accepted {
				providers[in.Provider]++
			} else {
				providers[in.Provider] += 0
			}
			if in.Accepted && (in.PriceUsd < got.Min || in.PriceUsd > got.Max || math.Abs(in.DeviationPct) > 50.0000001) {
				t.Fatalf("accepted %v outside of %v to %v", in, got.Min, got.Max)
			}
		}
		for provider, votes := range providers {
			if votes > 1 {
				t.Fatalf("%s voted %d times", provider, votes)
			}
		}
		if accepted != got.Accepted || got.Accepted+got.Rejected != len(providers) {
			t.Fatalf("got %d accepted and %d rejected, the inputs say %d of %d providers", got.Accepted, got.Rejected, accepted, len(providers))
		}
		if got.Reason != "" {
			if got.Price != 0 || got.Accepted != 0 {
				t.Fatalf("%s with a price: %+v", got.Reason, got)
			}
			return
		}
		if !(got.Min <= got.Price && got.Price <= got.Max && got.Price > 0) {
			t.Fatalf("got %v <= %v <= %v", got.Min, got.Price, got.Max)
		}
		if !(got.Score >= 0 && got.Score <= 1 && got.Confidence > 0) {
			t.Fatalf("got score %v and confidence %v", got.Score, got.Confidence)
		}
	})
}

// An odd number of votes always leaves one: the middle one does not deviate from itself.
func TestOddVotesAlwaysAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prices := rapid.SliceOfN(rapid.Float64Range(1e-18, 1e12), 1, 15).Draw(t, "prices")
		if len(prices)%2 == 0 {
			prices = prices[1:]
		}
		var inputs []*eventsv1.PriceInput
		for i, p := range prices {
			inputs = append(inputs, traded(string(rune('a'+i)), p))
		}
		if got, _ := schemas.Aggregate(inputs, at); got.Reason != "" {
			t.Fatalf("%v: got %s", prices, got.Reason)
		}
	})
}

func TestOrderOfInputsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inputs := inputsGen().Draw(t, "inputs")
		other := rapid.Permutation(clone(inputs)).Draw(t, "other order")
		wantSame(t, inputs, other, at)
	})
}

// Explain runs the same function over what a price record carries: bit for bit it must find the same.
func TestRefoldingARecordGivesTheRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, inputs := schemas.Aggregate(inputsGen().Draw(t, "inputs"), at)
		record := &eventsv1.Price{Time: at, Inputs: inputs}
		written, err := record.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		read := &eventsv1.Price{}
		if err := read.UnmarshalVT(written); err != nil {
			t.Fatal(err)
		}
		second, refolded := schemas.Aggregate(read.Inputs, read.Time)
		if first != second {
			t.Fatalf("got %+v\nthen %+v", first, second)
		}
		if diff := cmp.Diff(inputs, refolded, protocmp.Transform(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the inputs changed: %s", diff)
		}
	})
}

// Prices in cents are the prices in dollars a hundredfold. Powers of two scale floats exactly.
func TestPricesScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inputs := inputsGen().Draw(t, "inputs")
		factor := math.Ldexp(1, rapid.IntRange(-20, 20).Draw(t, "power"))
		scaled := clone(inputs)
		for _, in := range scaled {
			in.Bid, in.Ask, in.Last, in.Range60 = in.Bid*factor, in.Ask*factor, in.Last*factor, in.Range60*factor
		}
		got, _ := schemas.Aggregate(scaled, at)
		want, _ := schemas.Aggregate(inputs, at)
		want.Price, want.Median0, want.Min, want.Max = want.Price*factor, want.Median0*factor, want.Min*factor, want.Max*factor
		want.Confidence *= factor
		if got != want {
			t.Fatalf("times %v:\ngot  %+v\nwant %+v", factor, got, want)
		}
	})
}

func wantSame(t *rapid.T, a, b []*eventsv1.PriceInput, now int64) {
	first, ins := schemas.Aggregate(a, now)
	second, others := schemas.Aggregate(b, now)
	if first != second {
		t.Fatalf("got %+v\nthen %+v", first, second)
	}
	if diff := cmp.Diff(ins, others, protocmp.Transform(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the inputs differ: %s", diff)
	}
}

func TestQuotePreference(t *testing.T) {
	order := []string{schemas.USD, "tether", "usd-coin", "EUR", "GBP", "bitcoin", "ethereum", "dai"}
	if !slices.IsSortedFunc(order, func(a, b string) int { return schemas.QuoteRank(a) - schemas.QuoteRank(b) }) {
		t.Errorf("quotes are not preferred in the order %v", order)
	}
	if schemas.QuoteRank("dai") != schemas.QuoteRank("JPY") {
		t.Error("quotes that are not named have different ranks")
	}
}

// An explanation of an old record must not find another result because the function was changed:
// this pins what version 1 makes of one set of inputs, to the last bit.
func TestAggregateVersionIsPinned(t *testing.T) {
	in := []*eventsv1.PriceInput{traded("a", 100.1), quoted("b", 99.7, 100.3), traded("c", 100.7), traded("d", 512)}
	in[0].Range60, in[2].Volume24H, in[1].Rate = 0.7, 3e6, 1.0003
	got, _ := schemas.AggregateV1(in, at)
	want := schemas.Aggregated{
		Price: 100.1, Median0: 100.4, Min: 100.03, Max: 100.7, Confidence: 0.5899300000000096, Score: 0.18479670329669898,
		Volume24h: 3e+06, Accepted: 3, Rejected: 1, Source: "a",
	}
	if got != want {
		t.Errorf("version 1 gives %#v; it gave %#v: what is to change becomes another version", got, want)
	}
}

// The rule of a price over inputs that are in order already, as they mostly are; beside two medians of as many numbers by
// sorting, and beside keeping as many numbers in order while one of them changes.
func BenchmarkAggregate_15Venues(b *testing.B) { benchmarkAggregate(b, 15) }

func BenchmarkAggregate_20Venues(b *testing.B) { benchmarkAggregate(b, 20) }

func benchmarkAggregate(b *testing.B, venues int) {
	inputs := make([]*eventsv1.PriceInput, 0, venues)
	for i := range venues {
		in := quoted(string(rune('a'+i)), 100+float64(i)/100, 100.1+float64(i)/100)
		in.Last, in.LastHeard = 100.05, at
		inputs = append(inputs, in)
	}
	for b.Loop() {
		schemas.Aggregate(inputs, at)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/evaluation")
	b.ReportAllocs()
	numbers, middle := make([]float64, len(inputs)), 0.0
	began := time.Now()
	for range b.N {
		for range 2 {
			for i, in := range inputs {
				numbers[(7*i)%len(numbers)] = in.Bid // out of order
			}
			slices.Sort(numbers)
			middle += numbers[len(numbers)/2]
		}
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(b.N), "sort-ns/evaluation")
	began = time.Now()
	for i := range b.N {
		place := (7 * i) % venues
		changed := numbers[place] + float64(i%3-1)/10 // to here or there among the others
		numbers = slices.Delete(numbers, place, place+1)
		place, _ = slices.BinarySearch(numbers, changed)
		numbers = slices.Insert(numbers, place, changed)
		middle += numbers[venues/2]
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(b.N), "kept-ns/evaluation")
	if middle == 0 {
		b.Fatal("no median")
	}
}

// What a correction excludes changes neither price, score nor volume: they are those of the other inputs alone, by each version of the rule, and
// recorded inputs give them again.
func TestExcludedInputsCountInNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.SampledFrom([]uint32{1, 2}).Draw(t, "version")
		all := inputsGen().Draw(t, "inputs")
		var others []*eventsv1.PriceInput
		for _, in := range all {
			if rapid.IntRange(0, 2).Draw(t, "excluded") == 0 {
				in.Reason = schemas.InputExcluded
			} else {
				others = append(others, in)
			}
		}
		want, _, _ := schemas.AggregateBy(version, clone(others), at)
		got, inputs, _ := schemas.AggregateBy(version, all, at)
		again, _, _ := schemas.AggregateBy(version, clone(inputs), at)
		if again != got {
			t.Fatalf("got %+v of what was recorded, want %+v", again, got)
		}
		providers := map[string]bool{}
		for _, in := range inputs {
			providers[in.Provider] = true
			if in.Reason == schemas.InputExcluded && in.Accepted {
				t.Fatalf("an excluded input is accepted: %v", in)
			}
		}
		if got.Accepted+got.Rejected != len(providers) {
			t.Fatalf("got %d accepted and %d rejected of %d providers", got.Accepted, got.Rejected, len(providers))
		}
		if want.Rejected = got.Rejected; got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}
