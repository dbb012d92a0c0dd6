package simulator

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// likeness says which recorded messages the simulator's are to look like. A venue adds rows here.
type likeness struct {
	venue string
	// file is below MARKETLOG_RECORDINGS. Its framing is told by its form: sessions and samples as JSON
	// lines, HTTP answers as JSON, subscriptions as text.
	file string
	// of is how the target of an answer begins, in a script.
	of string
	// pick tells which of its messages count, by their decoded JSON; nil takes all.
	pick func(message any) bool
	// send is what a client sends; %s becomes the symbols of up to 60 markets, comma separated in quotes.
	send []string
	// bare leaves out the quotes; each sends one message a market, without quotes.
	bare, each bool
	// lower spells the symbols in small letters.
	lower bool
	// get is asked of the HTTP interface instead; %s becomes a symbol, and it is asked for a few.
	get string
	// keyed are paths of objects whose keys are names of markets.
	keyed []string
	// newer are keys that the documentation has and the recording is too old for.
	newer []string
	// older are keys that the recording has and the documentation no more.
	older []string
	// counters are paths of numbers that happened to be as large as times.
	counters []string
	// tiny are paths of numbers that have an exponent where they are small, which no recorded one is.
	tiny []string
}

// has picks messages whose top-level key has a value.
func has(key string, value any) func(any) bool {
	return func(message any) bool {
		object, _ := message.(map[string]any)
		return object[key] == value
	}
}

// channelOf picks messages of a channel that carry values.
func channelOf(channel string) func(any) bool {
	return func(message any) bool {
		object, _ := message.(map[string]any)
		return object["channel"] == channel && object["data"] != nil
	}
}

// resultOf picks Crypto.com's messages of a channel that carry values.
func resultOf(channel string) func(any) bool {
	return func(message any) bool {
		object, _ := message.(map[string]any)
		result, _ := object["result"].(map[string]any)
		return result["channel"] == channel
	}
}

// without picks messages that lack a top-level key.
func without(key string) func(any) bool {
	return func(message any) bool {
		object, ok := message.(map[string]any)
		return ok && object[key] == nil
	}
}

// acknowledged picks Binance's answers to a request that has none of its own.
func acknowledged(message any) bool {
	object, _ := message.(map[string]any)
	result, ok := object["result"]
	return ok && result == nil
}

// endsWith picks messages whose top-level key has a text that ends so.
func endsWith(key, end string) func(any) bool {
	return func(message any) bool {
		object, _ := message.(map[string]any)
		text, _ := object[key].(string)
		return strings.HasSuffix(text, end)
	}
}

// actionOf picks Bitget's messages of a channel with an action.
func actionOf(channel, action string) func(any) bool {
	about := spotOf(channel, "")
	return func(message any) bool { return has("action", action)(message) && about(message) }
}

// topicOf picks Bybit's messages of the topics that begin so.
func topicOf(prefix string) func(any) bool {
	return func(message any) bool {
		object, _ := message.(map[string]any)
		topic, _ := object["topic"].(string)
		return strings.HasPrefix(topic, prefix)
	}
}

// okxSpotList picks OKX's list of spot instruments.
func okxSpotList(message any) bool {
	object, _ := message.(map[string]any)
	rows, _ := object["data"].([]any)
	row, _ := append(rows, nil)[0].(map[string]any)
	return row["instType"] == "SPOT"
}

// spotOf picks OKX's and Bitget's messages about a spot market: of a channel those that carry values, else those of an event.
func spotOf(channel, event string) func(any) bool {
	return func(message any) bool {
		object, _ := message.(map[string]any)
		arg, _ := object["arg"].(map[string]any)
		symbol, _ := arg["instId"].(string)
		if event != "" {
			return object["event"] == event && arg["channel"] == channel
		}
		return arg["channel"] == channel && object["data"] != nil && strings.Count(symbol, "-") < 2
	}
}

// updateOf picks Gate's messages of a channel that carry values.
func updateOf(channel string) func(any) bool {
	return func(message any) bool {
		object, _ := message.(map[string]any)
		return object["channel"] == channel && object["event"] == "update"
	}
}

// eventOf picks Binance's combined events of a type; those without one have a book's update number.
func eventOf(kind string) func(any) bool {
	return func(message any) bool {
		object, _ := message.(map[string]any)
		payload, _ := object["data"].(map[string]any)
		if kind == "" {
			return payload["u"] != nil && payload["e"] == nil
		}
		return payload["e"] == kind
	}
}

