package schemas

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// States of a variant of an earn product.
const (
	EarnOpen = "open"
	// EarnSilent is one whose source does not answer any more: nobody knows whether it is still offered.
	EarnSilent = "silent"
	// EarnReplaced is one that is reported by a source which is nearer to the provider, or of another coin, by now.
	EarnReplaced = "replaced"
	// EarnClosed is one that its source has left out for three intervals while it reported others.
	EarnClosed = "closed"
)

// EarnSilentFor is how long a variant stays silent before it counts as closed.
const EarnSilentFor = 30 * day

// Segments of the benchmark.
const (
	EarnOverall = "overall"
	EarnCeFi    = "cefi"
	EarnDeFi    = "defi"
)

// EarnSegments are the segments of the benchmark, in the order of the API.
var EarnSegments = []string{EarnOverall, EarnCeFi, EarnDeFi}

// EarnCategories are the categories of rates that are earned.
var EarnCategories = []string{RateLending, RateStaking}

// EarnAPI is how variants are collected: by reading an interface.
const EarnAPI = "api"

// EarnMethodology is the version of the formulas of the benchmark; it goes up whenever one changes.
const EarnMethodology = 1

// EarnExchanges are the providers that hold what is deposited themselves: the slugs of all venues, which the test of
// producers/exchanges compares, since this package knows no adapters.
var EarnExchanges = []string{
	"binance", "bitfinex", "bitget", "bitstamp", "bybit", "coinbase", "cryptocom", "gate", "gemini", "htx", "kraken", "kucoin", "mexc", "okx", "poloniex", "upbit",
}

// EarnSegment is cefi for an exchange, by the slug of its venue, and defi for all other providers, which are protocols. What
// an exchange issues on a chain, as binance-staked-eth, is a protocol's.
func EarnSegment(provider string) string {
	if slices.Contains(EarnExchanges, provider) {
		return EarnCeFi
	}
	return EarnDeFi
}

// EarnProductID names what a provider pays for a coin in a category. None of the three has a colon in it.
func EarnProductID(provider, coinID, category string) string {
	return provider + ":" + coinID + ":" + category
}

