package coins

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// StatisticsBody answers GET /api/v1/coins/{coinId}/market-data.
type StatisticsBody struct {
	Data Statistics     `json:"data"`
	Meta StatisticsMeta `json:"meta"`
}

// StatisticsMeta describes the answer.
type StatisticsMeta struct {
	LastUpdated string   `json:"lastUpdated,omitempty" format:"date-time" doc:"The same as data.lastUpdated"`
	IsStale     bool     `json:"isStale,omitempty" doc:"The newest minute of these numbers ended more than three minutes ago"`
	Reason      string   `json:"reason,omitempty" doc:"no_market: there is no market data for the coin"`
	OwnChanges  []string `json:"ownChanges,omitempty" doc:"Periods whose change is computed from our candles; the others are as reported by the source"`
}

// Statistics are a coin's market as of the end of a minute. Numbers are in USD, changes in percent; what is not
// known is left out.
type Statistics struct {
	CoinID                       string                   `json:"coinId" example:"bitcoin"`
	Symbol                       string                   `json:"symbol" example:"btc" doc:"Lower case"`
	Price                        *float64                 `json:"price,omitempty" explain:"market/{coinId}/price" doc:"USD"`
	PriceSource                  string                   `json:"priceSource,omitempty" doc:"median of our venues, or the reference source of the price of a coin that none of them trades"`
	MarketCap                    *float64                 `json:"marketCap,omitempty" explain:"market/{coinId}/marketCap" doc:"Price times circulating supply, USD"`
	MarketCapRank                int                      `json:"marketCapRank,omitempty" explain:"market/{coinId}/rank"`
	FullyDilutedValuation        *float64                 `json:"fullyDilutedValuation,omitempty" explain:"market/{coinId}/fullyDilutedValuation" doc:"Price times maximum supply, or total supply if that is unknown, USD"`
	TotalVolume                  *float64                 `json:"totalVolume,omitempty" explain:"market/{coinId}/volume24h" doc:"Within 24 hours"`
	VolumeToMarketCap            *float64                 `json:"volumeToMarketCap,omitempty" explain:"market/{coinId}/volumeToMarketCap" doc:"A ratio, not percent"`
	High24h                      *float64                 `json:"high24h,omitempty" explain:"market/{coinId}/high24h" doc:"Highest price of the last 24 hours, USD"`
	Low24h                       *float64                 `json:"low24h,omitempty" explain:"market/{coinId}/low24h" doc:"Lowest price of the last 24 hours, USD"`
	PriceChange24h               *float64                 `json:"priceChange24h,omitempty" explain:"market/{coinId}/priceChange24h" doc:"Change within 24 hours, USD"`
	PriceChangePercentage1h      *float64                 `json:"priceChangePercentage1h,omitempty" explain:"market/{coinId}/change1h" doc:"Percent, over 1 hour"`
	PriceChangePercentage24h     *float64                 `json:"priceChangePercentage24h,omitempty" explain:"market/{coinId}/change24h" doc:"Percent, over 24 hours"`
	PriceChangePercentage7d      *float64                 `json:"priceChangePercentage7d,omitempty" explain:"market/{coinId}/change7d" doc:"Percent, over 7 days"`
	PriceChangePercentage14d     *float64                 `json:"priceChangePercentage14d,omitempty" explain:"market/{coinId}/change14d" doc:"Percent, over 14 days"`
	PriceChangePercentage30d     *float64                 `json:"priceChangePercentage30d,omitempty" explain:"market/{coinId}/change30d" doc:"Percent, over 30 days"`
	PriceChangePercentage60d     *float64                 `json:"priceChangePercentage60d,omitempty" explain:"market/{coinId}/change60d" doc:"Percent, over 60 days"`
	PriceChangePercentage200d    *float64                 `json:"priceChangePercentage200d,omitempty" explain:"market/{coinId}/change200d" doc:"Percent, over 200 days"`
	PriceChangePercentage1y      *float64                 `json:"priceChangePercentage1y,omitempty" explain:"market/{coinId}/change1y" doc:"Percent, over 365 days"`
	MarketCapChange24h           *float64                 `json:"marketCapChange24h,omitempty" explain:"market/{coinId}/marketCapChange24h" doc:"Change within 24 hours, USD; the supply is taken as unchanged"`
	MarketCapChangePercentage24h *float64                 `json:"marketCapChangePercentage24h,omitempty" explain:"market/{coinId}/marketCapChangePercent24h" doc:"Percent, over 24 hours; equal to the price change, since the supply is taken as unchanged"`
	ATH                          *float64                 `json:"ath,omitempty" explain:"market/{coinId}/ath" doc:"Highest price ever, USD; absent if no source states one"`
	ATHDate                      string                   `json:"athDate,omitempty" format:"date-time" doc:"When ath was reached, accurate to about a day"`
	ATHChangePercentage          *float64                 `json:"athChangePercentage,omitempty" explain:"market/{coinId}/athChange" doc:"Change from the all-time high to the price"`
	ATL                          *float64                 `json:"atl,omitempty" explain:"market/{coinId}/atl" doc:"Lowest price ever, USD; absent if no source states one"`
	ATLDate                      string                   `json:"atlDate,omitempty" format:"date-time" doc:"When atl was reached, accurate to about a day"`
	ATLChangePercentage          *float64                 `json:"atlChangePercentage,omitempty" explain:"market/{coinId}/atlChange" doc:"Change from the all-time low to the price"`
	CirculatingSupply            *float64                 `json:"circulatingSupply,omitempty" explain:"market/{coinId}/circulatingSupply" doc:"Units in circulation"`
	TotalSupply                  *float64                 `json:"totalSupply,omitempty" explain:"market/{coinId}/totalSupply" doc:"Units in existence"`
	MaxSupply                    *query.Nullable[float64] `json:"maxSupply,omitempty" explain:"market/{coinId}/maxSupply" doc:"null if unlimited"`
	SupplySource                 string                   `json:"supplySource,omitempty" doc:"Slug of the source of all supplies"`
	Providers                    int                      `json:"providers" explain:"price/{coinId}/providers" doc:"Venues that the newest price is computed from"`
	Confidence                   *float64                 `json:"confidence,omitempty" explain:"price/{coinId}/confidence" doc:"USD; half width of the confidence interval of the newest price"`
	LastUpdated                  string                   `json:"lastUpdated,omitempty" format:"date-time" doc:"End of the last minute in which these numbers changed"`
}

