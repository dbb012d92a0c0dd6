package coins

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// TopBody answers GET /api/v1/coins/top.
type TopBody struct {
	Coins []TopCoin `json:"coins" doc:"Sorted by rank"`
	Meta  ListMeta  `json:"meta"`
}

// TopCoin is one of the largest coins.
type TopCoin struct {
	Compact
	ImageURL                 string   `json:"imageUrl,omitempty"`
	PriceChangePercentage24h *float64 `json:"priceChangePercentage24h,omitempty" explain:"market/{id}/change24h" doc:"Percent"`
	TotalVolume              *float64 `json:"totalVolume,omitempty" explain:"market/{id}/volume24h" doc:"USD, 24 hours"`
}

// asOfParam asks for the coins of a past instant.
var asOfParam = query.AsOfParam("Point in time. The answer that was given then. Default: now.")

func (u *Unit) top() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/top", ID: "listTopCoins", Tool: "top_coins", Tag: "coins",
		Summary:     "The largest coins by market cap",
		Description: "Those without one are left out.",
		Params:      []query.Param{{Name: "limit", Kind: query.Integer, Default: "100", ToolDefault: "50", Min: 1, Max: 500, Doc: "Maximum number of rows."}, asOfParam},
		Body:        TopBody{}, MaxAge: listAge, Hot: true, Handle: u.getTop,
	}
}

func topCoin(coin *views.CatalogCoin) TopCoin {
	return TopCoin{Compact: compact(coin), ImageURL: coin.ImageURL, PriceChangePercentage24h: row(coin).Change24H, TotalVolume: row(coin).Volume24H}
}

func (u *Unit) getTop(ctx context.Context, r *query.Request) (query.Answer, error) {
	ix, err := u.indexOf(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	limit := int(r.Integer("limit"))
	return u.answer(ctx, ix, key("top", r), func() any {
		body := TopBody{Coins: []TopCoin{}}
		for _, coin := range ix.coins[:min(limit, ix.ranked)] {
			body.Coins = append(body.Coins, topCoin(coin))
		}
		body.Meta = ix.meta(r, len(body.Coins))
		body.Meta.Reason = ix.emptyReason(len(body.Coins))
		return body
	})
}

// emptyReason reports why a list of ranked coins is empty.
func (ix *index) emptyReason(count int) string {
	switch {
	case count > 0:
		return ""
	case ix.snapshot.Time == 0:
		return "starting"
	default:
		return "no_market"
	}
}

// key is that of a list whose only parameter is its limit. What was clamped is reported in the answer.
func key(endpoint string, r *query.Request) bodyKey {
	return bodyKey{endpoint: endpoint, view: r.View, first: r.Integer("limit"), flag: r.Clamped() != nil}
}

// TrendingBody answers GET /api/v1/coins/trending.
type TrendingBody struct {
	Coins []TrendingCoin `json:"coins" doc:"Largest 24-hour gain first"`
	Meta  ListMeta       `json:"meta"`
}

// TrendingCoin is a coin with its place among those that rose.
type TrendingCoin struct {
	Compact
	ImageURL                 string   `json:"imageUrl,omitempty"`
	PriceChangePercentage24h float64  `json:"priceChangePercentage24h" explain:"market/{id}/change24h" doc:"Percent"`
	TotalVolume              *float64 `json:"totalVolume,omitempty" explain:"market/{id}/volume24h" doc:"USD, 24 hours"`
	TrendRank                int      `json:"trendRank" doc:"1 is the largest gain"`
}

func (u *Unit) trending() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/trending", ID: "listTrendingCoins", Tag: "coins",
		Summary:     "Coins by 24-hour price change",
		Description: "The largest gainers among coins with a 24-hour volume of at least 50,000 USD.",
		Params:      []query.Param{limitParam("20", 100), asOfParam},
		Body:        TrendingBody{}, MaxAge: listAge, Hot: true, Handle: u.getTrending,
	}
}

func (u *Unit) getTrending(ctx context.Context, r *query.Request) (query.Answer, error) {
	ix, err := u.indexOf(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	limit := int(r.Integer("limit"))
	return u.answer(ctx, ix, key("trending", r), func() any {
		body := TrendingBody{Coins: []TrendingCoin{}}
		for _, i := range ix.order(orderKey{by: "price_change_percentage_24h", desc: true, priced: true}) {
			coin := ix.coins[i]
			change, volume := coin.Market.Change24H, coin.Market.Volume24H
			if change == nil || len(body.Coins) == limit {
				break
			}
			if volume == nil || *volume < schemas.MoversMinVolume {
				continue
			}
			body.Coins = append(body.Coins, TrendingCoin{compact(coin), coin.ImageURL, *change, volume, len(body.Coins) + 1})
		}
		body.Meta = ix.meta(r, len(body.Coins))
		body.Meta.Reason = ix.emptyReason(len(body.Coins))
		return body
	})
}

// RecentBody answers GET /api/v1/coins/recent.
type RecentBody struct {
	Coins []RecentCoin `json:"coins" doc:"Newest first; coins without a known launch date are left out"`
	Meta  ListMeta     `json:"meta"`
}

// RecentCoin is a coin with its beginnings.
type RecentCoin struct {
	Compact
	ImageURL     string `json:"imageUrl,omitempty"`
	CreatedAt    string `json:"createdAt" format:"date-time" doc:"Launch date, as stated by a source"`
	FirstPriceAt string `json:"firstPriceAt,omitempty" format:"date-time" doc:"The first minute with a price from our venues"`
}

func (u *Unit) recent() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/recent", ID: "listRecentCoins", Tag: "coins",
		Summary:     "The newest coins",
		Description: "By launch date as stated by a source, not by when the coin was first seen here. Coins without a launch date are left out.",
		Params: []query.Param{limitParam("20", 100),
			query.AsOfParam("Point in time. The answer that was given then, with first prices that had been published for a minute. Default: now.")},
		Body: RecentBody{}, MaxAge: listAge, Hot: true, Handle: u.getRecent,
	}
}