// EarnProductCoin is the coin id in the id of a product; empty where that is not one.
func EarnProductCoin(productID string) string {
	if parts := strings.Split(productID, ":"); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// EarnVariantID names a variant of a product: who reports it, its own id there, and its term where it has one.
func EarnVariantID(source, pool, term string) string {
	if term == "" {
		return source + ":" + pool
	}
	return source + ":" + pool + ":" + term
}

// EarnOffered reports whether an entry of rates is a variant of a product that is offered: one that earns, of a known coin, reported
// by the source that is nearest to the provider.
func EarnOffered(e *eventsv1.RateEntry) bool {
	return !e.Ended && e.Unattached == "" && e.Shadowed == "" && e.CoinId != "" && slices.Contains(EarnCategories, e.Category)
}

// NewEarnVariant makes the variant of an entry, as of the end of a minute. Its status is open.
func NewEarnVariant(e *eventsv1.RateEntry, minute int64) *eventsv1.EarnVariant {
	reported := e.Said
	if reported == nil {
		reported = &eventsv1.Rate{}
	}
	v := &eventsv1.EarnVariant{
		ProductId: EarnProductID(e.Provider, e.CoinId, e.Category), VariantId: EarnVariantID(e.Source, e.Pool, e.Term),
		Provider: e.Provider, ProviderName: e.ProviderName, Segment: EarnSegment(e.Provider), CoinId: e.CoinId, Symbol: e.Symbol, Category: e.Category,
		Source: e.Source, Pool: e.Pool, ProviderSymbol: e.ProviderSymbol, Chain: e.Chain, Name: e.Name, Term: e.Term,
		Status: EarnOpen, Apr: e.Apr, Apy: e.Apy, RewardApy: e.RewardApy, Compounding: reported.Compounding, TvlUsd: e.TvlUsd,
		MinAmount: reported.MinAmount, MaxAmount: reported.MaxAmount, LockupDays: reported.LockupDays, NoticeDays: reported.NoticeDays, Payout: reported.Payout, Promo: reported.Promo,
		Served: countries(reported.Served), Refused: countries(reported.Refused),
		Collection: EarnAPI, Simulated: e.Simulated, Interval: reported.Interval, Time: minute, Heard: e.Heard,
	}
	v.BaseApy, v.MaxApy = e.Apy, e.Apy
	if e.RewardApy != nil {
		v.BaseApy = e.Apy - *e.RewardApy
		v.BaseApy, v.MaxApy = min(v.BaseApy, e.Apy), max(v.BaseApy, e.Apy)
	}
	// The lowest of all that is paid: a source may list only the tiers that pay more than its rate.
	for _, t := range reported.Tiers {
		apr, apy, err := Yearly(t.Raw, reported.RawUnit, reported.Compounding)
		if err != nil {
			continue // it was not a rate when it was read either
		}
		v.Tiers = append(v.Tiers, &eventsv1.EarnTier{From: t.From, To: t.To, Apr: apr, Apy: apy})
		v.BaseApy, v.MaxApy = min(v.BaseApy, apy), max(v.MaxApy, apy)
	}
	v.Confidence = EarnConfidence(v)
	return v
}

// countries are sorted, since a source may write them in any order.
func countries(codes []string) []string {
	if len(codes) == 0 {
		return nil
	}
	sorted := slices.Clone(codes)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

const (
	// aggregator reports the rates of others.
	aggregator = "defillama"
	// thinTvl is what is so little, in USD, that a single depositor moves the rate.
	thinTvl = 100_000
	// doubtedApy is the rate in percent that is rarely what it seems.
	doubtedApy = 100
)

// EarnConfidence is how far the rate of a variant can be relied on, from 0 to 1: the product of a factor for each thing that
// speaks against it.
func EarnConfidence(v *eventsv1.EarnVariant) float64 {
	c := 1.0
	take := func(factor float64, against bool) {
		if against {
			c = float64(c * factor)
		}
	}
	take(0.8, strings.HasPrefix(v.Source, aggregator))
	take(0.95, v.Compounding != "" && v.Compounding != "none") // how it compounds is our word
	take(0.9, v.Promo)
	take(0.9, v.TvlUsd == nil && v.Segment == EarnDeFi)
	take(0.5, v.TvlUsd != nil && *v.TvlUsd < thinTvl)
	take(0.5, v.Apy > doubtedApy || v.Apy < 0 && v.Category == RateLending)
	take(0.5, v.Status == EarnSilent)
	take(0, v.Status == EarnReplaced || v.Status == EarnClosed)
	return math.Round(c*1000) / 1000
}

// EarnFields are the terms whose changes are events, in the order in which those of one minute are published.
var EarnFields = []string{"status", "cap", "min", "lockup", "notice", "tiers", "payout", "promo", "countries"}

// EarnStatusField is the one that products have too.
const EarnStatusField = "status"

// EarnStatus is the status of a product by the rows of its variants: open if one is, else silent if one is, else closed; empty
// for none.
func EarnStatus(variants []*eventsv1.EarnVariant) string {
	status := ""
	for _, v := range variants {
		switch {
		case v.Status == EarnOpen:
			return EarnOpen
		case v.Status == EarnSilent:
			status = EarnSilent
		case status == "":
			status = EarnClosed
		}
	}
	return status
}

// EarnTerm is a term of a variant as text, empty where there is none; field is one of EarnFields. Rates are not terms, and
// of tiers only the bounds are.
func EarnTerm(v *eventsv1.EarnVariant, field string) string {
	switch field {
	case EarnStatusField:
		return v.Status
	case "cap":
		// What a protocol still takes moves with every deposit: only that it takes no more, or again, is a change.
		if free, err := strconv.ParseFloat(v.MaxAmount, 64); err == nil && free > 0 && v.Segment == EarnDeFi {
			return "available"
		}
		return v.MaxAmount
	case "min":
		return v.MinAmount
	case "lockup":
		return earnDays(v.LockupDays)
	case "notice":
		return earnDays(v.NoticeDays)
	case "tiers":
		bounds := make([]string, len(v.Tiers))
		for i, t := range v.Tiers {
			bounds[i] = t.From + "-" + t.To
		}
		return strings.Join(bounds, " ")
	case "payout":
		return v.Payout
	case "promo":
		if v.Promo {
			return "yes"
		}
	case "countries":
		var parts []string
		if len(v.Served) > 0 {
			parts = append(parts, "served "+strings.Join(v.Served, " "))
		}
		if len(v.Refused) > 0 {
			parts = append(parts, "refused "+strings.Join(v.Refused, " "))
		}
		return strings.Join(parts, ", ")
	}
	return ""
}

func earnDays(days *float64) string {
	if days == nil {
		return ""
	}
	return strconv.FormatFloat(*days, 'f', -1, 64)
}

// EarnBenchmark is what deposits of USD stablecoins earn that can be taken back at any time.
type EarnBenchmark struct {
	// Median is over the providers, in percent a year.
	Median float64
	// TvlWeighted is over all variants with a TVL; nil where none has one.
	TvlWeighted *float64
	// TvlUsd is the sum of these TVLs.
	TvlUsd float64
	Quotes []*eventsv1.EarnQuote
}

// EarnCounts reports whether a variant is in the benchmark at a time (Unix nanoseconds): a flexible one of a stablecoin of the
// table that follows the dollar, open, and reported at most three intervals before.
func EarnCounts(table *CoinTable, v *eventsv1.EarnVariant, at int64) bool {
	coin, known := table.ByID(v.CoinId)
	return known && coin.Peg == USD && v.Status == EarnOpen && at-v.Heard <= 3*v.Interval &&
		(v.Term == "" || v.Term == "flexible") && (v.LockupDays == nil || *v.LockupDays == 0)
}

// EarnQuotes are what each provider contributes at a time, by provider: the mean of its variants that count, weighted by TVL
// where any reports one, which leaves those without out. The order of the variants makes no difference.
func EarnQuotes(table *CoinTable, variants []*eventsv1.EarnVariant, at int64) (quotes []*eventsv1.EarnQuote, simulated bool) {
	counted := slices.DeleteFunc(slices.Clone(variants), func(v *eventsv1.EarnVariant) bool { return !EarnCounts(table, v, at) })
	slices.SortFunc(counted, func(a, b *eventsv1.EarnVariant) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.ProductId, b.ProductId), strings.Compare(a.VariantId, b.VariantId))
	})
	for len(counted) > 0 {
		n := 1
		for n < len(counted) && counted[n].Provider == counted[0].Provider {
			n++
		}
		quotes = append(quotes, earnQuote(counted[:n]))
		for _, v := range counted[:n] {
			simulated = simulated || v.Simulated
		}
		counted = counted[n:]
	}
	return quotes, simulated
}

