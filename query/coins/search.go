package coins

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
)

// SearchBody answers GET /api/v1/coins in the reference view.
type SearchBody struct {
	Data []FoundCoin `json:"data"`
	Meta SearchMeta  `json:"meta"`
}

// SearchToolBody answers it in the tool view.
type SearchToolBody struct {
	Coins []FoundCoin `json:"coins" doc:"Matching coins of this page, in the requested order"`
	Meta  SearchMeta  `json:"meta"`
}

// FoundCoin is a coin in both forms at once.
type FoundCoin struct {
	Compact
	MarketCapRank int    `json:"marketCapRank,omitempty" explain:"market/{id}/rank" doc:"The same as rank"`
	ImageURL      string `json:"imageUrl,omitempty"`
}

// SearchMeta describes the answer.
type SearchMeta struct {
	ListMeta
	Total int    `json:"total" doc:"Number of matching coins on all pages"`
	Query string `json:"query" doc:"The search text"`
	Page  int64  `json:"page" doc:"Page number, from 1"`
	Limit int64  `json:"limit" doc:"Rows per page"`
}

// maxPage bounds pages; none of them is there.
const maxPage = 1_000_000

var (
	pageParam     = query.Param{Name: "page", Kind: query.Integer, Default: "1", Min: 1, Max: maxPage, Doc: "Page number."}
	categoryParam = query.Param{Name: "category", Kind: query.Text, Example: "layer-1", Doc: "Only coins of this category. By id or name."}
	searchParam   = query.Param{Name: "search", Kind: query.Text, Example: "bit", Doc: "Only coins whose name, symbol or id contains this text. Case-insensitive."}
)

// sorts are the orders of a search, by their values.
var sorts = []string{"market_cap_rank", "name", "symbol"}

func (u *Unit) search() query.Endpoint {
	q := searchParam
	q.Name = "q"
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins", ID: "searchCoins", Tool: "list_coins", Tag: "coins",
		Summary:     "Search coins",
		Description: "Without search words all coins, by rank; those without one follow, by id.",
		Params: []query.Param{
			q,
			{Name: "symbol", Kind: query.Text, Example: "btc", Doc: "Only coins with exactly this symbol. Case-insensitive."},
			searchParam, pageParam, limitParam("20", 500),
			{Name: "sort", Kind: query.Text, Default: "market_cap_rank", Allowed: sorts, Doc: "Sort key."},
			orderParam("order"), categoryParam,
			{Name: "has_rates", Kind: query.Flag, Doc: "true: only coins with yields; false: only coins without. Of lending, borrowing or staking."},
			asOfParam},
		Body: SearchBody{}, ToolBody: SearchToolBody{}, Hot: true, Handle: u.getSearch,
	}
}

func orderParam(name string) query.Param {
	return query.Param{Name: name, Kind: query.Text, Default: "asc", Allowed: []string{"asc", "desc"}, Doc: "Sort direction. Unknown values come last."}
}

func (u *Unit) getSearch(ctx context.Context, r *query.Request) (query.Answer, error) {
	ix, x, err := u.foundIn(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	s := seek(r.Text("q"), r.Text("search"), r.Text("symbol"), r.Text("category"))
	by := orderKey{by: r.Text("sort"), desc: r.Text("order") == "desc"}
	number, limit := r.Integer("page"), r.Integer("limit")
	key := bodyKey{endpoint: "search", view: r.View, first: number, last: limit, flag: r.Clamped() != nil, a: by.by + r.Text("order")}
	if !s.all() {
		key.b, key.c, key.d = own(r.Text("q"))+"\n"+own(r.Text("search")), own(s.symbol), own(s.category)
	}
	list := func(found []int32, reason string) any {
		meta := SearchMeta{Query: words(r.Text("q"), r.Text("search")), Page: number, Limit: limit}
		coins := []FoundCoin{}
		for _, i := range page(found, number, limit) {
			coin := ix.coins[i]
			coins = append(coins, FoundCoin{compact(coin), coin.Rank, coin.ImageURL})
		}
		meta.ListMeta, meta.Total = ix.meta(r, len(coins)), len(found)
		meta.Reason = reason
		if r.View == query.Tool {
			return SearchToolBody{coins, meta}
		}
		return SearchBody{coins, meta}
	}
	if !r.Has("has_rates") {
		return u.answer(ctx, ix, key, func() any { return list(ix.narrow(ix.order(by), &s), "") })
	}
	with := r.Flag("has_rates")
	if !with {
		key.d += "\nwithout"
	}
	return u.answerRated(ctx, ix, x, key, func() any {
		found := slices.DeleteFunc(slices.Clone(ix.narrow(ix.order(by), &s)), func(i int32) bool { return (x.coins[ix.coins[i].ID] != nil) != with })
		if len(found) == 0 && with {
			return list(found, x.reason())
		}
		return list(found, "")
	})
}

// foundIn is what a search looks in: the index, and the rates where it asks whether coins have any.
func (u *Unit) foundIn(ctx context.Context, r *query.Request) (*index, *rated, error) {
	if r.Has("has_rates") {
		return u.ratedOf(ctx, r)
	}
	ix, err := u.indexOf(ctx, r)
	return ix, nil, err
}

// words joins what was searched for.
func words(q, search string) string {
	return strings.ToValidUTF8(strings.TrimSpace(q+" "+search), "�")
}