// binanceStreams are what a client sends for combined events of a stream.
func binanceStreams(stream string) []string {
	return []string{
		`{"method":"SET_PROPERTY","params":["combined",true],"id":1}`, `{"method":"SUBSCRIBE","params":["%s@` + stream + `"],"id":2}`,
	}
}

var likenesses = []likeness{
	{venue: "binance", file: "tardis-node/binance.jsonl", pick: eventOf("trade"), lower: true, each: true, send: binanceStreams("trade")},
	{venue: "binance", file: "jkorf/Binance.Net/Spot_ExchangeData_Trades.txt", pick: eventOf("trade"), lower: true, each: true, send: binanceStreams("trade")},
	{venue: "binance", file: "cryptofeed/BINANCE.ws.1.0@4fe029744e.jsonl.gz", pick: eventOf("aggTrade"), lower: true, each: true, send: binanceStreams("aggTrade")},
	{venue: "binance", file: "cryptofeed/BINANCE.ws.1.0@4fe029744e.jsonl.gz", pick: eventOf(""), lower: true, each: true, send: binanceStreams("bookTicker")},
	{venue: "binance", file: "tardis-node/binance.jsonl", pick: eventOf("24hrTicker"), lower: true, each: true, send: binanceStreams("ticker")},
	{venue: "binance", file: "jkorf/Binance.Net/Spot_ExchangeData_Ticker.txt", pick: eventOf("24hrTicker"), lower: true, each: true, send: binanceStreams("ticker")},
	{venue: "binance", file: "jkorf/Binance.Net/Spot_ExchangeData_Ticker.txt", pick: acknowledged, lower: true, each: true, send: binanceStreams("ticker")},
	{
		venue: "binance", file: "cryptofeed/BINANCE.instruments.jsonl.gz", get: "/api/v3/exchangeInfo?permissions=SPOT",
		newer: []string{
			"symbols[].otoAllowed", "symbols[].allowTrailingStop", "symbols[].cancelReplaceAllowed", "symbols[].permissionSets",
			"symbols[].defaultSelfTradePreventionMode", "symbols[].allowedSelfTradePreventionModes", "symbols[].filters[].applyMinToMarket",
			"symbols[].filters[].maxNotional", "symbols[].filters[].applyMaxToMarket",
		},
	},
	{venue: "binance", file: "cryptoexchange/binance-24hr.json.gz", get: "/api/v3/ticker/24hr"},
	{venue: "binance", file: "gocryptotrader/binance-24hr-btcusdt.json", get: "/api/v3/ticker/24hr?symbol=%s"},
	{venue: "binance", file: "gocryptotrader/binance-bookticker.json", get: "/api/v3/ticker/bookTicker?symbol=%s"},
	{venue: "binance", file: "gocryptotrader/binance-price.json", get: "/api/v3/ticker/price?symbol=%s"},
	{venue: "binance", file: "gocryptotrader/binance-trades-ethbtc.json.gz", get: "/api/v3/trades?symbol=%s&limit=1000"},
	{venue: "binance", file: "gocryptotrader/binance-klines-1m.json", get: "/api/v3/klines?symbol=%s&interval=1m&limit=60"},
	{venue: "binance", file: "gocryptotrader/binance-klines-1d.json.gz", get: "/api/v3/klines?symbol=%s&interval=1d&limit=1000"},
	{
		venue: "bitget", file: "tardis-node/bitget.jsonl", pick: actionOf("trade", "update"), each: true,
		send: []string{`{"op":"subscribe","args":[{"instType":"SPOT","channel":"trade","instId":"%s"}]}`},
	},
	{
		venue: "bitget", file: "tardis-node/bitget.jsonl", pick: actionOf("trade", "snapshot"), each: true,
		send: []string{`{"op":"subscribe","args":[{"instType":"SPOT","channel":"trade","instId":"%s"}]}`},
	},
	{
		venue: "bitget", file: "tardis-node/bitget.jsonl", pick: spotOf("trade", "subscribe"), each: true,
		send: []string{`{"op":"subscribe","args":[{"instType":"SPOT","channel":"trade","instId":"%s"}]}`},
	},
	{
		venue: "bitget", file: "jkorf/Bitget.Net/Spot_Ticker.txt", pick: spotOf("ticker", ""), each: true,
		send: []string{`{"op":"subscribe","args":[{"instType":"SPOT","channel":"ticker","instId":"%s"}]}`},
	},
	{
		venue: "bybit", file: "tardis-node/bybit-spot.jsonl", pick: topicOf("publicTrade."), each: true,
		send: []string{`{"op":"subscribe","args":["publicTrade.%s"]}`},
	},
	{
		venue: "bybit", file: "jkorf/Bybit.Net/V5_Spot_Trades.txt", pick: topicOf("publicTrade."), each: true,
		send: []string{`{"op":"subscribe","args":["publicTrade.%s"]}`}, older: []string{"data[].L"}, // of derivatives only
	},
	{
		venue: "bybit", file: "jkorf/Bybit.Net/V5_Spot_Ticker.txt", pick: topicOf("tickers."), each: true,
		send: []string{`{"op":"subscribe","args":["tickers.%s"]}`},
	},
	{
		venue: "bybit", file: "jkorf/Bybit.Net/V5_Spot_Ticker.txt", pick: has("op", "subscribe"), each: true,
		send: []string{`{"req_id":"1","op":"subscribe","args":["tickers.%s"]}`},
	},
	{
		venue: "htx", file: "cryptofeed/HUOBI.ws.44.0.jsonl.gz", pick: endsWith("ch", ".trade.detail"), each: true,
		send: []string{`{"sub":"market.%s.trade.detail","id":1}`},
	},
	{
		venue: "htx", file: "cryptofeed/HUOBI.ws.44.0.jsonl.gz", pick: has("status", "ok"), each: true,
		send: []string{`{"sub":"market.%s.trade.detail","id":1}`},
	},
	{
		venue: "htx", file: "jkorf/HTX.Net/Spot_Ticker.txt", pick: endsWith("ch", ".ticker"), each: true,
		send: []string{`{"sub":"market.%s.ticker","id":"1"}`},
	},
	{venue: "htx", file: "cryptofeed/HUOBI.instruments.jsonl.gz", get: "/v1/common/symbols"},
	{venue: "htx", file: "cryptoexchange/huobi-merged-ethbtc.json", get: "/market/detail/merged?symbol=%s"},
	{
		venue: "htx", file: "cryptoexchange/huobi-trades-ethbtc.json.gz", get: "/market/history/trade?symbol=%s&size=2000",
		newer: []string{"data[].data[].trade-id"},
	},
	{
		venue: "okx", file: "cryptofeed/OKX.ws.1.0.jsonl.gz", pick: spotOf("trades", ""), each: true, newer: []string{"data[].count"},
		send: []string{`{"op":"subscribe","args":[{"channel":"trades","instId":"%s"}]}`},
	},
	{
		venue: "okx", file: "jkorf/OKX.Net/Unified_ExchangeData_Trades.txt", pick: spotOf("trades", ""), each: true,
		send: []string{`{"op":"subscribe","args":[{"channel":"trades","instId":"%s"}]}`},
	},
	{
		venue: "okx", file: "cryptofeed/OKX.ws.1.0.jsonl.gz", pick: spotOf("tickers", ""), each: true,
		send: []string{`{"op":"subscribe","args":[{"channel":"tickers","instId":"%s"}]}`},
	},
	{
		venue: "okx", file: "jkorf/OKX.Net/Unified_ExchangeData_Ticker.txt", pick: spotOf("tickers", "subscribe"), each: true,
		send: []string{`{"op":"subscribe","args":[{"channel":"tickers","instId":"%s"}]}`},
	},
	{venue: "okx", file: "cryptofeed/OKX.instruments.jsonl.gz", pick: okxSpotList, get: "/api/v5/public/instruments?instType=SPOT"},
	{
		venue: "bitstamp", file: "cryptofeed/BITSTAMP.ws.1.0.jsonl.gz", pick: has("event", "trade"), each: true,
		send: []string{`{"event":"bts:subscribe","data":{"channel":"live_trades_%s"}}`},
	},
	{
		venue: "bitstamp", file: "jkorf/Bitstamp.Net/ExchangeApi_Trades.txt", pick: has("event", "bts:subscription_succeeded"), each: true,
		send: []string{`{"event":"bts:subscribe","data":{"channel":"live_trades_%s"}}`},
	},
	{venue: "bitstamp", file: "cryptofeed/BITSTAMP.instruments.jsonl.gz", get: "/api/v2/trading-pairs-info/"},
	{venue: "bitstamp", file: "gocryptotrader/bitstamp-ticker.json", get: "/api/v2/ticker/%s/"},
	{venue: "bitstamp", file: "gocryptotrader/bitstamp-transactions-hour.json.gz", get: "/api/v2/transactions/%s/"},
	{venue: "bitstamp", file: "gocryptotrader/bitstamp-ohlc-1m.json.gz", get: "/api/v2/ohlc/%s/?step=60&limit=1000", newer: []string{"data.pair"}},
	{
		venue: "coinbase", file: "cryptofeed/COINBASE.ws.28.0.jsonl.gz", pick: has("type", "ticker"),
		send:  []string{`{"type":"subscribe","product_ids":[%s],"channels":["ticker"]}`},
		newer: []string{"best_bid_size", "best_ask_size"},
	},
	{
		venue: "coinbase", file: "cryptofeed/COINBASE.ws.28.0.jsonl.gz", pick: has("type", "match"),
		send: []string{`{"type":"subscribe","product_ids":[%s],"channels":["matches"]}`},
	},
	{
		venue: "coinbase", file: "cryptofeed/COINBASE.ws.28.0.jsonl.gz", pick: has("type", "last_match"),
		send: []string{`{"type":"subscribe","product_ids":[%s],"channels":["matches"]}`},
	},
	{
		venue: "coinbase", file: "cryptofeed/COINBASE.ws.28.0.jsonl.gz", pick: has("type", "subscriptions"),
		send:  []string{`{"type":"subscribe","product_ids":[%s],"channels":["matches"]}`},
		newer: []string{"channels[].account_ids"},
	},
	{
		venue: "coinbase", file: "cryptofeed/COINBASE.instruments.jsonl.gz", get: "/products",
		newer: []string{"[].fx_stablecoin", "[].max_slippage_percentage", "[].auction_mode", "[].high_bid_limit_percentage"},
		older: []string{"[].base_min_size", "[].base_max_size", "[].max_market_funds"},
	},
	{venue: "coinbase", file: "cryptoexchange/gdax-ticker-btcusd.json", get: "/products/%s/ticker"},
	{
		venue: "cryptocom", file: "jkorf/CryptoCom.Net/ExchangeApi_Ticker.txt", pick: resultOf("ticker"),
		send: []string{`{"id":1,"method":"subscribe","params":{"channels":["ticker.%s"]}}`}, bare: true, each: true,
	},
	{
		venue: "cryptocom", file: "jkorf/CryptoCom.Net/ExchangeApi_Trades.txt", pick: resultOf("trade"),
		send: []string{`{"id":1,"method":"subscribe","params":{"channels":["trade.%s"]}}`}, bare: true, each: true,
		newer: []string{"result.data[].m"}, counters: []string{"result.data[].d"},
	},
	{
		venue: "cryptocom", file: "jkorf/CryptoCom.Net/ExchangeApi_Trades.txt", pick: without("result"),
		send: []string{`{"id":1,"method":"subscribe","params":{"channels":["trade.%s"]}}`}, bare: true, each: true,
	},
	{
		venue: "kraken", file: "jkorf/Kraken.Net/Spot_Ticker.txt", pick: channelOf("ticker"),
		send:  []string{`{"method":"subscribe","params":{"channel":"ticker","symbol":[%s]}}`},
		newer: []string{"data[].timestamp"},
	},
	{
		venue: "kraken", file: "jkorf/Kraken.Net/Spot_Trades.txt", pick: channelOf("trade"),
		send: []string{`{"method":"subscribe","params":{"channel":"trade","symbol":[%s]}}`},
	},
	{
		venue: "kraken", file: "jkorf/Kraken.Net/Spot_Trades.txt", pick: has("method", "subscribe"),
		send: []string{`{"method":"subscribe","params":{"channel":"trade","symbol":[%s]},"req_id":7}`},
	},
	{
		venue: "kraken", file: "cryptofeed/KRAKEN.instruments.jsonl.gz", get: "/0/public/AssetPairs", keyed: []string{"result"},
		newer: []string{"result.*.cost_decimals", "result.*.costmin", "result.*.tick_size", "result.*.status"},
	},
	{venue: "kraken", file: "cryptoexchange/kraken-ticker-bcheur.json", get: "/0/public/Ticker?pair=%s", keyed: []string{"result"}},
	{venue: "kraken", file: "xchange/kraken-ohlc.json.gz", get: "/0/public/OHLC?pair=%s", keyed: []string{"result"}},
	{
		venue: "gate", file: "jkorf/GateIo.Net/Spot_SubscribeToTradeUpdates.txt", pick: has("event", "update"),
		send: []string{`{"time":1,"channel":"spot.trades","event":"subscribe","payload":[%s]}`}, newer: []string{"result.id_market"},
	},
	{
		venue: "gate", file: "cryptofeed/GATEIO.ws.1.0.jsonl.gz", pick: updateOf("spot.trades"),
		send: []string{`{"time":1,"channel":"spot.trades","event":"subscribe","payload":[%s]}`}, newer: []string{"time_ms", "result.range", "result.id_market"},
	},
	{
		venue: "gate", file: "cryptofeed/GATEIO.ws.1.0.jsonl.gz", pick: updateOf("spot.tickers"),
		send: []string{`{"time":1,"channel":"spot.tickers","event":"subscribe","payload":[%s]}`}, newer: []string{"time_ms"},
	},
	{
		venue: "gate", file: "cryptofeed/GATEIO.instruments.jsonl.gz", get: "/api/v4/spot/currency_pairs",
		newer: []string{"[].base_name", "[].quote_name", "[].max_quote_amount", "[].delisting_time", "[].type", "[].trade_url", "[].st_tag"},
	},
	{
		venue: "kucoin", file: "cryptofeed/KUCOIN.ws.1.0.jsonl.gz", pick: has("subject", "trade.ticker"),
		send: []string{`{"id":1,"type":"subscribe","topic":"/market/ticker:%s","response":true}`}, bare: true,
	},
	{
		venue: "kucoin", file: "cryptofeed/KUCOIN.ws.1.0.jsonl.gz", pick: has("subject", "trade.l3match"),
		send: []string{`{"id":1,"type":"subscribe","topic":"/market/match:%s","response":true}`}, bare: true,
	},
	{
		venue: "kucoin", file: "cryptofeed/KUCOIN.ws.1.0.jsonl.gz", pick: has("type", "ack"),
		send: []string{`{"id":1,"type":"subscribe","topic":"/market/match:%s","response":true}`}, bare: true,
	},
	{
		venue: "kucoin", file: "cryptofeed/KUCOIN.instruments.jsonl.gz", get: "/api/v1/symbols",
		newer: []string{"data[].minFunds", "data[].feeCategory", "data[].makerFeeCoefficient", "data[].takerFeeCoefficient", "data[].st"},
	},
	{
		venue: "kucoin", file: "cryptoexchange/kucoin-alltickers.json.gz", get: "/api/v1/market/allTickers",
		newer: []string{
			"data.time", "data.ticker[].symbolName", "data.ticker[].bestBidSize", "data.ticker[].bestAskSize", "data.ticker[].volValue",
			"data.ticker[].averagePrice", "data.ticker[].takerFeeRate", "data.ticker[].makerFeeRate", "data.ticker[].takerCoefficient",
			"data.ticker[].makerCoefficient",
		},
	},
}