func earnQuote(variants []*eventsv1.EarnVariant) *eventsv1.EarnQuote {
	q := &eventsv1.EarnQuote{Provider: variants[0].Provider, Segment: variants[0].Segment}
	var plain, weighted float64
	for _, v := range variants {
		plain += v.Apy
		if v.TvlUsd != nil && *v.TvlUsd > 0 {
			weighted += float64(v.Apy * *v.TvlUsd)
			q.TvlUsd += *v.TvlUsd
			q.Variants++
		}
	}
	if q.TvlUsd > 0 {
		q.Apy = weighted / q.TvlUsd
		return q
	}
	q.Variants = uint32(len(variants))
	q.Apy = plain / float64(len(variants))
	return q
}

// NewEarnBenchmark works out a segment from the providers' quotes, in their order; false where it has none.
func NewEarnBenchmark(segment string, quotes []*eventsv1.EarnQuote) (b EarnBenchmark, ok bool) {
	var rates []float64
	weighted := 0.0
	for _, q := range quotes {
		if segment != EarnOverall && segment != q.Segment {
			continue
		}
		b.Quotes = append(b.Quotes, q)
		rates = append(rates, q.Apy)
		weighted += float64(q.Apy * q.TvlUsd)
		b.TvlUsd += q.TvlUsd
	}
	if len(rates) == 0 {
		return b, false
	}
	slices.Sort(rates)
	b.Median = (rates[(len(rates)-1)/2] + rates[len(rates)/2]) / 2
	if b.TvlUsd > 0 {
		mean := weighted / b.TvlUsd
		b.TvlWeighted = &mean
	}
	return b, true
}

// NewEarnFixing is the first fixing of the day that begins at a midnight (Unix nanoseconds), written at a time; nil where no
// provider counts in the segment.
func NewEarnFixing(segment string, quotes []*eventsv1.EarnQuote, midnight, written int64) *eventsv1.EarnFixing {
	b, ok := NewEarnBenchmark(segment, quotes)
	if !ok {
		return nil
	}
	return &eventsv1.EarnFixing{
		Date: time.Unix(0, midnight).UTC().Format(time.DateOnly), Segment: segment, Median: b.Median, TvlWeighted: b.TvlWeighted,
		ProviderCount: uint32(len(b.Quotes)), TvlUsd: b.TvlUsd, Quotes: b.Quotes, MethodologyVersion: EarnMethodology, Time: written,
	}
}

// CorrectEarnFixing is the fixing that takes the place of another, worked out again without some of its providers; nil where
// none of them is in it, or no other. The formulas are those of now.
func CorrectEarnFixing(f *eventsv1.EarnFixing, without []string, reason string, written int64) *eventsv1.EarnFixing {
	quotes := slices.DeleteFunc(slices.Clone(f.Quotes), func(q *eventsv1.EarnQuote) bool { return slices.Contains(without, q.Provider) })
	midnight, err := time.Parse(time.DateOnly, f.Date)
	if err != nil || len(quotes) == len(f.Quotes) {
		return nil
	}
	corrected := NewEarnFixing(f.Segment, quotes, midnight.UnixNano(), written)
	if corrected == nil {
		return nil
	}
	corrected.Revision, corrected.Supersedes, corrected.Reason, corrected.Simulated = f.Revision+1, EarnFixingID(f), reason, f.Simulated
	return corrected
}

// EarnFixingID names a fixing.
func EarnFixingID(f *eventsv1.EarnFixing) string {
	return f.Date + "/" + f.Segment + "/" + strconv.FormatUint(uint64(f.Revision), 10)
}

// unmarkedEarn are the corrections of fixings, which operators write.
func unmarkedEarn(rec eventsv1.Marked) bool {
	return rec.(*eventsv1.EarnRecord).GetFixing().GetRevision() > 0
}
