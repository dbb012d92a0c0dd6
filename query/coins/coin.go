package coins

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// CoinBody answers GET /api/v1/coins/{coinId} in the reference view; in the tool view Coin itself does.
type CoinBody struct {
	Data Coin `json:"data"`
}

// Coin is all that is known of a coin. Numbers are in USD and as of the end of a minute; what is not known is left out.
type Coin struct {
	ID                       string                   `json:"id" example:"bitcoin" doc:"Id of the coin"`
	Symbol                   string                   `json:"symbol" example:"btc" doc:"Lower case"`
	Name                     string                   `json:"name" example:"Bitcoin" doc:"Name of the coin"`
	Description              string                   `json:"description,omitempty" doc:"In English, in the source's words"`
	Homepage                 string                   `json:"homepage,omitempty" doc:"The first of the homepage links"`
	ImageURL                 string                   `json:"imageUrl,omitempty"`
	MarketCapRank            int                      `json:"marketCapRank,omitempty" explain:"market/{id}/rank"`
	Categories               []string                 `json:"categories" doc:"Names of the categories, as the source spells them"`
	Platforms                map[string]string        `json:"platforms" doc:"Contract address by platform"`
	MarketCap                *float64                 `json:"marketCap,omitempty" explain:"market/{id}/marketCap" doc:"Price times circulating supply, USD"`
	CurrentPrice             *float64                 `json:"currentPrice,omitempty" explain:"market/{id}/price" doc:"USD"`
	PriceSource              string                   `json:"priceSource,omitempty" doc:"median of our venues, or the reference source of the price of a coin that none of them trades"`
	PriceChange24h           *float64                 `json:"priceChange24h,omitempty" explain:"market/{id}/priceChange24h" doc:"Change within 24 hours, USD"`
	PriceChangePercentage24h *float64                 `json:"priceChangePercentage24h,omitempty" explain:"market/{id}/change24h" doc:"Percent"`
	TotalVolume              *float64                 `json:"totalVolume,omitempty" explain:"market/{id}/volume24h" doc:"Within 24 hours"`
	CirculatingSupply        *float64                 `json:"circulatingSupply,omitempty" explain:"market/{id}/circulatingSupply" doc:"Units in circulation"`
	TotalSupply              *float64                 `json:"totalSupply,omitempty" explain:"market/{id}/totalSupply" doc:"Units in existence"`
	MaxSupply                *query.Nullable[float64] `json:"maxSupply,omitempty" explain:"market/{id}/maxSupply" doc:"null if unlimited"`
	SupplySource             string                   `json:"supplySource,omitempty" doc:"Slug of the source of all supplies"`
	CreatedAt                string                   `json:"createdAt,omitempty" format:"date-time" doc:"Launch date, as stated by a source; absent if unknown"`
	UpdatedAt                string                   `json:"updatedAt,omitempty" format:"date-time" doc:"Time of the newest of these values"`
	DetailsUpdatedAt         string                   `json:"detailsUpdatedAt,omitempty" format:"date-time" doc:"When description, categories, links and developer statistics were read; absent before the first time"`
	IsStale                  bool                     `json:"isStale,omitempty" doc:"The newest minute of these numbers ended more than three minutes ago"`
	Inactive                 bool                     `json:"inactive,omitempty" doc:"Known to the source, but no longer traded"`
	Links                    map[string][]string      `json:"links,omitempty" doc:"Addresses by kind: homepage, explorer, repository, chat, forum, twitter, reddit, telegram, whitepaper"`
	Developer                map[string]float64       `json:"developer,omitempty" explain:"developer/{id}/{key}" doc:"Statistics of the repositories by name"`
	Attribution              []Attribution            `json:"attribution" doc:"Source of the description"`
	Ambiguous                bool                     `json:"ambiguous,omitempty" doc:"The name is ambiguous: other coins match it too"`
	Alternatives             []views.Alternative      `json:"alternatives,omitempty"`
}

// Attribution names a source as its terms want it.
type Attribution struct {
	Source  string `json:"source" example:"coingecko" doc:"Slug of the source"`
	Name    string `json:"name,omitempty" doc:"Name of the source"`
	URL     string `json:"url,omitempty" doc:"Address of the source's interface"`
	License string `json:"license,omitempty" doc:"Licence or terms of the source's values, in words"`
	Text    string `json:"text,omitempty" doc:"Attribution required by the source"`
}

func (u *Unit) coin() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/{coinId}", ID: "getCoin", Tool: "get_coin", Tag: "coins",
		Summary:     "Details of a coin",
		Description: "For a coin whose id equals a fixed path segment, use /coins/by-id/{id}.",
		Params:      []query.Param{coinParam, asOfParam}, Body: CoinBody{}, ToolBody: Coin{}, NotFound: true, Hot: true,
		Handle: func(ctx context.Context, r *query.Request) (query.Answer, error) {
			ix, coin, err := u.findIn(ctx, r, r.Text("coinId"))
			if err != nil {
				return query.Answer{}, err
			}
			return u.describeCoin(ctx, r, ix, coin)
		},
	}
}

