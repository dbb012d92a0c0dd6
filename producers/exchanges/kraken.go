package exchanges

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// kraken is Kraken's spot market, feed version 2.
//
//	feed      https://docs.kraken.com/exchange/api-reference/spot-websocket-v2/ticker and /trade
//	limits    https://docs.kraken.com/api/docs/guides/spot-ratelimits (messages: dynamic, no number
//	          given), https://support.kraken.com/articles/206548367-what-are-the-api-rate-limits (public
//	          calls by address); 150 connection attempts in 10 minutes are said to be tolerated
func kraken() adapter.Venue {
	return adapter.Venue{
		Slug: "kraken", Name: "Kraken", Version: 1,
		URLs: adapter.URLs{
			Stream: "wss://ws.kraken.com/v2",
			REST:   "https://api.kraken.com",
		},
		Countries: countriesOf["kraken"],
		Evidence:  evidenceOf["kraken"],
		Limits: adapter.Limits{
			Connects: 150, ConnectsPer: 10 * time.Minute,
			MarketsPerSocket: 200, // undocumented; keeps one connection's loss small
			Messages:         5,   // undocumented
			Requests:         1,
		},
		Silence:     10 * time.Second, // the feed sends a heartbeat every second without updates
		Listing:     []string{"/0/public/AssetPairs"},
		Instruments: krakenInstruments,
		Split:       krakenSplit,
		Subscribe:   krakenRequest("subscribe"),
		Unsubscribe: krakenRequest("unsubscribe"),
		Heartbeat: adapter.Heartbeat{
			Every:   30 * time.Second,
			Message: heartbeat(`{"method":"ping"}`),
		},
		NewCodec:     func() adapter.Codec { return krakenCodec{} },
		NewRecorded:  func() adapter.Codec { return krakenRecorded{} },
		Tickers:      one("/0/public/Ticker"),
		DecodeREST:   krakenEndpoints.read,
		RecordedREST: krakenEndpoints.with(endpoints{"Trades": krakenTrades}).read,
		History:      krakenHistory(),
	}
}

var krakenEndpoints = endpoints{"AssetPairs": nil, "Ticker": krakenTickers, "OHLC": krakenCandles}

// krakenHistory: https://docs.kraken.com/api/docs/rest-api/get-ohlc-data
// Whatever since says, the newest 720 candles are all there are; since itself is left out of the answer.
func krakenHistory() *adapter.History {
	return &adapter.History{Rows: 720, Newest: 720, Query: func(m adapter.Instrument, interval time.Duration, from, _ time.Time) adapter.Query {
		pair := strings.ReplaceAll(m.Symbol, "/", "")
		if len(m.Aliases) > 0 {
			pair = m.Aliases[0] // the list's key, which names the market in every HTTP answer
		}
		return adapter.Query{Symbol: m.Symbol, Path: fmt.Sprintf("/0/public/OHLC?pair=%s&interval=%d&since=%d",
			url.QueryEscape(pair), interval/time.Minute, from.Unix()-1)}
	}}
}

func krakenRequest(method string) requester {
	type params struct {
		Channel string   `json:"channel"`
		Symbols []string `json:"symbol"`
		// By default a ticker tells a new bid or ask only with the next trade.
		Trigger string `json:"event_trigger,omitempty"`
	}
	return channelRequests(100, []string{"trade", "ticker"}, func(channel string, symbols []string) any {
		p := params{Channel: channel, Symbols: symbols}
		if channel == "ticker" {
			p.Trigger = "bbo"
		}
		return struct {
			Method string `json:"method"`
			Params params `json:"params"`
		}{method, p}
	})
}

// krakenAsset turns the asset codes of Kraken's older interfaces into those of the feed.
func krakenAsset(code string) string {
	switch code {
	case "XBT":
		return "BTC"
	case "XDG":
		return "DOGE"
	}
	return code
}

func krakenInstruments(_ string, body []byte) ([]adapter.Instrument, error) {
	type pair struct {
		Class   string `json:"aclass_base"`
		AltName string `json:"altname"`
		WSName  string `json:"wsname"`
		Status  string `json:"status"`
	}
	pairs, err := krakenResult[pair](body)
	if err != nil {
		return nil, err
	}
	var list []adapter.Instrument
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		p := pairs[key]
		base, quote, ok := strings.Cut(p.WSName, "/")
		trades := p.Status == "" || p.Status == "online" || p.Status == "limit_only" || p.Status == "reduce_only"
		// Dark pools have no feed, hence no name there; tokenized shares are no coins.
		if !ok || !trades || p.Class != "currency" {
			continue
		}
		base, quote = krakenAsset(base), krakenAsset(quote)
		list = append(list, adapter.Instrument{
			Symbol: base + "/" + quote, Base: base, Quote: quote,
			Aliases: []string{key, p.AltName, p.WSName},
		})
	}
	return list, nil
}

// krakenSplit also reads the HTTP interface's oldest names: XXBTZUSD is X-XBT and Z-USD.
func krakenSplit(symbol string) (base, quote string, ok bool) {
	if len(symbol) == 8 && symbol[0] == 'X' && (symbol[4] == 'Z' || symbol[4] == 'X') {
		return krakenAsset(symbol[1:4]), krakenAsset(symbol[5:]), true
	}
	base, quote, ok = adapter.SplitSymbol(symbol)
	return krakenAsset(base), krakenAsset(quote), ok
}

// krakenCodec needs no state: every row names its market.
type krakenCodec struct{}

