package venues

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scripted are fidelity cases with samples made after the documentation, where nothing was recorded. Their files are
// below the adapters' scripts, and are read by TestFramesLookLikeDocumentedOnes.
var scripted = []fidelityCase{
	{
		venue: "cryptocom", file: "cryptocom/http.txt", of: "/public/get-instruments", get: "/public/get-instruments",
		newer: []string{
			"result.data[].display_name", "result.data[].quote_decimals", "result.data[].quantity_decimals", "result.data[].price_tick_size",
			"result.data[].qty_tick_size", "result.data[].max_leverage", "result.data[].expiry_timestamp_ms", "result.data[].beta_product",
			"result.data[].margin_buy_enabled", "result.data[].margin_sell_enabled",
		},
	},
	{
		venue: "cryptocom", file: "cryptocom/http.txt", of: "/exchange/v1/public/get-tickers", get: "/public/get-tickers", pick: has("code", json.Number("0")),
		newer: []string{"result.data[].c", "result.data[].bs", "result.data[].ks", "result.data[].oi"},
	},
	{
		venue: "cryptocom", file: "cryptocom/http.txt", of: "/exchange/v1/public/get-trades", get: "/public/get-trades?instrument_name=%s",
		newer: []string{"result.data[].m"},
	},
	{
		venue: "cryptocom", file: "cryptocom/http.txt", of: "/exchange/v1/public/get-candlestick", get: "/public/get-candlestick?instrument_name=%s&timeframe=M5",
		newer: []string{"result.instrument_name"},
	},
	{
		venue: "bitfinex", file: "bitfinex/feed.txt", pick: kindOf("te", "tu"), each: true,
		send: []string{`{"event":"subscribe","channel":"trades","symbol":"%s"}`},
	},
	{
		venue: "bitfinex", file: "bitfinex/feed.txt", pick: listsOf(4), each: true,
		send: []string{`{"event":"subscribe","channel":"trades","symbol":"%s"}`},
	},
	{
		venue: "bitfinex", file: "bitfinex/feed.txt", pick: listOf(10), each: true, tiny: []string{"[][4]"},
		send: []string{`{"event":"subscribe","channel":"ticker","symbol":"%s"}`},
	},
	{
		venue: "bitfinex", file: "bitfinex/feed.txt", pick: all(listOf(10), longer(2)), each: true, tiny: []string{"[][4]"},
		send: []string{`{"event":"conf","flags":98304}`, `{"event":"subscribe","channel":"ticker","symbol":"%s"}`},
	},
	{
		venue: "bitfinex", file: "bitfinex/feed.txt", pick: all(has("event", "subscribed"), has("channel", "ticker")), each: true,
		send: []string{`{"event":"subscribe","channel":"ticker","symbol":"%s"}`},
	},
	{
		venue: "bitfinex", file: "bitfinex/feed.txt", pick: has("event", "error"), each: true,
		send: []string{`{"event":"subscribe","channel":"ticker","symbol":"no %s"}`},
	},
	{
		venue: "bitfinex", file: "bitfinex/feed.txt", pick: has("event", "pong"), each: true, send: []string{`{"event":"ping","cid":12}`},
	},
	{
		venue: "bitfinex", file: "bitfinex/feed.txt", pick: all(has("event", "info"), has("version", json.Number("2"))), each: true,
		send: []string{`{"event":"ping"}`},
	},
	{venue: "bitfinex", file: "bitfinex/http.txt", of: "/v2/conf/", get: "/v2/conf/pub:list:pair:exchange"},
	{venue: "bitfinex", file: "bitfinex/http.txt", of: "/v2/ticker/t", get: "/v2/ticker/%s", tiny: []string{"[4]"}},
	{venue: "bitfinex", file: "bitfinex/http.txt", of: "/v2/trades/t", get: "/v2/trades/%s/hist?limit=40"},
	{venue: "bitfinex", file: "bitfinex/http.txt", of: "/v2/candles/trade:1h:t", pick: listsOf(0), get: "/v2/candles/trade:1h:%s/hist"},
	{
		venue: "gemini", file: "gemini/streams.txt", pick: holds("t"), send: []string{`{"id":"subscribe","method":"SUBSCRIBE","params":["%s@trade"]}`}, bare: true, each: true,
	},
	{
		venue: "gemini", file: "gemini/streams.txt", pick: all(holds("A"), holds("B")), bare: true, each: true, counters: []string{"u"},
		send: []string{`{"id":"subscribe","method":"SUBSCRIBE","params":["%s@bookTicker"]}`},
	},
	{
		venue: "gemini", file: "gemini/streams.txt", pick: has("status", json.Number("400")), bare: true, each: true,
		send: []string{`{"id":"subscribe","method":"SUBSCRIBE","params":["%s@nothing"]}`},
	},
	{
		venue: "gemini", file: "gemini/streams.txt", pick: has("id", "ping"), each: true, send: []string{`{"id":"ping","method":"ping"}`},
	},
	{venue: "gemini", file: "gemini/http.txt", of: "/v1/symbols ", get: "/v1/symbols"},
	{venue: "gemini", file: "gemini/http.txt", of: "/v2/ticker/", get: "/v2/ticker/%s"},
	{venue: "gemini", file: "gemini/http.txt", of: "/v1/pubticker/", get: "/v1/pubticker/%s", keyed: []string{"volume"}},
	{venue: "gemini", file: "gemini/http.txt", of: "/v1/pricefeed", get: "/v1/pricefeed"},
	{venue: "gemini", file: "gemini/http.txt", of: "/v1/trades/btcusd", get: "/v1/trades/%s", counters: []string{"[].tid"}},
	{venue: "gemini", file: "gemini/http.txt", of: "/v1/trades/nosuch", get: "/v1/trades/no%s"},
	{venue: "gemini", file: "gemini/http.txt", of: "/v2/candles/btcusd/6hr", get: "/v2/candles/%s/6hr"},
	{
		venue: "upbit", file: "upbit/feed.txt", pick: all(has("type", "trade"), holds("prev_closing_price")),
		send: []string{`[{"ticket":"x"},{"type":"trade","codes":[%s]}]`},
	},
	{
		venue: "upbit", file: "upbit/feed.txt", pick: has("type", "ticker"), send: []string{`[{"ticket":"x"},{"type":"ticker","codes":[%s]},{"format":"DEFAULT"}]`},
		newer: []string{
			"change_price", "signed_change_price", "change_rate", "signed_change_rate", "acc_ask_volume", "acc_bid_volume", "highest_52_week_price",
			"highest_52_week_date", "lowest_52_week_price", "lowest_52_week_date",
		},
	},
	{
		venue: "upbit", file: "upbit/feed.txt", pick: all(has("ty", "trade"), holds("ttm")), counters: []string{"sid"},
		send: []string{`[{"ticket":"x"},{"type":"trade","codes":[%s]},{"format":"SIMPLE"}]`},
	},
	{
		venue: "upbit", file: "upbit/feed.txt", pick: has("ty", "ticker"), send: []string{`[{"ticket":"x"},{"type":"ticker","codes":[%s]},{"format":"SIMPLE"}]`},
		newer: []string{"cp", "scp", "cr", "scr", "aav", "abv", "h52wp", "h52wdt", "l52wp", "l52wdt", "ms", "its", "dd", "mw"},
	},
	{venue: "upbit", file: "upbit/feed.txt", pick: holds("status"), each: true, send: []string{`PING`}},
	{venue: "upbit", file: "upbit/feed.txt", pick: holds("error"), each: true, send: []string{`[{"ticket":"x"},{"type":"ticker"}]`}},
	{venue: "upbit", file: "upbit/http.txt", of: "/v1/ticker?markets=KRW-BTC", get: "/v1/ticker?markets=%s", newer: []string{
		"[].trade_date_kst", "[].trade_time_kst", "[].change_price", "[].change_rate", "[].signed_change_price", "[].signed_change_rate",
		"[].highest_52_week_price", "[].highest_52_week_date", "[].lowest_52_week_price", "[].lowest_52_week_date",
	}},
	{venue: "upbit", file: "upbit/http.txt", of: "/v1/ticker?markets=KRW-NOSUCH", get: "/v1/ticker?markets=no%s"},
	{venue: "upbit", file: "upbit/http.txt", of: "/v1/trades/ticks", get: "/v1/trades/ticks?market=%s&count=1", counters: []string{"[].sequential_id"}},
	{venue: "upbit", file: "upbit/http.txt", of: "/v1/candles/minutes/60", get: "/v1/candles/minutes/60?market=%s&count=9"},
	{
		venue: "upbit", file: "upbit/http.txt", of: "/v1/candles/days", get: "/v1/candles/days?market=%s&count=9",
		older: []string{"[].prev_closing_price"}, newer: []string{"[].candle_date_time_kst"},
	},
	{
		venue: "poloniex", file: "poloniex/feed.txt", pick: all(has("channel", "trades"), holds("data"), first("amount")),
		send: []string{`{"event":"subscribe","channel":["trades"],"symbols":[%s]}`},
	},
	{
		venue: "poloniex", file: "poloniex/feed.txt", pick: all(has("channel", "ticker"), holds("data")),
		send: []string{`{"event":"subscribe","channel":["ticker"],"symbols":[%s]}`},
	},
	{
		venue: "poloniex", file: "poloniex/feed.txt", pick: has("event", "subscribe"), each: true, bare: true,
		send: []string{`{"event":"subscribe","channel":["trades"],"symbols":["%s"]}`},
	},
	{
		venue: "poloniex", file: "poloniex/feed.txt", pick: has("event", "error"), send: []string{`{"event":"subscribe","channel":["surprise"],"symbols":[%s]}`},
	},
	{venue: "poloniex", file: "poloniex/feed.txt", pick: has("event", "pong"), each: true, send: []string{`{"event":"ping"}`}},
	{
		venue: "poloniex", file: "poloniex/http.txt", of: "/markets ", get: "/markets",
		newer: []string{
			"[].symbolTradeLimit.minQuantity", "[].symbolTradeLimit.minAmount", "[].symbolTradeLimit.highestBid", "[].symbolTradeLimit.lowestAsk",
			"[].crossMargin",
		},
	},
	{venue: "poloniex", file: "poloniex/http.txt", of: "/markets/ticker24h", get: "/markets/ticker24h"},
	{venue: "poloniex", file: "poloniex/http.txt", of: "/markets/price", get: "/markets/price"},
	{venue: "poloniex", file: "poloniex/http.txt", of: "/markets/BTC_USDT/trades", get: "/markets/%s/trades?limit=9"},
	{venue: "poloniex", file: "poloniex/http.txt", of: "/markets/BTC_USDT/candles", pick: listsOf(14), get: "/markets/%s/candles?interval=MINUTE_5", counters: []string{"[][9]"}},
}

