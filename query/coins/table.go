package coins

import (
	"context"
	"net/http"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// TableBody answers GET /api/v1/coins/markets.
type TableBody struct {
	Data []TableRow `json:"data"`
	Meta TableMeta  `json:"meta"`
}

// TableRow is a coin in the market table, as of the end of a minute. Numbers are in USD, changes in percent.
type TableRow struct {
	ID                       string                   `json:"id" example:"bitcoin" doc:"Id of the coin"`
	Symbol                   string                   `json:"symbol" example:"btc" doc:"Lower case"`
	Name                     string                   `json:"name" example:"Bitcoin" doc:"Name of the coin"`
	ImageURL                 string                   `json:"imageUrl,omitempty"`
	CurrentPrice             float64                  `json:"currentPrice" explain:"market/{id}/price" doc:"USD"`
	PriceSource              string                   `json:"priceSource" doc:"median of our venues, or the reference source of the price of a coin that none of them trades"`
	MarketCap                *float64                 `json:"marketCap,omitempty" explain:"market/{id}/marketCap" doc:"Price times circulating supply, USD"`
	MarketCapRank            int                      `json:"marketCapRank,omitempty" explain:"market/{id}/rank"`
	FullyDilutedValuation    *float64                 `json:"fullyDilutedValuation,omitempty" explain:"market/{id}/fullyDilutedValuation" doc:"Price times maximum supply, or total supply if that is unknown, USD"`
	TotalVolume              *float64                 `json:"totalVolume,omitempty" explain:"market/{id}/volume24h" doc:"USD, 24 hours"`
	High24h                  *float64                 `json:"high24h,omitempty" explain:"market/{id}/high24h" doc:"Highest price of the last 24 hours, USD"`
	Low24h                   *float64                 `json:"low24h,omitempty" explain:"market/{id}/low24h" doc:"Lowest price of the last 24 hours, USD"`
	PriceChange24h           *float64                 `json:"priceChange24h,omitempty" explain:"market/{id}/priceChange24h" doc:"Change within 24 hours, USD"`
	PriceChangePercentage1h  *float64                 `json:"priceChangePercentage1h,omitempty" explain:"market/{id}/change1h" doc:"Percent, over 1 hour"`
	PriceChangePercentage24h *float64                 `json:"priceChangePercentage24h,omitempty" explain:"market/{id}/change24h" doc:"Percent, over 24 hours"`
	PriceChangePercentage7d  *float64                 `json:"priceChangePercentage7d,omitempty" explain:"market/{id}/change7d" doc:"Percent, over 7 days"`
	PriceChangePercentage30d *float64                 `json:"priceChangePercentage30d,omitempty" explain:"market/{id}/change30d" doc:"Percent, over 30 days"`
	CirculatingSupply        *float64                 `json:"circulatingSupply,omitempty" explain:"market/{id}/circulatingSupply" doc:"Units in circulation"`
	TotalSupply              *float64                 `json:"totalSupply,omitempty" explain:"market/{id}/totalSupply" doc:"Units in existence"`
	MaxSupply                *query.Nullable[float64] `json:"maxSupply,omitempty" explain:"market/{id}/maxSupply" doc:"null if unlimited"`
	ATH                      *float64                 `json:"ath,omitempty" explain:"market/{id}/ath" doc:"Highest price ever, USD; absent if no source states one"`
	ATL                      *float64                 `json:"atl,omitempty" explain:"market/{id}/atl" doc:"Lowest price ever, USD; absent if no source states one"`
	Sparkline7d              []float64                `json:"sparkline7d,omitempty" explain:"sparkline/{id}/{sparklineUntil}/{left}" doc:"Hourly closing prices of 7 days, the last one current: 168 numbers, fewer if the price has a shorter history"`
	SparklineUntil           string                   `json:"sparklineUntil,omitempty" format:"date-time" doc:"Beginning of the hour of the last number of sparkline7d: the one before is the close of the hour that ends then. It moves on in the second minute of an hour"`
	LastUpdated              string                   `json:"lastUpdated" format:"date-time" doc:"End of the last minute in which the row changed"`
}

// TableMeta describes the answer.
type TableMeta struct {
	ListMeta
	Page       int64  `json:"page" doc:"Page number, from 1"`
	PerPage    int64  `json:"perPage" doc:"Rows per page"`
	Total      int    `json:"total" doc:"Number of coins on all pages"`
	TotalPages int64  `json:"totalPages" doc:"Number of pages"`
	Order      string `json:"order" doc:"Sort key"`
	OrderDir   string `json:"orderDir" doc:"Sort direction: asc or desc"`
}

// tableOrders are what the table can be ordered by, by their values.
var tableOrders = []string{
	"market_cap_rank", "market_cap", "current_price", "total_volume", "name", "symbol",
	"price_change_percentage_1h", "price_change_percentage_24h", "price_change_percentage_7d", "price_change_percentage_30d",
}

func (u *Unit) table() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/markets", ID: "listCoinMarketTable", Tag: "coins",
		Summary:     "Market table of all coins that have a price",
		Description: "Each row is as of the end of the last minute in which it changed.",
		Params: []query.Param{
			pageParam,
			{Name: "per_page", Kind: query.Integer, Default: "100", Min: 1, Max: 250, Doc: "Rows per page."},
			{Name: "sparkline", Kind: query.Flag, Default: "false", Stored: true, Doc: "Adds hourly prices of 7 days."},
			{Name: "order", Kind: query.Text, Default: "market_cap_rank", Allowed: tableOrders, Doc: "Sort key."},
			orderParam("order_dir"), categoryParam, searchParam, asOfParam},
		Body: TableBody{}, MaxAge: listAge, Hot: true, Handle: u.getTable,
	}
}