func (u *Unit) marketStatistics() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/{coinId}/market-data", ID: "getCoinMarketData", Tag: "coins",
		Summary:     "Market statistics of a coin",
		Description: "As of the end of a minute. Numbers are from our venues' prices and candles where these suffice, else from reference sources; supplies are always a source's, and what is unknown is absent.",
		Params:      []query.Param{coinParam, asOfParam}, Body: StatisticsBody{}, NotFound: true, MaxAge: coinAge, Hot: true, Handle: u.getStatistics,
	}
}

func (u *Unit) getStatistics(ctx context.Context, r *query.Request) (query.Answer, error) {
	if at, past := r.Time("asOf"); past {
		return u.statisticsAsOf(ctx, r.Text("coinId"), at)
	}
	coin, err := u.find(r.Text("coinId"))
	if err != nil {
		return query.Answer{}, err
	}
	return u.statisticsOf(coin.CatalogCoin, u.catalog.Snapshot(), u.priceCache.Entry(coin.Own), r.Now)
}

// statisticsAsOf is the answer of an instant.
func (u *Unit) statisticsAsOf(ctx context.Context, name string, at time.Time) (query.Answer, error) {
	var priced []schemas.Coin // only coins of the table are, and they never go
	if now, ok := u.catalog.Snapshot().Find(name); ok {
		priced = append(priced, now.Own)
	}
	snapshot, unrowed := u.served.Coins.At(ctx, at)
	entries, unpriced := u.priceCache.AsOf(ctx, u.history, priced, at)
	if err := views.FaultOfParts(unrowed, unpriced); err != nil {
		return query.Answer{}, query.FaultOfPast(err, at)
	}
	coin, err := u.findThen(snapshot, name)
	if err != nil {
		return query.Answer{}, err
	}
	return u.statisticsOf(coin.CatalogCoin, snapshot, entries[coin.ID], at)
}

// statisticsOf answers of a coin and its price, nil for none, as a snapshot has them at an instant.
func (u *Unit) statisticsOf(coin *views.CatalogCoin, snapshot *views.Snapshot, e *views.Entry, at time.Time) (query.Answer, error) {
	market := row(coin)
	statistics := Statistics{
		CoinID: coin.ID, Symbol: strings.ToLower(coin.Symbol), Price: compact(coin).Price, PriceSource: market.PriceSource,
		MarketCap: market.MarketCap, MarketCapRank: coin.Rank, FullyDilutedValuation: market.FullyDilutedValuation, TotalVolume: market.Volume24H, VolumeToMarketCap: schemas.VolumeToMarketCap(market),
		High24h: market.High24H, Low24h: market.Low24H, PriceChange24h: market.PriceChange24H,
		PriceChangePercentage1h: market.Change1H, PriceChangePercentage24h: market.Change24H, PriceChangePercentage7d: market.Change7D,
		PriceChangePercentage14d: market.Change14D, PriceChangePercentage30d: market.Change30D, PriceChangePercentage60d: market.Change60D,
		PriceChangePercentage200d: market.Change200D, PriceChangePercentage1y: market.Change1Y,
		MarketCapChange24h: market.MarketCapChange24H, MarketCapChangePercentage24h: market.MarketCapChangePct24H,
		ATH: market.Ath, ATHDate: query.FormatTime(market.AthTime), ATHChangePercentage: schemas.PercentFrom(market.Ath, market.Price),
		ATL: market.Atl, ATLDate: query.FormatTime(market.AtlTime), ATLChangePercentage: schemas.PercentFrom(market.Atl, market.Price),
		CirculatingSupply: market.CirculatingSupply, TotalSupply: market.TotalSupply, SupplySource: market.SupplySource,
		LastUpdated: query.FormatTime(market.Time),
	}
	statistics.MaxSupply = maxSupply(market)
	body := StatisticsBody{Data: statistics, Meta: StatisticsMeta{LastUpdated: statistics.LastUpdated, IsStale: staleRows(snapshot, at), OwnChanges: market.OwnChanges}}
	if coin.Market == nil {
		body.Meta.Reason = "no_market"
	}
	simulated := snapshot.Simulated
	if e != nil && !u.priceCache.Freshness(e, at).Stale {
		body.Data.Providers, body.Data.Confidence = int(e.Price.Accepted), &e.Price.Confidence
		simulated = simulated || e.Price.Simulated
	}
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}