// TestFramesLookLikeRecordedOnes compares what the simulator says with what the venues said.
func TestFramesLookLikeRecordedOnes(t *testing.T) {
	root := os.Getenv("MARKETLOG_RECORDINGS")
	if root == "" {
		t.Skip("tier recordings: MARKETLOG_RECORDINGS is not set: no recordings to compare with")
	}
	for i, row := range likenesses {
		t.Run(fmt.Sprintf("%s/%d", row.venue, i), func(t *testing.T) {
			compare(t, row, recordedMessages(t, filepath.Join(root, row.file)))
		})
	}
}

func compare(t *testing.T, row likeness, messages [][]byte) {
	t.Helper()
	recorded := pick(t, messages, row.pick)
	said := pick(t, saidMessages(t, row), row.pick)
	if len(recorded) == 0 || len(said) == 0 {
		t.Fatalf("%d recorded and %d simulated messages, want some of each", len(recorded), len(said))
	}
	forms := form(said, row.keyed)
	for _, path := range row.tiny {
		forms[path].exponents = 0
	}
	for _, fault := range compareForms(form(recorded, row.keyed), forms, row.newer, row.older, row.counters...) {
		t.Errorf("%s: %s", row.file, fault)
	}
	if t.Failed() {
		t.Logf("recorded %s", short(recorded[0]))
		t.Logf("simulated %s", short(said[0]))
	}
}