func (u *Unit) getTable(ctx context.Context, r *query.Request) (query.Answer, error) {
	var ix *index
	var closes *views.HourCloses // of sparklines
	var of views.ClosesOf
	var err error
	sparklines := r.Flag("sparkline")
	if sparklines {
		ix, closes, of, err = u.lined(ctx, r)
	} else {
		ix, err = u.indexOf(ctx, r)
	}
	if err != nil {
		return query.Answer{}, err
	}
	s := seek("", r.Text("search"), "", r.Text("category"))
	by := orderKey{by: r.Text("order"), desc: r.Text("order_dir") == "desc", priced: true}
	number, size := r.Integer("page"), r.Integer("per_page")
	key := bodyKey{endpoint: "table", first: number, last: size, a: by.by + r.Text("order_dir")}
	if r.Clamped() != nil {
		key.a += " clamped"
	}
	if !s.all() {
		key.b, key.c = own(s.words[1]), own(s.category)
	}
	if sparklines && ix.asOf {
		at, _ := r.Time("asOf")
		if closes, err = u.closesAsOf(ctx, ix, page(ix.narrow(ix.order(by), &s), number, size), of, at); err != nil {
			return query.Answer{}, err
		}
	}
	key.closes = closes
	return u.answer(ctx, ix, key, func() any {
		found := ix.narrow(ix.order(by), &s)
		body := TableBody{Data: []TableRow{}}
		for _, i := range page(found, number, size) {
			tabled := tableRow(ix.coins[i])
			if closes != nil {
				tabled.Sparkline7d, tabled.SparklineUntil = sparkline(closes.Of(tabled.ID), ix.coins[i]), query.FormatTime(closes.Until.UnixNano())
			}
			body.Data = append(body.Data, tabled)
		}
		total := int64(len(found))
		body.Meta = TableMeta{ListMeta: ix.meta(r, len(body.Data)), Page: number, PerPage: size, Total: len(found),
			TotalPages: (total + size - 1) / size, Order: by.by, OrderDir: r.Text("order_dir")}
		if total == 0 {
			body.Meta.Reason = ix.emptyReason(len(ix.priced))
		}
		return body
	})
}

func tableRow(coin *views.CatalogCoin) TableRow {
	row, c := coin.Market, compact(coin)
	return TableRow{
		ID: c.ID, Symbol: c.Symbol, Name: c.Name, ImageURL: coin.ImageURL, CurrentPrice: row.Price, PriceSource: row.PriceSource,
		MarketCap: row.MarketCap, MarketCapRank: coin.Rank, FullyDilutedValuation: row.FullyDilutedValuation, TotalVolume: row.Volume24H,
		High24h: row.High24H, Low24h: row.Low24H, PriceChange24h: row.PriceChange24H,
		PriceChangePercentage1h: row.Change1H, PriceChangePercentage24h: row.Change24H, PriceChangePercentage7d: row.Change7D, PriceChangePercentage30d: row.Change30D,
		CirculatingSupply: row.CirculatingSupply, TotalSupply: row.TotalSupply, MaxSupply: maxSupply(row), ATH: row.Ath, ATL: row.Atl,
		LastUpdated: query.FormatTime(row.Time),
	}
}
