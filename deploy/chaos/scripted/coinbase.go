package scripted

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// coinbase spells as Coinbase Exchange does:
// https://docs.cdp.coinbase.com/exchange/websocket-feed/channels,
// https://docs.cdp.coinbase.com/api-reference/exchange-api/rest-api/products/get-product-candles and
// https://docs.cdp.coinbase.com/api-reference/exchange-api/rest-api/products/get-all-known-trading-pairs.
type coinbase struct{}

const coinbaseTime = "2006-01-02T15:04:05.000000Z"

func (coinbase) symbol(m *market) string { return m.base + "-" + m.quote }

func (c coinbase) rest(address *url.URL, now time.Time, markets []*market) (any, bool) {
	path := address.Path
	if path == "/products" {
		var list []map[string]any
		for _, m := range markets {
			list = append(list, map[string]any{
				"id": c.symbol(m), "base_currency": m.base, "quote_currency": m.quote,
				"quote_increment": spell(1, m.decimals), "base_increment": "0.00000001", "display_name": m.String(),
				"min_market_funds": "1", "margin_enabled": false, "post_only": false, "limit_only": false, "cancel_only": false,
				"status": "online", "status_message": "", "trading_disabled": false, "fx_stablecoin": false,
				"max_slippage_percentage": "0.02000000", "auction_mode": false, "high_bid_limit_percentage": "",
			})
		}
		return list, true
	}
	name, found := strings.CutPrefix(path, "/products/")
	if symbol, past := strings.CutSuffix(name, "/candles"); found && past {
		return c.candles(symbol, address.Query())
	}
	name, ticker := strings.CutSuffix(name, "/ticker")
	for _, m := range markets {
		if found && ticker && c.symbol(m) == name && !m.silent {
			return map[string]any{
				"ask": m.spell(m.price + 1), "bid": m.spell(m.price - 1), "volume": spell(m.volume, 8),
				"trade_id": m.trade, "price": m.spell(m.price), "size": "0.50000000", "time": now.Format(coinbaseTime),
			}, true
		}
	}
	return nil, false
}

func (coinbase) hello() []string { return nil }

func (coinbase) heartbeat() string { return "" }

func (coinbase) unknown() string { return `{"type":"weather","sky":"clear"}` }

func (c coinbase) request(message []byte, markets []*market) (asked []*market, answers []string, history bool, err error) {
	var m struct {
		Type     string   `json:"type"`
		Products []string `json:"product_ids"`
		Channels []string `json:"channels"`
	}
	if err := json.Unmarshal(message, &m); err != nil || m.Type != "subscribe" {
		return nil, nil, false, fmt.Errorf("reading a request: %.100s", message)
	}
	type channel struct {
		Name     string   `json:"name"`
		Products []string `json:"product_ids"`
	}
	var channels []channel
	for _, name := range m.Channels {
		channels = append(channels, channel{name, m.Products})
	}
	for _, known := range markets {
		if slices.Contains(m.Products, c.symbol(known)) {
			asked = append(asked, known)
		}
	}
	text, err := json.Marshal(map[string]any{"type": "subscriptions", "channels": channels})
	return asked, []string{string(text)}, true, err
}

func (c coinbase) spell(s quoted) string {
	m := s.market
	side := "sell"
	if s.buy {
		side = "buy"
	}
	if s.trade {
		kind := "match"
		if s.history {
			kind = "last_match"
		}
		return fmt.Sprintf(`{"type":%q,"trade_id":%d,"maker_order_id":"ac928c66-ca53-498f-9c13-a110027a60e8","taker_order_id":"132fb6ae-456b-4654-b4e0-d681ac05cea1","side":%q,"size":%q,"price":%q,"product_id":%q,"sequence":%d,"time":%q}`,
			kind, s.number, side, s.size, s.price, c.symbol(m), m.sequence, s.at.UTC().Format(coinbaseTime))
	}
	return fmt.Sprintf(`{"type":"ticker","sequence":%d,"product_id":%q,"price":%q,"open_24h":%q,"volume_24h":%q,"low_24h":%q,"high_24h":%q,"volume_30d":%q,"best_bid":%q,"best_bid_size":"0.46688654","best_ask":%q,"best_ask_size":"1.56637040","side":%q,"time":%q,"trade_id":%d,"last_size":%q}`,
		s.number, c.symbol(m), s.price, s.price, spell(m.volume, 8), s.price, s.price, spell(m.volume, 8), s.bid, s.ask, side,
		s.at.UTC().Format(coinbaseTime), m.trade, s.size)
}
