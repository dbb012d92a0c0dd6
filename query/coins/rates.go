package coins

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// rated is what the rates of coins are, made once for all who ask while the same rates count.
type rated struct {
	number    uint64
	current   *views.CurrentRates
	simulated bool
	coins     map[string]*coinRated
}

// coinRated is what the rates of a coin are.
type coinRated struct {
	providers  int
	best       BestRates
	categories map[string]categoryRated
}

// categoryRated is what the rates of a category are for a coin.
type categoryRated struct {
	CoinRates
	// received is when the newest of them was reported, Unix nanoseconds.
	received int64
}

var ratings atomic.Uint64

// ratedAt is by the rates that count now. Two that ask at once may both make it, which costs time only.
func (u *Unit) ratedAt(now time.Time) *rated {
	current := u.yieldStore.Current(now)
	if known := u.ratings.Load(); known != nil && known.current == current {
		return known
	}
	next := rate(current)
	u.ratings.Store(next)
	return next
}

// rate sums up rates by coin and category.
func rate(current *views.CurrentRates) *rated {
	next := &rated{number: ratings.Add(1), current: current, coins: map[string]*coinRated{}}
	byCoin := map[string]map[string][]*eventsv1.RateEntry{}
	for _, e := range current.Counted {
		if byCoin[e.CoinId] == nil {
			byCoin[e.CoinId] = map[string][]*eventsv1.RateEntry{}
		}
		byCoin[e.CoinId][e.Category] = append(byCoin[e.CoinId][e.Category], e)
		next.simulated = next.simulated || e.Simulated
	}
	for id, byCategory := range byCoin {
		coin := &coinRated{categories: map[string]categoryRated{}}
		providers := map[string]bool{}
		for category, entries := range byCategory {
			c := rateCategory(category, entries)
			coin.categories[category] = c
			coin.best.set(category, &c.Best.Rate)
			for _, e := range entries {
				providers[e.Provider] = true
			}
		}
		coin.providers = len(providers)
		next.coins[id] = coin
	}
	return next
}

// ratedOf are the index and the rates that a request asks for: those of the instant of its asOf, else the newest ones.
func (u *Unit) ratedOf(ctx context.Context, r *query.Request) (*index, *rated, error) {
	at, asOf := r.Time("asOf")
	if !asOf {
		return u.index(r.Now), u.ratedAt(r.Now), nil
	}
	snapshot, unrowed := u.served.Coins.At(ctx, at)
	current, unrated := u.served.Yields.At(ctx, at)
	if err := views.FaultOfParts(unrowed, unrated); err != nil {
		return nil, nil, query.FaultOfPast(err, at)
	}
	return indexAsOf(snapshot, at), rate(current), nil
}

// set reports the best rate of a category.
func (b *BestRates) set(category string, rate *float64) {
	switch category {
	case schemas.RateLending:
		b.Lending = rate
	case schemas.RateStaking:
		b.Staking = rate
	case schemas.RateBorrowing:
		b.Borrowing = rate
	}
}

// rateCategory sums up rates. The best is the highest, of borrowing the lowest; of equal ones the first provider's.
func rateCategory(category string, entries []*eventsv1.RateEntry) categoryRated {
	best := slices.MinFunc(entries, func(a, b *eventsv1.RateEntry) int {
		higher := cmp.Compare(b.Apy, a.Apy)
		if category == schemas.RateBorrowing {
			higher = -higher
		}
		return cmp.Or(higher, cmp.Compare(a.Provider, b.Provider))
	})
	c := categoryRated{CoinRates: CoinRates{Best: BestRate{best.Provider, best.Apy}}}
	providers := map[string]bool{}
	values := make([]float64, len(entries))
	for i, e := range entries {
		values[i], providers[e.Provider] = e.Apy, true
		c.received = max(c.received, e.Heard)
	}
	s := views.SumRates(values)
	c.Min, c.Max, c.Average, c.Median, c.ProviderCount = s.Min, s.Max, s.Mean, s.Median, len(providers)
	return c
}