func (u *Unit) byID() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/by-id/{id}", ID: "getCoinByID", Tag: "coins",
		Summary:     "Details of a coin, by id only",
		Description: "As /coins/{coinId}, but a symbol is not accepted. It also finds coins whose id equals a fixed path segment.",
		Params: []query.Param{{Name: "id", In: query.Path, Kind: query.Text, Required: true, MaxLength: 128, Example: "bitcoin",
			Doc: "Coin id, case-insensitive; also one that equals a fixed path segment."}, asOfParam},
		Body: CoinBody{}, ToolBody: Coin{}, NotFound: true, Hot: true,
		Handle: func(ctx context.Context, r *query.Request) (query.Answer, error) {
			ix, err := u.indexOf(ctx, r)
			if err != nil {
				return query.Answer{}, err
			}
			coin := ix.snapshot.ByID(strings.ToLower(r.Text("id")))
			if coin == nil {
				return query.Answer{}, query.NoCoin(ix.snapshot, r.Text("id"))
			}
			return u.describeCoin(ctx, r, ix, views.Named{CatalogCoin: coin})
		},
	}
}

func (u *Unit) describeCoin(ctx context.Context, r *query.Request, ix *index, coin views.Named) (query.Answer, error) {
	return u.answer(ctx, ix, bodyKey{endpoint: "coin", view: r.View, a: coin.ID, others: coin.OthersKey()}, func() any {
		details := ix.coin(coin.CatalogCoin)
		details.Alternatives, details.Ambiguous = coin.Alternatives(), len(coin.Others) > 0
		if r.View == query.Tool {
			return details
		}
		return CoinBody{details}
	})
}

func (ix *index) coin(coin *views.CatalogCoin) Coin {
	c, market := compact(coin), row(coin)
	details := Coin{
		ID: c.ID, Symbol: c.Symbol, Name: c.Name, Description: coin.Description, ImageURL: coin.ImageURL, MarketCapRank: c.Rank,
		Categories: coin.Categories, Platforms: map[string]string{},
		MarketCap: c.MarketCap, CurrentPrice: c.Price, PriceSource: market.PriceSource,
		PriceChange24h: market.PriceChange24H, PriceChangePercentage24h: market.Change24H, TotalVolume: market.Volume24H,
		CirculatingSupply: market.CirculatingSupply, TotalSupply: market.TotalSupply, SupplySource: market.SupplySource,
		CreatedAt: query.FormatTime(created(coin)), Attribution: ix.attribution(coin),
		UpdatedAt:        query.FormatTime(max(market.Time, coin.Listed.GetIngestTime(), coin.Detailed.GetIngestTime())),
		DetailsUpdatedAt: query.FormatTime(coin.Detailed.GetIngestTime()),
		Inactive:         coin.Listed.GetInactive(),
		IsStale:          ix.stale,
	}
	if details.Categories == nil {
		details.Categories = []string{}
	}
	for _, p := range coin.Platforms {
		details.Platforms[p.Name] = p.Address
	}
	// A source that reports supplies and no greatest one means that there is none.
	details.MaxSupply = maxSupply(market)
	for _, link := range coin.Detailed.GetLinks() {
		if details.Links == nil {
			details.Links = map[string][]string{}
		}
		details.Links[link.Kind] = append(details.Links[link.Kind], link.Url)
	}
	if home := details.Links["homepage"]; len(home) > 0 {
		details.Homepage = home[0]
	}
	for _, statistic := range coin.Detailed.GetDeveloper() {
		if details.Developer == nil {
			details.Developer = map[string]float64{}
		}
		details.Developer[statistic.Name] = statistic.Value
	}
	return details
}

// attribution names the sources of what is served of a coin, by slug.
func (ix *index) attribution(coin *views.CatalogCoin) []Attribution {
	market := row(coin)
	sources := []string{coin.Listed.GetSource(), coin.Detailed.GetSource(), market.SupplySource}
	if market.PriceSource != ownPrice {
		sources = append(sources, market.PriceSource)
	}
	slices.Sort(sources)
	named := []Attribution{}
	for _, source := range slices.Compact(sources) {
		if source == "" {
			continue
		}
		notice := cmp.Or(ix.snapshot.Notices[source], &eventsv1.SourceNotice{})
		named = append(named, Attribution{source, notice.Name, notice.Url, notice.License, notice.Attribution})
	}
	return named
}

// ownPrice is the source of prices that our own venues make.
const ownPrice = "median"

// maxSupply is null where the source of the supply reports no greatest one, and nil where no source reports a supply.
func maxSupply(market *eventsv1.Market) *query.Nullable[float64] {
	if market.MaxSupply == nil && market.SupplySource == "" {
		return nil
	}
	return &query.Nullable[float64]{Value: market.MaxSupply}
}
