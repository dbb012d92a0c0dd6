package coins

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// SimilarBody answers GET /api/v1/coins/{coinId}/similar.
type SimilarBody struct {
	CoinID string        `json:"coinId" example:"bitcoin"`
	Coins  []SimilarCoin `json:"coins" doc:"Most similar first, ties by rank"`
	Meta   ListMeta      `json:"meta"`
}

// SimilarCoin is a coin that shares categories with another.
type SimilarCoin struct {
	Compact
	ImageURL   string  `json:"imageUrl,omitempty"`
	Similarity float64 `json:"similarity" explain:"similarity/{coinId}/{id}" minimum:"0" maximum:"1" doc:"Jaccard similarity of the categories: shared ones divided by all of either"`
}

func (u *Unit) similar() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/{coinId}/similar", ID: "listSimilarCoins", Tool: "similar_coins", Tag: "coins",
		Summary:     "Coins with similar categories",
		Description: "By categories of sources.",
		Params:      []query.Param{coinParam, limitParam("10", 50), asOfParam},
		Body:        SimilarBody{}, NotFound: true, MaxAge: coinAge, Hot: true, Handle: u.getSimilar,
	}
}

func (u *Unit) getSimilar(ctx context.Context, r *query.Request) (query.Answer, error) {
	ix, coin, err := u.findIn(ctx, r, r.Text("coinId"))
	if err != nil {
		return query.Answer{}, err
	}
	limit := int(r.Integer("limit"))
	key := key("similar", r)
	key.a = coin.ID
	return u.answer(ctx, ix, key, func() any {
		body := SimilarBody{CoinID: coin.ID, Coins: []SimilarCoin{}}
		for _, found := range ix.similar(coin.ID) {
			if len(body.Coins) == limit {
				break
			}
			other := ix.coins[found.coin]
			body.Coins = append(body.Coins, SimilarCoin{compact(other), other.ImageURL, found.similarity})
		}
		body.Meta = ix.meta(r, len(body.Coins))
		if len(body.Coins) == 0 {
			body.Meta.Reason = "no_shared_categories"
		}
		return body
	})
}

type resemblance struct {
	coin       int32
	similarity float64
}

// similar are the coins that share a category with a coin, by the Jaccard index of their categories; ties are by rank.
func (ix *index) similar(id string) []resemblance {
	self := slices.IndexFunc(ix.coins, func(c *views.CatalogCoin) bool { return c.ID == id })
	if self < 0 {
		return nil
	}
	all := ix.categories()
	own := all.of[self]
	shared := make([]int, len(ix.coins))
	var touched []int32
	for _, c := range own {
		for _, i := range c.coins {
			if shared[i]++; shared[i] == 1 && int(i) != self {
				touched = append(touched, i)
			}
		}
	}
	found := make([]resemblance, len(touched))
	for n, i := range touched {
		found[n] = resemblance{i, float64(shared[i]) / float64(len(own)+len(all.of[i])-shared[i])}
	}
	slices.SortFunc(found, func(a, b resemblance) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(a.coin, b.coin))
	})
	return found
}