// reason reports why a list of coins with rates is empty.
func (x *rated) reason() string {
	if x.current.Time == 0 {
		return "starting"
	}
	return noRates
}

// answerRated gives what make makes of coins and rates, from memory where it was made before.
func (u *Unit) answerRated(ctx context.Context, ix *index, x *rated, key bodyKey, make func() any) (query.Answer, error) {
	key.rates = x.number
	answer, err := u.answer(ctx, ix, key, make)
	answer.Simulated = answer.Simulated || x.simulated
	return answer, err
}

// FeaturedBody answers GET /api/v1/coins/featured.
type FeaturedBody struct {
	Coins []FeaturedCoin `json:"coins" doc:"Sorted by number of providers with a yield, then by rank"`
	Meta  ListMeta       `json:"meta"`
}

// FeaturedCoin is a coin with what providers pay and ask for it.
type FeaturedCoin struct {
	Compact
	ImageURL      string    `json:"imageUrl,omitempty"`
	HasRates      bool      `json:"hasRates" doc:"Whether a provider has a current yield for it"`
	ProviderCount int       `json:"providerCount" doc:"Number of providers with a yield for it"`
	BestRates     BestRates `json:"bestRates" doc:"Best current yield of each category"`
}

// BestRates are the best of a coin's rates, percent a year: of borrowing the lowest, of the others the highest.
type BestRates struct {
	Lending   *float64 `json:"lending,omitempty" explain:"rate-statistics/{id}/lending/bestRate" doc:"Highest yield, percent per year (APY); absent if there is none"`
	Staking   *float64 `json:"staking,omitempty" explain:"rate-statistics/{id}/staking/bestRate" doc:"Highest yield, percent per year (APY); absent if there is none"`
	Borrowing *float64 `json:"borrowing,omitempty" explain:"rate-statistics/{id}/borrowing/bestRate" doc:"Lowest rate, percent per year (APY); absent if there is none"`
}

const maxFeatured = 100

func (u *Unit) featured() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/featured", ID: "listFeaturedCoins", Tag: "coins",
		Summary:     "Coins with yields, and the largest coins",
		Description: "Coins sorted by the number of providers with a yield, filled up by rank.",
		Params:      []query.Param{limitParam("20", maxFeatured), asOfParam},
		Body:        FeaturedBody{}, MaxAge: listAge, Hot: true, Handle: u.getFeatured,
	}
}