func short(message any) string {
	b, _ := json.Marshal(message)
	return string(b[:min(len(b), 900)])
}

func pick(t *testing.T, messages [][]byte, want func(any) bool) []any {
	t.Helper()
	var picked []any
	for _, b := range messages {
		decoder := json.NewDecoder(bytes.NewReader(b))
		decoder.UseNumber()
		var message any
		if err := decoder.Decode(&message); err != nil {
			continue // "pong", or a frame cut off
		}
		if want == nil || want(message) {
			picked = append(picked, message)
		}
	}
	return picked
}

// recordedMessages reads what a venue sent off any of the framings.
func recordedMessages(t *testing.T, path string) (messages [][]byte) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(path, ".gz")
	switch {
	case strings.HasSuffix(name, ".jsonl"):
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var line struct {
				D, X    string
				B       []byte
				Message json.RawMessage
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			switch {
			case line.Message != nil:
				messages = append(messages, line.Message)
			case line.D != "in" && line.D != "http":
			case line.B != nil:
				messages = append(messages, inflated(line.B))
			default:
				messages = append(messages, []byte(line.X))
			}
		}
	case strings.HasSuffix(name, ".txt"):
		text = bytes.ReplaceAll(text, []byte("|1|"), []byte("1"))
		for {
			text = bytes.TrimSpace(text)
			if len(text) == 0 {
				break
			}
			sender := text[0]
			decoder := json.NewDecoder(bytes.NewReader(text[1:]))
			var message json.RawMessage
			if err := decoder.Decode(&message); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			text = text[1+decoder.InputOffset():]
			if sender != '>' {
				messages = append(messages, message)
			}
		}
	default:
		var answer struct{ Body string }
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, []byte(answer.Body))
	}
	return messages
}