func (u *Unit) getRecent(ctx context.Context, r *query.Request) (query.Answer, error) {
	ix, err := u.indexOf(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	firstPriced := ix.past.firstPriced
	if at, asOf := r.Time("asOf"); asOf {
		if firstPriced, err = u.firstPricedBy(at); err != nil {
			return query.Answer{}, err
		}
	}
	limit := int(r.Integer("limit"))
	return u.answer(ctx, ix, key("recent", r), func() any {
		body := RecentBody{Coins: []RecentCoin{}}
		for _, i := range ix.recent() {
			if len(body.Coins) == limit {
				break
			}
			coin := ix.coins[i]
			body.Coins = append(body.Coins, RecentCoin{compact(coin), coin.ImageURL,
				query.FormatTime(ix.createdAt()[i]), query.FormatTime(unixNano(firstPriced[coin.ID]))})
		}
		body.Meta = ix.meta(r, len(body.Coins))
		if len(body.Coins) == 0 {
			body.Meta.Reason = "no_beginnings"
		}
		return body
	})
}

// recent are the coins whose beginning is known, the youngest first.
func (ix *index) recent() []int32 {
	created := ix.createdAt()
	list := []int32{}
	for i := range ix.coins {
		if created[i] != 0 {
			list = append(list, int32(i))
		}
	}
	slices.SortStableFunc(list, func(a, b int32) int {
		switch {
		case created[a] > created[b]:
			return -1
		case created[a] < created[b]:
			return 1
		}
		return 0
	})
	return list
}

// SlugsBody answers GET /api/v1/coins/slugs.
type SlugsBody struct {
	Data Slugs `json:"data"`
}

// Slugs are ids of coins.
type Slugs struct {
	Slugs []string `json:"slugs" doc:"Sorted by rank"`
	Count int      `json:"count"`
}

func (u *Unit) slugs() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/slugs", ID: "listCoinSlugs", Tag: "coins",
		Summary:     "Ids of all coins",
		Description: "By rank; coins without a market cap, also those without a price, follow. Featured coins are sorted by the number of providers with a yield and filled up by rank.",
		Params:      []query.Param{{Name: "featured", Kind: query.Flag, Default: "false", Doc: "Only the featured coins, at most 100."}, asOfParam},
		Body:        SlugsBody{}, MaxAge: setAge, Hot: true, Handle: u.getSlugs,
	}
}

func (u *Unit) getSlugs(ctx context.Context, r *query.Request) (query.Answer, error) {
	slugs := func(list []*views.CatalogCoin) any {
		body := SlugsBody{Slugs{Slugs: make([]string, len(list)), Count: len(list)}}
		for i, coin := range list {
			body.Data.Slugs[i] = coin.ID
		}
		return body
	}
	if r.Flag("featured") {
		ix, x, err := u.ratedOf(ctx, r)
		if err != nil {
			return query.Answer{}, err
		}
		return u.answerRated(ctx, ix, x, bodyKey{endpoint: "slugs", flag: true}, func() any { return slugs(ix.featured(x, maxFeatured)) })
	}
	ix, err := u.indexOf(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	return u.answer(ctx, ix, bodyKey{endpoint: "slugs"}, func() any { return slugs(ix.coins) })
}

// StatsBody answers GET /api/v1/coins/stats.
type StatsBody struct {
	Data Stats `json:"data"`
}

// Stats counts what is known.
type Stats struct {
	TotalCoins    int    `json:"totalCoins" doc:"All coins of the catalog"`
	PricedCoins   int    `json:"pricedCoins" doc:"With a price"`
	RankedCoins   int    `json:"rankedCoins" doc:"With a market cap"`
	DetailedCoins int    `json:"detailedCoins" doc:"With details"`
	Categories    int    `json:"categories" doc:"Number of categories of these coins"`
	Timestamp     string `json:"timestamp,omitempty" format:"date-time" doc:"End of the newest folded minute"`
}

func (u *Unit) stats() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/stats", ID: "getCoinStats", Tag: "coins",
		Summary:     "Number of known coins",
		Description: "Counts the coins of our own table and those that sources report, and how many of them have a price, a market cap and details.",
		Params:      []query.Param{asOfParam},
		Body:        StatsBody{}, Hot: true,
		Handle: func(ctx context.Context, r *query.Request) (query.Answer, error) {
			ix, err := u.indexOf(ctx, r)
			if err != nil {
				return query.Answer{}, err
			}
			return u.answer(ctx, ix, bodyKey{endpoint: "stats"}, func() any {
				stats := Stats{TotalCoins: len(ix.coins), PricedCoins: len(ix.priced), RankedCoins: ix.ranked,
					Categories: len(ix.categories().list), Timestamp: ix.updated}
				for _, coin := range ix.coins {
					if coin.Detailed != nil {
						stats.DetailedCoins++
					}
				}
				return StatsBody{stats}
			})
		},
	}
}

// own copies a text of a request, which a key in memory outlives.
func own(text string) string { return strings.Clone(text) }