// holds picks messages that have a top-level key.
func holds(key string) func(any) bool {
	return func(message any) bool {
		object, _ := message.(map[string]any)
		return object[key] != nil
	}
}

// first picks messages whose first row has a key.
func first(key string) func(any) bool {
	return func(message any) bool {
		object, _ := message.(map[string]any)
		rows, _ := object["data"].([]any)
		return len(rows) > 0 && holds(key)(rows[0])
	}
}

func all(picks ...func(any) bool) func(any) bool {
	return func(message any) bool {
		return !slices.ContainsFunc(picks, func(pick func(any) bool) bool { return !pick(message) })
	}
}

// longer picks lists of more than n parts.
func longer(n int) func(any) bool {
	return func(message any) bool {
		parts, _ := message.([]any)
		return len(parts) > n
	}
}

// kindOf picks Bitfinex's lists that state what they are, with a row of four.
func kindOf(kinds ...any) func(any) bool {
	return func(message any) bool {
		parts, _ := message.([]any)
		return len(parts) == 3 && slices.Contains(kinds, parts[1]) && len(row(parts[2])) == 4
	}
}

// listOf picks Bitfinex's lists of a channel's number and a row of n numbers.
func listOf(n int) func(any) bool {
	return func(message any) bool {
		parts, _ := message.([]any)
		return len(parts) > 1 && len(row(parts[1])) == n && row(parts[1])[0] != nil && row(row(parts[1])[0]) == nil
	}
}