func inflated(b []byte) []byte {
	if r, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
		if text, err := io.ReadAll(r); err == nil {
			return text
		}
	}
	return b
}

// saidMessages are the simulator's, of many markets over some time.
func saidMessages(t *testing.T, row likeness) (messages [][]byte) {
	t.Helper()
	venues := List()
	i := slices.IndexFunc(venues, func(v Venue) bool { return v.Slug == row.venue })
	if i < 0 {
		t.Fatalf("%s is not simulated", row.venue)
	}
	venue := venues[i]
	venue.Limits = Limits{}
	s := open(t, 1, venue)
	x := s.exchanges[0]
	if row.get != "" {
		for i, m := range x.markets {
			if i > 0 && (i == 8 || !strings.Contains(row.get, "%s")) {
				break
			}
			r := httptest.NewRequest(http.MethodGet, "/"+row.venue+strings.ReplaceAll(row.get, "%s", m.Symbol), nil)
			w := httptest.NewRecorder()
			s.mux.ServeHTTP(w, r)
			messages = append(messages, w.Body.Bytes())
		}
		return messages
	}
	c := x.pretend(t)
	var names []string
	for i := 0; i < len(x.markets) && len(names) < 60; i += 1 + len(x.markets)/60 {
		name := x.markets[i].Symbol
		if row.lower {
			name = strings.ToLower(name)
		}
		if !row.bare && !row.each {
			name = strconv.Quote(name)
		}
		names = append(names, name)
	}
	lists := []string{strings.Join(names, ",")}
	if row.each {
		lists = names
	}
	for _, text := range row.send {
		for _, list := range lists {
			c.say(strings.ReplaceAll(text, "%s", list))
		}
	}
	// Quiet venues need their time, busy ones say enough in a few seconds.
	for at := noon; len(messages) < 2000 && at.Before(noon.Add(2*time.Minute)); at = at.Add(2 * time.Second) {
		x.pump(at)
		for _, m := range c.heardSince() {
			messages = append(messages, inflated(m.bytes))
		}
	}
	return messages
}

