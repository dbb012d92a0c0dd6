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

// DefiTVLSource is the source whose protocols count: another one's sum of the same would count them twice.
const DefiTVLSource = "defillama"

// DefiProtocolsFeed is the feed in which it reports them.
const DefiProtocolsFeed = "protocols"

const (
	// DefiReadEvery is how often the protocols are asked for. The source counts them once an hour: asked twice within one, what
	// is known is never much older than it appears.
	DefiReadEvery = 30 * time.Minute
	// DefiRateFor is the age up to which a rate counts, whatever the interval of its source: answers that are older than two
	// hours are refused, and one rate that is not reported again must not end all of them.
	DefiRateFor = 2 * time.Hour
	// defiRateIntervals is for how many intervals of its source a rate counts that is not reported any more.
	defiRateIntervals = 3
	// DefiForgottenAfter is how long before the last reading of the protocols one of them was reported that is gone: what a
	// source still reports is written again within that time.
	DefiForgottenAfter = 8 * 24 * time.Hour
)

// Categories of protocols that are distinguished, as the source writes them.
const (
	tvlExchange      = "CEX"
	tvlLending       = "Lending"
	tvlLiquidStaking = "Liquid Staking"
	tvlStakingPool   = "Staking Pool"
)

// tvlSections are what the source reports of a protocol beside what is locked in it, in all or as "Chain-section" on one chain.
var tvlSections = []string{
	"borrowed", "pool2", "staking", "vesting", "treasury", "OwnTokens", "offers", "doublecounted", "liquidstaking", "dcAndLsOverlap",
}

// tvlBorrowed is the section of what is borrowed.
const tvlBorrowed = "borrowed"

// maxTVL is more USD than there is of all money; what is above it was not meant.
const maxTVL = 1e15

// defiCategories are what sources call coins of DeFi, in lower case.
var defiCategories = []string{"decentralized finance (defi)", "decentralized finance", "defi"}

// IsDefi reports whether one of the categories that a source puts a coin in is DeFi.
func IsDefi(categories []string) bool {
	return slices.ContainsFunc(categories, func(name string) bool { return slices.Contains(defiCategories, strings.ToLower(name)) })
}

// DefiCoinCounts reports whether a coin is one of DeFi: by the first source that puts it in any category, in the order
// coingecko, coinpaprika, others, of each the details before the list.
func DefiCoinCounts(coin *eventsv1.DefiCoin) bool {
	if len(coin.Words) == 0 {
		return false
	}
	return slices.MinFunc(coin.Words, CompareDefiWords).Defi
}

// CompareDefiWords orders what sources report of a coin's categories: the first counts.
func CompareDefiWords(a, b *eventsv1.DefiWord) int {
	return cmp.Or(cmp.Compare(defiSourceRank(a.Source), defiSourceRank(b.Source)), cmp.Compare(a.Part, b.Part),
		cmp.Compare(a.SourceId, b.SourceId), cmp.Compare(a.Source, b.Source))
}

func defiSourceRank(source string) int {
	if i := slices.Index([]string{"coingecko", "coinpaprika"}, source); i >= 0 {
		return i
	}
	return math.MaxInt
}

// NewDefiCoin is what sources put a coin in, with one report more than before, which is nil where there was none. It is nil if none puts
// it in any category. What was before is not changed.
func NewDefiCoin(id string, before *eventsv1.DefiCoin, reported *eventsv1.Coin) *eventsv1.DefiCoin {
	word := &eventsv1.DefiWord{Source: reported.Source, Part: reported.Part, SourceId: reported.SourceId, Defi: IsDefi(reported.Categories)}
	next := &eventsv1.DefiCoin{CoinId: id}
	for _, other := range before.GetWords() {
		if CompareDefiWords(word, other) != 0 {
			next.Words = append(next.Words, other)
		}
	}
	if len(reported.Categories) > 0 {
		next.Words = append(next.Words, word)
		slices.SortFunc(next.Words, CompareDefiWords)
	}
	if len(next.Words) == 0 {
		return nil
	}
	return next
}

