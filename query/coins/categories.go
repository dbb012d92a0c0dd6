package coins

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
)

// categories are the kinds that sources put coins in.
type categories struct {
	list   []*category // by market cap, the largest first; without one by name
	bySlug map[string]*category
	// of are each coin's, in the list's order.
	of [][]*category
}

type category struct {
	slug, name string
	// coins by rank.
	coins []int32
	sums  schemas.CategorySums
	// marketCap is the sum that categories are ordered by, 0 where it is not known.
	marketCap float64
}

// members are the coins of a category, nil where there is none.
func (c *categories) members(slug string) map[int32]bool {
	found := c.bySlug[slug]
	if found == nil {
		return nil
	}
	members := make(map[int32]bool, len(found.coins))
	for _, i := range found.coins {
		members[i] = true
	}
	return members
}

func (ix *index) categorize() *categories {
	all := &categories{bySlug: map[string]*category{}, of: make([][]*category, len(ix.coins))}
	byName := map[string]*category{}
	for i, coin := range ix.coins {
		for _, name := range coin.Categories {
			c := byName[name]
			if c == nil {
				c = all.named(name)
				byName[name] = c
			}
			if c == nil || slices.Contains(all.of[i], c) {
				continue
			}
			all.of[i] = append(all.of[i], c)
			c.coins = append(c.coins, int32(i))
			c.sums.Add(coin.Market)
		}
	}
	for _, c := range all.list {
		if sum := c.sums.MarketCap(); sum != nil {
			c.marketCap = *sum
		}
	}
	slices.SortFunc(all.list, func(a, b *category) int {
		return cmp.Or(cmp.Compare(b.marketCap, a.marketCap), strings.Compare(a.slug, b.slug))
	})
	return all
}

// named is the category of a name; nil for a name without a letter.
func (c *categories) named(name string) *category {
	id := schemas.CategoryID(name)
	if id == "" {
		return nil
	}
	found := c.bySlug[id]
	if found == nil {
		found = &category{slug: id, name: name}
		c.bySlug[id] = found
		c.list = append(c.list, found)
	}
	return found
}

// CategoriesBody answers GET /api/v1/coins/categories.
type CategoriesBody struct {
	Data []Category `json:"data" doc:"Largest market cap first"`
	Meta query.Meta `json:"meta"`
}

// Category is one kind of coins. A coin can be in several.
type Category struct {
	ID                           string   `json:"id" example:"layer-1" doc:"Made from the name"`
	Name                         string   `json:"name" example:"Layer 1" doc:"As the source spells it"`
	CoinCount                    int      `json:"coinCount" doc:"Number of coins in the category, also without a price"`
	MarketCap                    *float64 `json:"marketCap,omitempty" explain:"category/{id}/marketCap" doc:"USD; sum over the coins with a known market cap"`
	Volume24h                    *float64 `json:"volume24h,omitempty" explain:"category/{id}/volume24h" doc:"USD"`
	MarketCapChangePercentage24h *float64 `json:"marketCapChangePercentage24h,omitempty" explain:"category/{id}/marketCapChangePercentage24h" doc:"Percent; over the coins whose market cap 24 hours ago is known too"`
	TopCoins                     []string `json:"topCoins" doc:"Ids of the three highest-ranked coins"`
}

const topCoins = 3

func (u *Unit) allCategories() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/categories", ID: "listCoinCategories", Tag: "coins",
		Summary:     "Categories of coins",
		Description: "Names are those of the sources that describe the coins; a coin counts in each of its categories. Sums are over the coins whose value is known.",
		Params:      []query.Param{asOfParam},
		Body:        CategoriesBody{}, MaxAge: setAge, Hot: true,
		Handle: func(ctx context.Context, r *query.Request) (query.Answer, error) {
			ix, err := u.indexOf(ctx, r)
			if err != nil {
				return query.Answer{}, err
			}
			return u.answer(ctx, ix, bodyKey{endpoint: "categories"}, func() any {
				body := CategoriesBody{Data: []Category{}}
				for _, c := range ix.categories().list {
					body.Data = append(body.Data, ix.describe(c))
				}
				body.Meta.Count, body.Meta.LastUpdated = len(body.Data), ix.updated
				return body
			})
		},
	}
}

func (ix *index) describe(c *category) Category {
	summary := Category{ID: c.slug, Name: c.name, CoinCount: len(c.coins), TopCoins: []string{},
		MarketCap: c.sums.MarketCap(), Volume24h: c.sums.Volume24H(), MarketCapChangePercentage24h: c.sums.MarketCapChangePercentage24H()}
	for _, i := range c.coins[:min(topCoins, len(c.coins))] {
		summary.TopCoins = append(summary.TopCoins, ix.coins[i].ID)
	}
	return summary
}