// listsOf picks lists of rows of n parts, 0 is any, alone or after a channel's number.
func listsOf(n int) func(any) bool {
	return func(message any) bool {
		rows := row(message)
		if len(rows) == 2 && row(rows[0]) == nil {
			rows = row(rows[1])
		}
		return len(rows) > 0 && len(row(rows[0])) > max(0, n-1)
	}
}

func row(value any) []any {
	parts, _ := value.([]any)
	return parts
}

// TestFramesLookLikeDocumentedOnes compares what the simulator sends with the samples that the adapters are tested on.
func TestFramesLookLikeDocumentedOnes(t *testing.T) {
	for i, row := range scripted {
		t.Run(fmt.Sprintf("%s/%d", row.venue, i), func(t *testing.T) {
			compare(t, row, scriptedMessages(t, filepath.Join("..", "..", "exchanges", "testdata", row.file), row.of))
		})
	}
}

// scriptedMessages reads an adapter's script: frames after "ws", and after "rest" and "list" the answers of the targets
// that begin with of.
func scriptedMessages(t *testing.T, path, of string) (messages [][]byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case kind == "ws" && of == "":
			messages = append(messages, []byte(rest))
		case (kind == "rest" || kind == "list") && of != "" && strings.HasPrefix(rest, of):
			_, body, _ := strings.Cut(rest, " ")
			messages = append(messages, []byte(body))
		}
	}
	return messages
}
