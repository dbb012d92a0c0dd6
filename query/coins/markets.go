package coins

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	defaultMarkets = "50"
	maxMarkets     = 200
)

// MarketsBody answers GET /api/v1/coins/{coinId}/markets.
type MarketsBody struct {
	CoinID  string      `json:"coinId" example:"bitcoin"`
	Markets []Market    `json:"markets" doc:"Largest volume first"`
	Meta    MarketsMeta `json:"meta"`
}

// MarketsMeta describes the answer.
type MarketsMeta struct {
	query.Meta
	Reason string `json:"reason,omitempty" doc:"Why there are no markets: no_price, no_fresh_inputs"`
}

// Market is one market of the coin that was received lately.
type Market struct {
	Exchange    string   `json:"exchange" example:"kraken" doc:"Slug of the exchange"`
	Pair        string   `json:"pair" example:"BTC/USD" doc:"Symbols of the coin and of the quote asset"`
	VenueSymbol string   `json:"venueSymbol" doc:"As spelled by the exchange"`
	Price       float64  `json:"price" doc:"Last trade price in the quote asset; the mid of bid and ask if there was no recent trade"`
	PriceUSD    *float64 `json:"priceUsd,omitempty" doc:"Absent if the quote asset could not be converted"`
	Volume24h   float64  `json:"volume24h" doc:"USD, as last reported by the exchange; 0 if it reports none"`
	Bid         float64  `json:"bid,omitempty" doc:"In the quote asset"`
	Ask         float64  `json:"ask,omitempty" doc:"In the quote asset"`
	UpdatedAt   string   `json:"updatedAt,omitempty" format:"date-time" doc:"When data of the market was last received"`
}

func (u *Unit) markets() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/coins/{coinId}/markets", ID: "listCoinMarkets", Tool: "coin_markets", Tag: "coins",
		Summary:     "Markets of a coin, by exchange",
		Description: "Those received within 120 seconds before the newest price, accepted or not.",
		Params: []query.Param{
			coinParam, limitParam(defaultMarkets, maxMarkets),
			asOfParam},
		Body: MarketsBody{}, NotFound: true, Hot: true, Handle: u.getMarkets,
	}
}

func (u *Unit) getMarkets(ctx context.Context, r *query.Request) (query.Answer, error) {
	coin, err := u.find(r.Text("coinId"))
	if err != nil {
		return query.Answer{}, err
	}
	if u.priceCache.Now() == 0 {
		return query.Answer{}, query.Starting("no price was read yet")
	}
	body := MarketsBody{CoinID: coin.ID, Markets: []Market{}}
	body.Meta.Clamped = r.Clamped()
	e := u.priceCache.Entry(coin.Own)
	if at, past := r.Time("asOf"); past {
		entries, err := u.priceCache.AsOf(ctx, u.history, []schemas.Coin{coin.Own}, at)
		if err != nil {
			return query.Answer{}, query.FaultOfPast(err, at)
		}
		e = entries[coin.ID]
	}
	if e == nil {
		body.Meta.Reason = "no_price"
		return query.Encode(body)
	}
	for _, in := range e.Latest.Inputs {
		if m, ok := u.market(coin.Symbol, in, e.Latest.Time); ok {
			body.Markets = append(body.Markets, m)
		}
	}
	slices.SortFunc(body.Markets, func(a, b Market) int {
		return cmp.Or(cmp.Compare(b.Volume24h, a.Volume24h), cmp.Compare(a.Exchange, b.Exchange), cmp.Compare(a.VenueSymbol, b.VenueSymbol))
	})
	body.Markets = body.Markets[:min(len(body.Markets), int(r.Integer("limit")))]
	body.Meta.Count, body.Meta.LastUpdated, body.Meta.Reason = len(body.Markets), query.FormatTime(e.Latest.Time), e.Latest.Reason
	answer, err := query.Encode(body)
	answer.Simulated = e.Latest.Simulated
	return answer, err
}

// market reads one input as it was recorded at a time. A market that reports no price at all does not count.
func (u *Unit) market(symbol string, in *eventsv1.PriceInput, at int64) (Market, bool) {
	quote, _ := u.priceCache.Quote(in.QuoteId)
	m := Market{
		Exchange: in.Provider, Pair: symbol + "/" + quote, VenueSymbol: in.Symbol, Price: in.Last, Volume24h: in.Volume24H,
		Bid: in.Bid, Ask: in.Ask, UpdatedAt: query.FormatTime(max(in.LastHeard, in.QuoteHeard)),
	}
	if at-in.LastHeard > int64(schemas.FreshFor) || m.Price <= 0 {
		m.Price = in.Value
	}
	if m.Price <= 0 && in.Bid > 0 && in.Ask > 0 {
		m.Price = (in.Bid + in.Ask) / 2
	}
	if !in.Unpriced && in.Rate > 0 {
		usd := m.Price * in.Rate
		m.PriceUSD = &usd
	}
	return m, m.Price > 0
}
