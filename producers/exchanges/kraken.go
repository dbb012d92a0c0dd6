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
		Limits: adapter.Limits{
			Connects: 150, ConnectsPer: 10 * time.Minute,
			MarketsPerSocket: 200, // undocumented; keeps one connection's loss small
			Messages:         5,   // undocumented
			Requests:         1,
		},
		Silence:     10 * time.Second, // the feed sends a heartbeat every second without updates
		Listing:     []string{"/0/public/AssetPairs"},
		Instruments: krakenInstruments, Halted: krakenHalted,
		Split:       krakenSplit,
		Subscribe:   krakenRequests.with("subscribe"),
		Unsubscribe: krakenRequests.with("unsubscribe"),
		Heartbeat: adapter.Heartbeat{
			Every:   30 * time.Second,
			Message: heartbeat(`{"method":"ping"}`),
		},
		NewCodec:     adapter.Stateless(decodeKraken), // every row names its market
		NewRecorded:  adapter.Stateless(decodeKrakenRecorded),
		Tickers:      one("/0/public/Ticker"),
		DecodeREST:   krakenEndpoints.byName(),
		RecordedREST: krakenEndpoints.with(endpoints{"Trades": krakenPast}).byName(),
		History:      krakenHistory(),
	}
}

var krakenEndpoints = endpoints{"AssetPairs": nil, "Ticker": krakenPolled, "OHLC": krakenCandles}

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

// krakenRequests ask for tickers with each new bid or ask: by default they are sent with the next trade.
var krakenRequests = requests{
	Most: 100,
	Messages: []string{
		`{"method":"<verb>","params":{"channel":"trade","symbol":[<topics>]}}`,
		`{"method":"<verb>","params":{"channel":"ticker","symbol":[<topics>],"event_trigger":"bbo"}}`,
	},
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
	return krakenPairs(body, false)
}

func krakenHalted(_ string, body []byte) ([]adapter.Instrument, error) {
	return krakenPairs(body, true)
}

// krakenPairs reads the pairs that trade, or those that do not.
func krakenPairs(body []byte, halted bool) (list []adapter.Instrument, err error) {
	err = krakenRows(body, func(key string, p struct {
		Class   string `json:"aclass_base"`
		AltName string `json:"altname"`
		WSName  string `json:"wsname"`
		Status  string `json:"status"`
	},
	) error {
		base, quote, ok := strings.Cut(p.WSName, "/")
		trades := p.Status == "" || p.Status == "online" || p.Status == "limit_only" || p.Status == "reduce_only"
		// Dark pools have no feed, hence no name there; tokenized shares are not coins.
		if ok && trades != halted && p.Class == "currency" {
			base, quote = krakenAsset(base), krakenAsset(quote)
			in := adapter.Instrument{Symbol: base + "/" + quote, Base: base, Quote: quote, Aliases: []string{key, p.AltName, p.WSName}}
			if halted {
				in.Status = "status=" + p.Status
			}
			list = append(list, in)
		}
		return nil
	})
	return list, err
}

// krakenSplit also reads the HTTP interface's oldest names: XXBTZUSD is X-XBT and Z-USD.
func krakenSplit(symbol string) (base, quote string, ok bool) {
	if len(symbol) == 8 && symbol[0] == 'X' && (symbol[4] == 'Z' || symbol[4] == 'X') {
		return krakenAsset(symbol[1:4]), krakenAsset(symbol[5:]), true
	}
	base, quote, ok = adapter.SplitSymbol(symbol)
	return krakenAsset(base), krakenAsset(quote), ok
}

var (
	krakenTrades = object{
		Kind: adapter.Trade, Channel: "trade", Clock: rfc3339, Counted: true,
		Symbol: "symbol", Time: "timestamp", ID: "trade_id", Price: "price", Size: "qty", Side: "side",
	}.reader()
	krakenTickers = object{
		Kind: adapter.Ticker, Channel: "ticker", Clock: rfc3339,
		Symbol: "symbol", Time: "timestamp", Last: "last", Bid: "bid", Ask: "ask", Base: "volume",
	}.reader()
)

func decodeKraken(f adapter.Frame, out *adapter.Out) error {
	var m struct {
		Channel string          `json:"channel"`
		Type    string          `json:"type"`
		Data    json.RawMessage `json:"data"`
		Method  string          `json:"method"`
		Error   string          `json:"error"`
	}
	if err := parse(f.Bytes, &m); err != nil {
		return err
	}
	switch e := (adapter.Event{Snapshot: m.Type == "snapshot"}); m.Channel {
	case "trade":
		return krakenTrades.list(m.Data, e, out)
	case "ticker":
		return krakenTickers.list(m.Data, e, out)
	case "heartbeat", "status", "instrument", "book", "level3":
	case "":
		if m.Error != "" {
			out.Notice("%s: %s", m.Method, m.Error)
		} else if m.Method == "" {
			return producers.Unreadable("message without channel or method")
		}
	default:
		return producers.Unreadable("message of channel %q", m.Channel)
	}
	return nil
}

// krakenRows opens an HTTP answer, which is errors, else a value for each market, and visits them in the order of their names.
func krakenRows[T any](body []byte, visit func(symbol string, value T) error) error {
	var answer struct {
		Error  []string                   `json:"error"`
		Result map[string]json.RawMessage `json:"result"`
	}
	if err := parse(body, &answer); err != nil {
		return err
	}
	if len(answer.Error) > 0 {
		return producers.Unreadable("the venue answered %q", answer.Error)
	}
	// Beside the market, trades and candles carry "last", where the next page begins.
	delete(answer.Result, "last")
	for _, symbol := range slices.Sorted(maps.Keys(answer.Result)) {
		var value T
		if err := parse(answer.Result[symbol], &value); err != nil {
			return err
		}
		if err := visit(symbol, value); err != nil {
			return err
		}
	}
	return nil
}

func krakenPolled(_ url.Values, body []byte, out *adapter.Out) error {
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
