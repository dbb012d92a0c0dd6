package scripted

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// kraken spells as Kraken does, version 2 of the feed:
// https://docs.kraken.com/api/docs/websocket-v2/ticker, …/trade, …/heartbeat, …/status, …/ping and
// https://docs.kraken.com/api/docs/rest-api/get-tradable-asset-pairs.
// Numbers are JSON numbers, and tickers carry neither a time nor a sequence.
type kraken struct{}

const krakenTime = "2006-01-02T15:04:05.000000Z"

func (kraken) symbol(m *market) string { return m.base + "/" + m.quote }

// legacy is the name of an asset in the HTTP interface.
func legacy(asset string) string {
	switch asset {
	case "BTC":
		return "XXBT"
	case "ETH", "XRP", "LTC", "XLM":
		return "X" + asset
	case "DOGE":
		return "XXDG"
	case "USD":
		return "ZUSD"
	}
	return asset
}

// short is the newer of the HTTP interface's names.
func short(asset string) string {
	switch asset {
	case "BTC":
		return "XBT"
	case "DOGE":
		return "XDG"
	}
	return asset
}

func (k kraken) rest(address *url.URL, _ time.Time, markets []*market) (any, bool) {
	result := map[string]any{}
	switch address.Path {
	case "/0/public/AssetPairs":
		for _, m := range markets {
			result[legacy(m.base)+legacy(m.quote)] = map[string]any{
				"altname": short(m.base) + short(m.quote), "wsname": short(m.base) + "/" + short(m.quote),
				"aclass_base": "currency", "base": legacy(m.base), "aclass_quote": "currency", "quote": legacy(m.quote),
				"lot": "unit", "cost_decimals": 5, "pair_decimals": m.decimals, "lot_decimals": 8, "lot_multiplier": 1,
				"ordermin": "0.0001", "costmin": "0.5", "tick_size": spell(1, m.decimals), "status": "online",
			}
		}
	case "/0/public/Ticker":
		for _, m := range markets {
			if m.silent {
				continue
			}
			volume := spell(m.volume, 8)
			result[legacy(m.base)+legacy(m.quote)] = map[string]any{
				"a": []string{m.spell(m.price + 1), "1", "1.000"}, "b": []string{m.spell(m.price - 1), "1", "1.000"},
				"c": []string{m.spell(m.price), "0.5"}, "v": []string{volume, volume}, "p": []string{m.spell(m.price), m.spell(m.price)},
				"t": []int{1000, 2000}, "l": []string{m.spell(m.price), m.spell(m.price)}, "h": []string{m.spell(m.price), m.spell(m.price)},
				"o": m.spell(m.price),
			}
		}
	default:
		return nil, false
	}
	return map[string]any{"error": []string{}, "result": result}, true
}

func (kraken) hello() []string {
	return []string{`{"channel":"status","data":[{"api_version":"v2","connection_id":12393906104898154338,"system":"online","version":"2.0.4"}],"type":"update"}`}
}

func (kraken) heartbeat() string { return `{"channel":"heartbeat"}` }

func (kraken) unknown() string { return `{"channel":"weather","type":"update","data":[]}` }

func (k kraken) request(message []byte, markets []*market) (asked []*market, answers []string, history bool, err error) {
	var m struct {
		Method string `json:"method"`
		Params struct {
			Channel string   `json:"channel"`
			Symbols []string `json:"symbol"`
		} `json:"params"`
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return nil, nil, false, fmt.Errorf("reading a request: %.100s", message)
	}
	at := time.Now().UTC().Format(krakenTime)
	switch m.Method {
	case "ping":
		return nil, []string{fmt.Sprintf(`{"method":"pong","time_in":%q,"time_out":%q}`, at, at)}, false, nil
	case "subscribe":
		for _, known := range markets {
			if !slices.Contains(m.Params.Symbols, k.symbol(known)) {
				continue
			}
			asked = append(asked, known)
			answers = append(answers, fmt.Sprintf(`{"method":"subscribe","result":{"channel":%q,"snapshot":true,"symbol":%q},"success":true,"time_in":%q,"time_out":%q}`,
				m.Params.Channel, k.symbol(known), at, at))
		}
		return asked, answers, m.Params.Channel == "trade", nil
	}
	return nil, nil, false, fmt.Errorf("reading a request: %.100s", message)
}

func (k kraken) spell(s quoted) string {
	m := s.market
	kind, side := "update", "sell"
	if s.history {
		kind = "snapshot"
	}
	if s.buy {
		side = "buy"
	}
	price := s.price
	if price == "NaN" {
		price = `"NaN"` // JSON has no such number
	}
	if s.trade {
		return fmt.Sprintf(`{"channel":"trade","type":%q,"data":[{"symbol":%q,"side":%q,"price":%s,"qty":%s,"ord_type":"market","trade_id":%d,"timestamp":%q}]}`,
			kind, k.symbol(m), side, price, s.size, s.number, s.at.UTC().Format(krakenTime))
	}
	high := strings.TrimPrefix(s.price, "-")
	return fmt.Sprintf(`{"channel":"ticker","type":%q,"data":[{"symbol":%q,"bid":%s,"bid_qty":740.0,"ask":%s,"ask_qty":1361.44813783,"last":%s,"volume":%s,"vwap":%s,"low":%s,"high":%s,"change":-0.00017,"change_pct":-0.17}]}`,
		kind, k.symbol(m), s.bid, s.ask, price, spell(m.volume, 8), high, high, high)
}