// client is a connection without a network.
type client struct{ *Conn }

func (x *Exchange) pretend(t testing.TB) client {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	c := &Conn{
		x: x, topics: map[topic]bool{}, queue: make(chan message, 1<<20), cut: func() {}, opened: x.clock.Now(),
		Request:  httptest.NewRequest(http.MethodGet, "/"+x.venue.Slug+"/ws?token=t", nil), // KuCoin wants one
		messages: newBucket(x.venue.Limits.Messages, x.venue.Limits.MessagesPer),
	}
	c.heard.Store(c.opened.UnixNano())
	c.told = c.opened
	x.conns[c] = true
	if x.venue.Open != nil {
		x.venue.Open(c)
	}
	return client{c}
}

func (c client) say(text string) {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	c.x.venue.Receive(c.Conn, []byte(text))
}

func (c client) heardSince() (messages []message) {
	for {
		select {
		case m := <-c.queue:
			messages = append(messages, m)
		default:
			return messages
		}
	}
}

// trait is how a value at a path is spelled, over all messages.
type trait struct {
	count int
	types map[string]int
	// Of numbers, and of strings that are numbers: the lengths of their fractions, how many fractions end
	// in 0, and the unit if they can be times.
	numeric   int
	fractions map[int]int
	zeros     int
	exponents int
	units     map[string]int
	// values are the first few different ones.
	values map[string]bool
	// patterns of other strings that hold digits only between punctuation: times.
	patterns map[string]int
}