func (u *Unit) getFeatured(ctx context.Context, r *query.Request) (query.Answer, error) {
	ix, x, err := u.ratedOf(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	limit := int(r.Integer("limit"))
	return u.answerRated(ctx, ix, x, key("featured", r), func() any {
		body := FeaturedBody{Coins: []FeaturedCoin{}}
		for _, coin := range ix.featured(x, limit) {
			asset := FeaturedCoin{Compact: compact(coin), ImageURL: coin.ImageURL}
			if by := x.coins[coin.ID]; by != nil {
				asset.HasRates, asset.ProviderCount, asset.BestRates = true, by.providers, by.best
			}
			body.Coins = append(body.Coins, asset)
		}
		body.Meta = ix.meta(r, len(body.Coins))
		body.Meta.Reason = ix.emptyReason(len(body.Coins))
		return body
	})
}

// featured are the coins with the most providers of rates, filled up by rank.
func (ix *index) featured(x *rated, limit int) []*views.CatalogCoin {
	var list []*views.CatalogCoin
	for _, coin := range ix.coins {
		if x.coins[coin.ID] != nil {
			list = append(list, coin)
		}
	}
	slices.SortStableFunc(list, func(a, b *views.CatalogCoin) int {
		return cmp.Compare(x.coins[b.ID].providers, x.coins[a.ID].providers)
	})
	for _, coin := range ix.coins[:ix.ranked] {
		if len(list) >= limit {
			break
		}
		if x.coins[coin.ID] == nil {
			list = append(list, coin)
		}
	}
	return list[:min(limit, len(list))]
}

// WithRatesBody answers GET /api/v1/coins/with-rates.
type WithRatesBody struct {
	Coins []RatedCoin `json:"coins" doc:"Sorted by rank"`
	Meta  ListMeta    `json:"meta"`
}

// RatedCoin is a coin with what its rates of a category are, percent a year.
type RatedCoin struct {
	Compact
	Category    string    `json:"category" enum:"lending,borrowing,staking" doc:"Category of the yields"`
	Rates       CoinRates `json:"rates" doc:"The coin's current yields in this category, over all providers"`
	LastUpdated string    `json:"lastUpdated,omitempty" format:"date-time" doc:"When the newest of these yields was received"`
}

// CoinRates sums up the rates of a coin.
type CoinRates struct {
	Min           float64  `json:"min" explain:"rate-statistics/{id}/{category}/minRate" doc:"Lowest, percent per year (APY)"`
	Max           float64  `json:"max" explain:"rate-statistics/{id}/{category}/maxRate" doc:"Highest, percent per year (APY)"`
	Average       float64  `json:"average" explain:"rate-statistics/{id}/{category}/averageRate" doc:"Mean of all yields, percent per year (APY)"`
	Median        float64  `json:"median" explain:"rate-statistics/{id}/{category}/medianRate" doc:"Median of all yields, percent per year (APY)"`
	ProviderCount int      `json:"providerCount" explain:"rate-statistics/{id}/{category}/providerCount" doc:"Number of providers with such a yield"`
	Best          BestRate `json:"best" doc:"For borrowing the lowest, else the highest"`
}

// BestRate is the best of them.
type BestRate struct {
	Provider string  `json:"provider"`
	Rate     float64 `json:"rate" explain:"rate-statistics/{id}/{category}/bestRate" doc:"Percent per year, compounded (APY)"`
}

func (u *Unit) withRates() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/with-rates", ID: "listCoinsWithRates", Tag: "coins",
		Summary:     "Coins that can be lent, borrowed or staked",
		Description: "By rank, with the statistics of the current yields of one category over all providers. A yield counts for three polling intervals of its source.",
		Params: []query.Param{
			{Name: "category", Kind: query.Text, Required: true, Allowed: []string{"lending", "borrowing", "staking"}, Example: "lending", Doc: "Category of the yields."},
			{Name: "coinCategory", Kind: query.Text, Doc: "Category of the coins, by id or name."},
			limitParam("6", 50), asOfParam},
		Body: WithRatesBody{}, MaxAge: listAge, Hot: true, Handle: u.getWithRates,
	}
}

func (u *Unit) getWithRates(ctx context.Context, r *query.Request) (query.Answer, error) {
	ix, x, err := u.ratedOf(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	category, limit := r.Text("category"), int(r.Integer("limit"))
	k := key("with-rates", r)
	k.a, k.b = category, own(schemas.CategoryID(r.Text("coinCategory")))
	return u.answerRated(ctx, ix, x, k, func() any {
		body := WithRatesBody{Coins: []RatedCoin{}}
		var members map[int32]bool
		if k.b != "" {
			members = ix.categories().members(k.b)
		}
		for i, coin := range ix.coins {
			by := x.coins[coin.ID]
			if by == nil || k.b != "" && !members[int32(i)] {
				continue
			}
			if c, ok := by.categories[category]; ok && len(body.Coins) < limit {
				body.Coins = append(body.Coins, RatedCoin{compact(coin), category, c.CoinRates, query.FormatTime(c.received)})
			}
		}
		body.Meta = ix.meta(r, len(body.Coins))
		body.Meta.LastUpdated = query.FormatTime(x.current.Time)
		if len(body.Coins) == 0 {
			body.Meta.Reason = x.reason()
		}
		return body
	})
}

const noRates = "no_rates"