// NewDefiProtocol takes what counts of the source's report of a protocol; nil if nothing does. Values are in USD.
// What is borrowed is reported in all and by chain: the former counts, and the sum of the latter only where it is missing.
func NewDefiProtocol(reported *eventsv1.Protocol) *eventsv1.DefiProtocol {
	p := &eventsv1.DefiProtocol{
		Slug: reported.Slug, Name: reported.Name, Symbol: reported.Symbol, Category: reported.Category, Tvl: tvl(reported.Tvl), Heard: reported.IngestTime,
		Change1D: percent(reported.Change1D), Change7D: percent(reported.Change7D),
	}
	inAll, byChain, hasTotal := 0.0, 0.0, false
	for _, c := range reported.Chains {
		amount := tvl(c.Amount)
		switch section, chain := tvlSection(c.Chain); {
		case section == tvlBorrowed && chain:
			byChain += amount
		case section == tvlBorrowed:
			inAll, hasTotal = amount, true
		case section == "" && listsChains(p.Category) && amount > 0:
			p.Chains = append(p.Chains, &eventsv1.DefiAmount{Chain: c.Chain, Amount: amount})
		}
	}
	p.Borrowed = byChain
	if hasTotal {
		p.Borrowed = inAll
	}
	if p.Tvl == 0 && p.Borrowed == 0 {
		return nil
	}
	slices.SortFunc(p.Chains, func(a, b *eventsv1.DefiAmount) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(a.Chain, b.Chain))
	})
	return p
}

// tvlSection is the section that a key of a protocol's amounts means, empty for a chain's own; chain means that it is of one chain.
func tvlSection(key string) (section string, chain bool) {
	if slices.Contains(tvlSections, key) {
		return key, false
	}
	if i := strings.LastIndexByte(key, '-'); i >= 0 && slices.Contains(tvlSections, key[i+1:]) {
		return key[i+1:], true
	}
	return "", false
}

// listsChains reports whether the chains of protocols of a category are published.
func listsChains(category string) bool {
	return category == tvlLending || countsAsStaked(category)
}

// countsAsStaked leaves restaking out: what is restaked lies in liquid staking already.
func countsAsStaked(category string) bool {
	return category == tvlLiquidStaking || category == tvlStakingPool
}

// tvl is an amount of the source; 0 where it reports none that is possible.
func tvl(reported string) float64 {
	n, err := strconv.ParseFloat(reported, 64)
	if err != nil || !(n > 0) || n > maxTVL {
		return 0
	}
	return n
}

func percent(reported string) *float64 {
	n, err := strconv.ParseFloat(reported, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return nil
	}
	return &n
}

// DefiRate is a rate that counts: of a protocol on a chain, with a coin and a category that the API serves, reported by the best
// source that there is for it, and lately.
type DefiRate struct {
	Provider, Category, CoinID, Symbol, Chain string
	// APY in percent; TVL is what is supplied, staked or owed, in USD, 0 where that is not known.
	APY, TVL  float64
	Simulated bool
}

// DefiRateUntil is the last time at which an entry counts that is not reported again, Unix nanoseconds.
func DefiRateUntil(e *eventsv1.RateEntry) int64 {
	return e.Heard + min(defiRateIntervals*e.Said.GetInterval(), int64(DefiRateFor))
}

// NewDefiRate takes an entry of the rates fold; it is false for one that does not count. Whether it was reported lately is left
// to the caller.
func NewDefiRate(e *eventsv1.RateEntry) (r DefiRate, ok bool) {
	if e.Ended || e.Unattached != "" || e.Shadowed != "" || e.Chain == "" || !slices.Contains(RateCategories, e.Category) {
		return DefiRate{}, false
	}
	r = DefiRate{
		Provider: e.Provider, Category: e.Category, CoinID: e.CoinId, Symbol: e.Symbol, Chain: e.Chain, APY: e.Apy, Simulated: e.Simulated,
	}
	if e.GetTvlUsd() > 0 && e.GetTvlUsd() <= maxTVL {
		r.TVL = *e.TvlUsd
	}
	return r, true
}