func form(messages []any, keyed []string) map[string]*trait {
	traits := map[string]*trait{}
	for _, m := range messages {
		describe(traits, "", m, keyed)
	}
	return traits
}

func describe(traits map[string]*trait, path string, value any, keyed []string) {
	tr := traits[path]
	if tr == nil {
		tr = &trait{types: map[string]int{}, values: map[string]bool{}, fractions: map[int]int{}, units: map[string]int{}, patterns: map[string]int{}}
		traits[path] = tr
	}
	tr.count++
	join := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	switch v := value.(type) {
	case map[string]any:
		tr.types["object"]++
		for key, inner := range v {
			if slices.Contains(keyed, path) && key != "last" {
				key = "*"
			}
			describe(traits, join(key), inner, keyed)
		}
	case []any:
		tr.types["array"]++
		for i, inner := range v {
			at := path + "[]"
			switch inner.(type) {
			case map[string]any, []any:
			default:
				at = fmt.Sprintf("%s[%d]", path, min(i, 12))
			}
			describe(traits, at, inner, keyed)
		}
	case json.Number:
		tr.types["number"]++
		tr.number(v.String())
	case string:
		tr.types["string"]++
		if _, err := strconv.ParseFloat(v, 64); err == nil {
			tr.number(v)
		} else if pattern, ok := timePattern(v); ok {
			tr.patterns[pattern]++
		}
	case bool:
		tr.types["bool"]++
	case nil:
		tr.types["null"]++
	}
}

func (tr *trait) number(text string) {
	tr.numeric++
	if len(tr.values) < 5 {
		tr.values[text] = true
	}
	if strings.ContainsAny(text, "eE") {
		tr.exponents++
		return
	}
	_, fraction, _ := strings.Cut(text, ".")
	tr.fractions[len(fraction)]++
	if strings.HasSuffix(fraction, "0") {
		tr.zeros++
	}
	x, _ := strconv.ParseFloat(text, 64)
	unit := "no time"
	for name, perSecond := range map[string]float64{"s": 1, "ms": 1e3, "µs": 1e6, "ns": 1e9} {
		if x > 1.2e9*perSecond && x < 2.5e9*perSecond {
			unit = name
		}
	}
	tr.units[unit]++
}

// timePattern spells every digit 0, if the text is a date or a time of day.
func timePattern(text string) (string, bool) {
	digits := 0
	pattern := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			digits++
			return '0'
		}
		return r
	}, text)
	return pattern, digits >= 8 && strings.Contains(pattern, "00:00") || strings.HasPrefix(pattern, "0000-00-00")
}