func (krakenCodec) Decode(f adapter.Frame, out *adapter.Out) error {
	if len(f.Bytes) > 0 && f.Bytes[0] == '[' {
		return krakenVersion1(f.Bytes)
	}
	var m struct {
		Channel string          `json:"channel"`
		Type    string          `json:"type"`
		Data    json.RawMessage `json:"data"`
		Method  string          `json:"method"`
		Error   string          `json:"error"`
		Event   string          `json:"event"` // version 1
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch m.Channel {
	case "trade", "ticker":
	case "heartbeat", "status", "instrument", "book", "level3":
		return nil
	case "":
		if m.Error != "" {
			out.Notice("%s: %s", m.Method, m.Error)
		}
		if m.Method == "" && m.Error == "" && m.Event == "" {
			return producers.Unreadable("message without channel or method")
		}
		return nil
	default:
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	var rows []struct {
		Symbol string        `json:"symbol"`
		Time   string        `json:"timestamp"`
		ID     producers.Num `json:"trade_id"`
		Side   string        `json:"side"`
		Price  producers.Num `json:"price"`
		Size   producers.Num `json:"qty"`
		Bid    producers.Num `json:"bid"`
		Ask    producers.Num `json:"ask"`
		Last   producers.Num `json:"last"`
		Volume producers.Num `json:"volume"`
	}
	if err := parse(m.Data, &rows); err != nil {
		return err
	}
	snapshot := m.Type == "snapshot"
	for _, r := range rows {
		e := adapter.Event{Symbol: r.Symbol, Channel: m.Channel, Time: producers.RFC3339(r.Time), Snapshot: snapshot}
		switch m.Channel {
		case "trade":
			e.Kind, e.ID, e.Side, e.Price, e.Size = adapter.Trade, r.ID, adapter.Side(r.Side), r.Price, r.Size
			if !snapshot {
				out.Count(r.Symbol, r.ID) // numbered without holes within a market
			}
		case "ticker":
			e.Kind, e.Bid, e.Ask, e.Last, e.VolumeBase = adapter.Ticker, r.Bid, r.Ask, r.Last, r.Volume
		}
		out.Add(e)
	}
	return nil
}

// krakenVersion1 refuses the feed's first version, [channel, payload…, name, pair], except for
// its depth, which is not read in any version.
func krakenVersion1(b []byte) error {
	var parts []json.RawMessage
	if err := parse(b, &parts); err != nil {
		return err
	}
	var name string
	if len(parts) < 4 || json.Unmarshal(parts[len(parts)-2], &name) != nil {
		return producers.Unreadable("array of %d elements", len(parts))
	}
	if strings.HasPrefix(name, "book-") {
		return nil
	}
	return adapter.Retired("channel %q of version 1", name)
}

// krakenResult opens an HTTP answer: errors, else a value for each market.
func krakenResult[T any](body []byte) (map[string]T, error) {
	var answer struct {
		Error  []string                   `json:"error"`
		Result map[string]json.RawMessage `json:"result"`
	}
	if err := parse(body, &answer); err != nil {
		return nil, err
	}
	if len(answer.Error) > 0 {
		return nil, producers.Unreadable("the venue answered %q", answer.Error)
	}
	// Beside the market, trades and candles carry "last", where the next page begins.
	delete(answer.Result, "last")
	result := make(map[string]T, len(answer.Result))
	for _, key := range slices.Sorted(maps.Keys(answer.Result)) {
		var value T
		if err := parse(answer.Result[key], &value); err != nil {
			return nil, err
		}
		result[key] = value
	}
	return result, nil
}

func krakenTickers(_ url.Values, body []byte, out *adapter.Out) error {
	return krakenRows(body, func(symbol string, t struct {
		Ask    []producers.Num `json:"a"` // price, whole lots, lots
		Bid    []producers.Num `json:"b"`
		Last   []producers.Num `json:"c"` // price, size
		Volume []producers.Num `json:"v"` // today, 24 hours
	},
	) error {
		if len(t.Ask) < 1 || len(t.Bid) < 1 || len(t.Last) < 1 || len(t.Volume) < 2 {
			return producers.Unreadable("ticker of %s is incomplete", symbol)
		}
		out.Add(adapter.Event{
			Kind: adapter.Ticker, Symbol: symbol, Channel: "rest",
			Ask: t.Ask[0], Bid: t.Bid[0], Last: t.Last[0], VolumeBase: t.Volume[1],
		})
		return nil
	})
}

// krakenCandles reads seconds, open, high, low, close, average, volume, trades. The last one is of the interval that goes on.
func krakenCandles(query url.Values, body []byte, out *adapter.Out) error {
	minutes, err := strconv.Atoi(query.Get("interval"))
	if err != nil {
		minutes = 1 // the documented default
	}
	columns := candleColumns{Start: 0, Open: 1, High: 2, Low: 3, Close: 4, Volume: 6, Unit: time.Second}
	return krakenRows(body, func(symbol string, candles [][]producers.Num) error {
		closed := max(0, len(candles)-1)
		e := adapter.Event{
			Symbol: symbol, Channel: "rest", State: adapter.Closed,
			Interval: adapter.Interval(time.Duration(minutes) * time.Minute),
		}
		if err := columns.add(candles[:closed], e, out); err != nil {
			return err
		}
		e.State = adapter.Open
		return columns.add(candles[closed:], e, out)
	})
}

// krakenRows visits the markets of an HTTP answer in the order of their names.
func krakenRows[T any](body []byte, visit func(symbol string, value T) error) error {
	rows, err := krakenResult[T](body)
	if err != nil {
		return err
	}
	for _, symbol := range slices.Sorted(maps.Keys(rows)) {
		if err := visit(symbol, rows[symbol]); err != nil {
			return err
		}
	}
	return nil
}
