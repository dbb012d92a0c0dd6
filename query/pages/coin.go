package pages

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/marketlog/marketlog/query"
)

// coinView is the page of a coin. The script gets the API's answers as they are. It asks for the candles by itself: they come from
// the store, which a page must not wait for.
type coinView struct {
	Coin   coinAnswer `json:"-"`
	Why    *whyAnswer `json:"-"`
	WhyNot string     `json:"whyNot,omitempty"`

	CoinBody    json.RawMessage `json:"coin"`
	WhyBody     json.RawMessage `json:"why,omitempty"`
	MarketsBody json.RawMessage `json:"markets,omitempty"`
	RowBody     json.RawMessage `json:"row,omitempty"`
}

// What the page itself reads of the API's answers.
type (
	coinAnswer struct {
		ID                       string
		Symbol                   string
		Name                     string
		MarketCapRank            int
		CurrentPrice             *float64
		PriceChangePercentage24h *float64
		MarketCap, TotalVolume   *float64
	}
	whyAnswer struct {
		Price      float64
		Confidence float64
		Timestamp  string
		Accepted   []string
		Rejected   []string
		Reproduced bool
		Inputs     []struct {
			Provider    string
			VenueSymbol string
			PriceUSD    *float64
			Accepted    bool
			Reason      string
			AgeMs       int64
		}
	}
)

// sendCoin answers /coins/{id}, by id or symbol.
func (u *Unit) sendCoin(c *fiber.Ctx) error {
	name := param(c, "id")
	r, ok, err := u.route(c, "Coin")
	if !ok {
		return err
	}
	v, err := u.coin(r, name)
	if err != nil {
		return u.fail(r.ctx, err)
	}
	if !wantsPage(r.ctx) {
		return u.sendCoinText(c, v)
	}
	return u.show(r.ctx, http.StatusOK, view{Page: pageCoin, Title: v.Coin.Name, About: v.Coin.Name + ": price, history, and what the price is made from.", Data: v, Coin: v})
}

func (u *Unit) coin(r begun, name string) (*coinView, error) {
	v := &coinView{}
	var coin struct{ Data coinAnswer }
	var err error
	if v.CoinBody, err = u.ask(r, "getCoin", map[string]string{"coinId": name}, &coin); err != nil {
		return nil, err
	}
	v.Coin = coin.Data
	v.Coin.Symbol = strings.ToUpper(v.Coin.Symbol)
	var why struct{ Data *whyAnswer }
	v.WhyBody, err = u.ask(r, "explainPrice", map[string]string{"symbol": v.Coin.ID}, &why)
	v.Why = why.Data
	var shown *query.Error
	if errors.As(err, &shown) {
		v.WhyNot, err = shown.Message, nil
	}
	if err != nil {
		return nil, err
	}
	for operation, part := range map[string]struct {
		params map[string]string
		into   *json.RawMessage
	}{
		"listCoinMarkets": {map[string]string{"coinId": v.Coin.ID, "limit": "50"}, &v.MarketsBody},
		"listPrices":      {map[string]string{"symbols": v.Coin.ID}, &v.RowBody},
	} {
		var any struct{}
		if *part.into, err = u.ask(r, operation, part.params, &any); optional(err) != nil {
			return nil, err
		}
	}
	return v, nil
}