// compareForms tells where what was said is not spelled as what was recorded.
func compareForms(recorded, said map[string]*trait, newer, older []string, counters ...string) (faults []string) {
	fault := func(path, format string, a ...any) { faults = append(faults, path+" "+fmt.Sprintf(format, a...)) }
	for _, path := range slices.Sorted(maps.Keys(recorded)) {
		r, s := recorded[path], said[path]
		if s == nil {
			if !slices.Contains(older, path) && r.count >= holders(recorded, path) && !strings.HasSuffix(path, "]") {
				fault(path, "is always in the recording, never simulated")
			}
			continue
		}
		for _, kind := range slices.Sorted(maps.Keys(s.types)) {
			if r.types[kind] == 0 {
				fault(path, "is a %s, recorded are %v", kind, slices.Sorted(maps.Keys(r.types)))
			}
		}
		if r.numeric == r.types["string"]+r.types["number"] && s.numeric != s.types["string"]+s.types["number"] {
			fault(path, "is not always a number")
		}
		if r.exponents == 0 && s.exponents > 0 {
			fault(path, "has an exponent")
		}
		times := r.units["no time"] == 0 && !slices.Contains(counters, path)
		if times && r.numeric > 0 {
			for unit := range s.units {
				if r.units[unit] == 0 {
					fault(path, "is in %q, recorded in %v", unit, slices.Sorted(maps.Keys(r.units)))
				}
			}
		}
		// Shorter ones may be those of the one market that was recorded.
		padded := len(r.fractions) == 1 && r.zeros > 0 && r.fractions[8]+r.fractions[18] > 0
		if padded && r.numeric >= 3 && !slices.Equal(slices.Collect(maps.Keys(r.fractions)), slices.Collect(maps.Keys(s.fractions))) {
			fault(path, "has fractions of %v digits, recorded always %v", slices.Sorted(maps.Keys(s.fractions)), slices.Sorted(maps.Keys(r.fractions)))
		}
		if r.numeric >= 20 && r.zeros == 0 && s.zeros > 0 && !times {
			fault(path, "has %d of %d fractions that end in 0, recorded none of %d", s.zeros, s.numeric, r.numeric)
		}
		if r.zeros*10 > r.numeric && r.numeric >= 20 && s.zeros == 0 && s.numeric >= 50 && len(s.values) >= 5 && !times {
			fault(path, "has no fraction that ends in 0, recorded are %d of %d", r.zeros, r.numeric)
		}
		for pattern := range s.patterns {
			if r.patterns[pattern] == 0 {
				fault(path, "is spelled %s, recorded %v", pattern, slices.Sorted(maps.Keys(r.patterns)))
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(said)) {
		if recorded[path] == nil && !slices.ContainsFunc(newer, func(n string) bool { return path == n || strings.HasPrefix(path, n) }) && !inList(recorded, path) {
			fault(path, "is simulated, never recorded")
		}
	}
	return faults
}

// holders counts the objects that could have had the key at the end of a path.
func holders(traits map[string]*trait, path string) int {
	i := strings.LastIndexByte(path, '.')
	if tr := traits[path[:max(i, 0)]]; tr != nil {
		return tr.types["object"]
	}
	return 0
}

// inList tells that a path is a further element of a recorded list of plain values.
func inList(traits map[string]*trait, path string) bool {
	i := strings.LastIndexByte(path, '[')
	return i >= 0 && strings.HasSuffix(path, "]") && traits[path[:i]+"[0]"] != nil && traits[path[:i]].types["array"] > 0 &&
		traits[path[:i]+"[1]"] != nil && cmp.Compare(len(traits[path[:i]+"[0]"].types), 1) == 0
}

// The comparison itself sees what it is there for.
func TestComparisonSeesDifferences(t *testing.T) {
	recorded := `{"id":1,"p":"1.50000000","t":1700000000000,"at":"2021-04-17T16:43:37.089723Z","q":["a","b"],"n":{"x":1}}`
	for name, test := range map[string]struct {
		said   string
		faults int
	}{
		"same":           {`{"id":2,"p":"7.25000000","t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c","d","e"],"n":{"x":2}}`, 0},
		"missing key":    {`{"p":"7.25000000","t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":2}}`, 1},
		"further key":    {`{"id":2,"z":0,"p":"7.25000000","t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":2}}`, 1},
		"number":         {`{"id":2,"p":7.25000000,"t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":2}}`, 1},
		"unit":           {`{"id":2,"p":"7.25000000","t":1800000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":2}}`, 1},
		"digits of time": {`{"id":2,"p":"7.25000000","t":1800000000000,"at":"2026-01-01T00:00:00.001Z","q":["c"],"n":{"x":2}}`, 1},
		"inner":          {`{"id":2,"p":"7.25000000","t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":"2"}}`, 1},
		"decimals":       {`{"id":2,"p":"7.2","t":1800000000000,"at":"2026-01-01T00:00:00.000001Z","q":["c"],"n":{"x":2}}`, 1},
	} {
		r := [][]byte{[]byte(recorded), []byte(recorded), []byte(recorded)}
		faults := compareForms(form(pick(t, r, nil), nil), form(pick(t, [][]byte{[]byte(test.said)}, nil), nil), nil, nil)
		if len(faults) != test.faults {
			t.Errorf("%s: got %q, want %d faults", name, faults, test.faults)
		}
	}
}
