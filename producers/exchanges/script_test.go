package exchanges

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// TestVenuesReadTheirWire runs testdata/<venue>/*.txt. A script is a list of messages, each
// followed by what the codec makes of it, indented:
//
//	ws {…}              a frame; "conn" begins a new connection
//	bin …               a binary frame, in base64
//	rest TARGET {…}     the answer to an HTTP request
//	list PATH {…}       an answer with the list of instruments
//	    trade SYMBOL price=… size=… side=… id=… time=… snapshot notspot
//	    ticker SYMBOL bid=… ask=… last=… base=… quote=… seq=… time=… snapshot notspot
//	    candle SYMBOL start=… interval=… o=… h=… l=… c=… v=… state=… time=… notspot
//	    instrument SYMBOL BASE/QUOTE aliases
//	    halted SYMBOL BASE/QUOTE status
//	    count STREAM N, send TEXT, notice TEXT
//	    refused REASON (a row), error REASON (the whole message)
//
// A message with nothing below it has no result. A line that begins with # is a comment.
func TestVenuesReadTheirWire(t *testing.T) {
	for _, v := range List() {
		scripts, err := filepath.Glob(filepath.Join("testdata", v.Slug, "*.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if len(scripts) == 0 {
			t.Errorf("venue %s has no script in testdata/%s", v.Slug, v.Slug)
		}
		for _, path := range scripts {
			t.Run(v.Slug+"/"+filepath.Base(path), func(t *testing.T) { runScript(t, v.Recorded(), path) })
		}
	}
}

func runScript(t *testing.T, v adapter.Venue, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	codec := v.NewCodec()
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := i + 1
		var want []string
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ") {
			i++
			want = append(want, strings.TrimSpace(lines[i]))
		}
		verb, rest, _ := strings.Cut(line, " ")
		var got []string
		switch verb {
		case "conn":
			codec = v.NewCodec()
		case "ws":
			var out adapter.Out
			err := codec.Decode(adapter.Frame{Bytes: []byte(rest)}, &out)
			got = spell(&out, err)
		case "bin":
			frame, err := base64.StdEncoding.DecodeString(rest)
			if err != nil {
				t.Fatalf("%s:%d: %v", path, at, err)
			}
			var out adapter.Out
			err = codec.Decode(adapter.Frame{Bytes: frame, Binary: true}, &out)
			got = spell(&out, err)
		case "rest":
			target, body, _ := strings.Cut(rest, " ")
			var out adapter.Out
			err := v.DecodeREST(target, []byte(body), &out)
			got = spell(&out, err)
		case "list":
			target, body, _ := strings.Cut(rest, " ")
			list, err := v.Instruments(target, []byte(body))
			for _, in := range list {
				got = append(got, strings.TrimSpace(fmt.Sprintf("instrument %s %s/%s %s", in.Symbol, in.Base, in.Quote, strings.Join(in.Aliases, " "))))
			}
			if v.Halted != nil && err == nil {
				var halted []adapter.Instrument
				halted, err = v.Halted(target, []byte(body))
				for _, in := range halted {
					got = append(got, strings.TrimSpace(fmt.Sprintf("halted %s %s/%s %s", in.Symbol, in.Base, in.Quote, in.Status)))
				}
			}
			if err != nil {
				got = append(got, "error "+string(producers.ReasonOf(err)))
			}
		default:
			t.Fatalf("%s:%d: unknown verb %q", path, at, verb)
		}
		if g, w := strings.Join(got, "\n    "), strings.Join(want, "\n    "); g != w {
			t.Errorf("%s:%d: %.100s\n  got:\n    %s\n  want:\n    %s", path, at, line, g, w)
		}
	}
}

// TestLiveCodecsRefuseWhatOnlyRecordingsHave: what the engine never asks for is not read from a venue.
func TestLiveCodecsRefuseWhatOnlyRecordingsHave(t *testing.T) {
	for slug, frame := range map[string]string{
		"binance":   `{"stream":"btcusdt@aggTrade","data":{"e":"aggTrade","E":1672515782136,"s":"BTCUSDT","a":1,"p":"1","q":"1","T":1672515782136,"m":false}}`,
		"bitget":    `{"action":"update","arg":{"instType":"spot","topic":"publicTrade","symbol":"BTCUSDT"},"data":[{"i":"1","p":"1","v":"1","S":"sell","T":"1777358880170"}],"ts":1777358880172}`,
		"bybit":     `{"topic":"kline.5.BTCUSDT","ts":1672324988882,"type":"snapshot","data":[{"start":1672324800000,"interval":"5","open":"1","close":"1","high":"1","low":"1","volume":"1","confirm":false}]}`,
		"coinbase":  `{"channel":"ticker","sequence_num":1,"events":[{"type":"update","tickers":[{"product_id":"BTC-USD","price":"1"}]}]}`,
		"cryptocom": `{"id":-1,"code":0,"result":{"instrument_name":"BTC_USDT","channel":"candlestick","interval":"1h","data":[{"o":"1","h":"1","l":"1","c":"1","v":"1","t":1612224000000}]}}`,
		"gate":      `{"time":1712059201,"channel":"spot.book_ticker","event":"update","result":{"t":1712059201123,"u":1,"s":"BTC_USDT","b":"1","B":"1","a":"2","A":"1"}}`,
		"gemini":    `{"type":"trade","symbol":"BTCUSD","event_id":1,"timestamp":1751508438600,"price":"1","quantity":"1","side":"buy"}`,
		"htx":       `{"ch":"market.ethusdt.kline.60min","ts":1489474082831,"tick":{"id":1489464000,"amount":1,"open":1,"close":1,"low":1,"high":1,"vol":1}}`,
		"kraken":    `{"channel":"ohlc","type":"update","data":[{"symbol":"BTC/USD","open":1,"high":1,"low":1,"close":1,"volume":1,"interval_begin":"2023-10-04T16:25:00Z","interval":5}]}`,
		"kucoin":    `{"T":"trade.SPOT","t":"update","d":{"s":"BTC-USDT","S":"buy","ti":"1","p":"1","q":"1","M":1729843222921000000}}`,
		"mexc":      `{"channel":"spot@public.aggre.deals.v3.api.pb@100ms@BTCUSDT","symbol":"BTCUSDT","publicAggreDeals":{"deals":[{"price":"1","quantity":"1","tradeType":1,"time":1736412092433}]}}`,
		"okx":       `{"arg":{"channel":"bbo-tbt","instId":"BTC-USDT"},"data":[{"asks":[["2","1","0","2"]],"bids":[["1","1","0","2"]],"ts":"1670324386802","seqId":1}]}`,
		"poloniex":  `{"channel":"candles_week_1","data":[{"symbol":"BTC_USDT","amount":"1","high":"1","quantity":"1","low":"1","startTime":1676851200000,"close":"1","open":"1","ts":1676942492072}]}`,
		"upbit":     `{"ty":"trade","cd":"KRW-BTC","tp":1,"tv":1,"ab":"BID","sid":1,"ttms":1730336862047,"tms":1730336862082}`,
	} {
		v, _ := Find(slug)
		onlyRecorded(t, v, frame, func(v adapter.Venue, out *adapter.Out) error {
			return v.NewCodec().Decode(adapter.Frame{Bytes: []byte(frame)}, out)
		})
	}
}

// TestLiveAnswersRefuseWhatOnlyRecordingsHave: nor is what the engine never asks for over HTTP.
func TestLiveAnswersRefuseWhatOnlyRecordingsHave(t *testing.T) {
	for slug, answer := range map[string]string{
		"binance":   `/api/v3/ticker/price {"symbol":"BTCUSDT","price":"1"}`,
		"bitfinex":  `/v2/candles/trade:1h:tBTCUSD/hist [[1678464000000,1,1,1,1,1]]`,
		"bitget":    `/api/v2/spot/market/fills {"code":"00000","data":[{"symbol":"BTCUSDT","tradeId":"1","side":"Buy","price":"1","size":"1","ts":"1622097282536"}]}`,
		"bitstamp":  `/api/v2/transactions/btcusd/ [{"date":"1712059201","tid":"1","price":"1","type":"0","amount":"1"}]`,
		"bybit":     `/v5/market/recent-trade {"retCode":0,"result":{"category":"spot","list":[{"execId":"1","symbol":"BTCUSDT","price":"1","size":"1","side":"Buy","time":"1672052955758"}]}}`,
		"coinbase":  `/products/BTC-USD/trades [{"time":"2014-11-07T22:19:28.578544Z","trade_id":74,"price":"1","size":"1","side":"buy"}]`,
		"cryptocom": `/exchange/v1/public/get-trades {"code":0,"result":{"data":[{"s":"BUY","p":"1","q":"1","t":1686944282062,"d":"1","i":"BTC_USDT"}]}}`,
		"gate":      `/api/v4/spot/trades [{"id":"1","create_time_ms":"1548000000123.456","currency_pair":"BTC_USDT","side":"buy","amount":"1","price":"1"}]`,
		"htx":       `/market/detail/merged {"ch":"market.btcusdt.detail.merged","status":"ok","ts":1629788763750,"tick":{"close":1,"amount":1,"vol":1,"bid":[1,1],"ask":[2,1]}}`,
		"kraken":    `/0/public/Trades {"error":[],"result":{"XXBTZUSD":[["1","1",1688669597.8277369,"b","m","",1]],"last":"1688671969993150842"}}`,
		"kucoin":    `/api/v1/market/histories {"code":"200000","data":[{"price":"1","size":"1","side":"buy","time":1729843222921000000,"tradeId":"1"}]}`,
		"mexc":      `/api/v3/trades [{"id":null,"price":"1","qty":"1","quoteQty":"1","time":1640830579240,"isBuyerMaker":true,"isBestMatch":true}]`,
		"okx":       `/api/v5/market/trades {"code":"0","data":[{"instId":"BTC-USDT","side":"sell","sz":"1","px":"1","tradeId":"1","ts":"1629386781174"}]}`,
		"poloniex":  `/markets/BTC_USDT/trades [{"id":"1","price":"1","quantity":"1","amount":"1","takerSide":"SELL","ts":1648690080545,"createTime":1648634905695}]`,
		"upbit":     `/v1/trades/ticks [{"market":"KRW-BTC","sequential_id":1,"timestamp":1524046799000,"trade_price":1,"trade_volume":1,"ask_bid":"BID"}]`,
	} {
		v, _ := Find(slug)
		target, body, _ := strings.Cut(answer, " ")
		onlyRecorded(t, v, answer, func(v adapter.Venue, out *adapter.Out) error { return v.DecodeREST(target, []byte(body), out) })
	}
}

// onlyRecorded checks that a venue reads one event from a message in a recording, and none live.
func onlyRecorded(t *testing.T, v adapter.Venue, message string, read func(adapter.Venue, *adapter.Out) error) {
	t.Helper()
	var live, recorded adapter.Out
	if err := read(v, &live); err == nil || len(live.Events) > 0 {
		t.Errorf("%s reads %s live, as %v", v.Slug, message, live.Events)
	}
	if err := read(v.Recorded(), &recorded); err != nil || len(recorded.Events) != 1 {
		t.Errorf("%s reads %s as %v from a recording: %v", v.Slug, message, recorded.Events, err)
	}
}

func spell(out *adapter.Out, err error) []string {
	var lines []string
	for i := range out.Events {
		lines = append(lines, spellEvent(&out.Events[i]))
	}
	for _, e := range out.Refused {
		lines = append(lines, "refused "+string(producers.ReasonOf(e)))
	}
	for _, c := range out.Counts {
		lines = append(lines, strings.Join(strings.Fields(fmt.Sprintf("count %s %s", c.Stream, c.N)), " "))
	}
	for _, f := range out.Replies {
		lines = append(lines, "send "+string(f.Bytes))
	}
	for _, n := range out.Notices {
		lines = append(lines, "notice "+n)
	}
	if err != nil {
		lines = append(lines, "error "+string(producers.ReasonOf(err)))
	}
	return lines
}

func spellEvent(e *adapter.Event) string {
	parts := []string{string(e.Kind)}
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+value)
		}
	}
	stamp := func(ns int64) string {
		if ns == 0 {
			return ""
		}
		return time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
	}
	add("", e.Symbol)
	add("start=", stamp(e.Start))
	add("interval=", e.Interval)
	for _, f := range []struct {
		name  string
		value producers.Num
	}{
		{"price=", e.Price},
		{"size=", e.Size},
		{"side=", producers.Num(e.Side)},
		{"id=", e.ID},
		{"bid=", e.Bid},
		{"ask=", e.Ask},
		{"last=", e.Last},
		{"base=", e.VolumeBase},
		{"quote=", e.VolumeQuote},
		{"seq=", e.Sequence},
		{"o=", e.OpenPrice},
		{"h=", e.High},
		{"l=", e.Low},
		{"c=", e.ClosePrice},
		{"v=", e.Volume},
		{"state=", producers.Num(e.State)},
	} {
		add(f.name, string(f.value))
	}
	add("time=", stamp(e.Time))
	if e.Snapshot {
		add("", "snapshot")
	}
	if e.NotSpot {
		add("", "notspot")
	}
	return strings.Join(parts, " ")
}

// TestSymbolsNameTheirAssets reads base and quote off symbols without the venue's list. Whatever is no
// spot market has neither, so that it is never priced.
func TestSymbolsNameTheirAssets(t *testing.T) {
	for slug, symbols := range map[string]map[string]string{
		"binance":   {"BTCUSDT": "BTC/USDT", "BTCUSDT_240329": "", "BTCUSD_PERP": ""},
		"bitfinex":  {"tBTCUSD": "BTC/USD", "tDUSK:USD": "DUSK/USD", "tBTCUST": "BTC/UST", "fUSD": "", "fUSD:p30": "", "tBTCF0:USTF0": "", "tBTCDOMF0:USTF0": "", "BTCUSD": ""},
		"bitget":    {"BTCUSDT": "BTC/USDT"},
		"bitstamp":  {"btcusd": "BTC/USD", "btcusd-perp": ""},
		"bybit":     {"ETHUSDC": "ETH/USDC", "BTC-26DEC25": "", "BTC-6JAN23-17500-C": ""},
		"coinbase":  {"BTC-USD": "BTC/USD", "BTC-PERP-INTX": "", "BTC-29NOV24-CDE": ""},
		"cryptocom": {"BTC_USDT": "BTC/USDT", "BTCUSD-PERP": "", "BTCUSD-INDEX": "", "BTCUSD-231229": ""},
		"gate":      {"BTC_USDT": "BTC/USDT"},
		"gemini":    {"btcusd": "BTC/USD", "BTCGUSD": "BTC/GUSD", "paxgusd": "PAXG/USD", "moodengusd": "MOODENG/USD", "moodenggusd": "MOODENG/GUSD", "btcgusdperp": "", "ETHUSDCPERP": "", "GEMI-BTC05M2606011000-UP": ""},
		"htx":       {"ethbtc": "ETH/BTC", "ETH_CQ": "", "BTC-USDT": "", "BTC-USD": ""},
		"kraken":    {"BTC/USD": "BTC/USD"},
		"kucoin":    {"BTC-USDT": "BTC/USDT", "XBTUSDTM": ""},
		"mexc":      {"BTCUSDT": "BTC/USDT"},
		"okx":       {"BTC-USDT": "BTC/USDT", "BTC-USD-SWAP": "", "BTC-USD-220527": "", "BTC-USD-190628-12000-C": ""},
		"poloniex":  {"BTC_USDT": "BTC/USDT", "BTC_USDT_PERP": ""},
		"upbit":     {"KRW-BTC": "BTC/KRW", "BTC-ETH": "ETH/BTC", "USDT-BTC": "BTC/USDT", "KRW": ""},
	} {
		v, ok := Find(slug)
		if !ok {
			t.Fatalf("no venue %q", slug)
		}
		split := v.Split
		if split == nil {
			split = adapter.SplitSymbol
		}
		for symbol, want := range symbols {
			got := ""
			if base, quote, ok := split(symbol); ok {
				got = base + "/" + quote
			}
			if got != want {
				t.Errorf("%s: %q is %q, want %q", slug, symbol, got, want)
			}
		}
	}
}

// TestDeclarationsAreComplete holds what the engine takes for granted.
func TestDeclarationsAreComplete(t *testing.T) {
	seen := ""
	for _, v := range List() {
		if v.Slug <= seen {
			t.Errorf("%s comes after %s: the list is not in order, or names one twice", v.Slug, seen)
		}
		seen = v.Slug
		for what, ok := range map[string]bool{
			"name, version":                 v.Name != "" && v.Version > 0,
			"URLs":                          strings.HasPrefix(v.URLs.Stream, "wss://") && strings.HasPrefix(v.URLs.REST, "https://"),
			"where its countries were read": saysWhereRead(v.Countries),
			"codes of countries":            areCountries(v.Countries.Served) && areCountries(v.Countries.Refused),
			"limits": v.Limits.Connects > 0 && v.Limits.ConnectsPer > 0 && v.Limits.MarketsPerSocket > 0 &&
				v.Limits.Messages > 0 && v.Limits.Requests > 0,
			"silence":   v.Silence > v.Heartbeat.Every || v.Silence >= 10*time.Second,
			"listing":   len(v.Listing) > 0 && v.Instruments != nil,
			"functions": v.Subscribe != nil && v.NewCodec != nil && v.DecodeREST != nil,
		} {
			if !ok {
				t.Errorf("venue %s lacks: %s", v.Slug, what)
			}
		}
	}
}

// saysWhereRead: countries come with the page, the day, and who quotes the page if it was not read itself.
func saysWhereRead(c adapter.Countries) bool {
	if c.Terms == "" {
		return len(c.Served)+len(c.Refused)+len(c.Quoted) == 0 && c.Read == ""
	}
	_, err := time.Parse(time.DateOnly, c.Read)
	pages := append([]string{c.Terms}, c.Quoted...)
	return err == nil && len(c.Served)+len(c.Refused) > 0 && !slices.ContainsFunc(pages, func(p string) bool { return !strings.HasPrefix(p, "https://") })
}

// The terms of these venues name the United Kingdom, and all of the European Union together.
func TestTermsThatNameTheEuropeanUnionRefuseEachMember(t *testing.T) {
	for _, slug := range []string{"gemini", "htx", "poloniex"} {
		v, _ := Find(slug)
		for _, country := range []string{"GB", "FR", "DE", "IE", "PL", "CY", "HR"} {
			if !slices.Contains(v.Countries.Refused, country) {
				t.Errorf("%s counts as serving %s, which its terms refuse", slug, country)
			}
		}
	}
	if len(europeanUnion) != 27 {
		t.Errorf("the European Union has %d members, want 27", len(europeanUnion))
	}
}

// areCountries checks ISO 3166 codes, each once, in order: what a region is looked up by.
func areCountries(codes []string) bool {
	for i, code := range codes {
		if len(code) != 2 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || code == "UK" || i > 0 && code <= codes[i-1] {
			return false
		}
	}
	return true
}

// FuzzCodecs feeds every venue anything at all. A codec must not panic, must not emit what
// Out.Add would refuse, and must answer the same for the same bytes.
func FuzzCodecs(f *testing.F) {
	for _, v := range List() {
		scripts, _ := filepath.Glob(filepath.Join("testdata", v.Slug, "*.txt"))
		for _, path := range scripts {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				target, payload := "", []byte(rest)
				switch verb {
				case "ws":
				case "bin":
					if payload, err = base64.StdEncoding.DecodeString(rest); err != nil {
						f.Fatal(err)
					}
				case "rest", "list":
					target, rest, _ = strings.Cut(rest, " ")
					payload = []byte(rest)
				default:
					continue
				}
				f.Add(target, payload, verb == "bin")
			}
		}
	}
	venues := List()
	f.Fuzz(func(t *testing.T, target string, b []byte, binary bool) {
		for _, v := range venues {
			v = v.Recorded()
			read := func() string {
				var out adapter.Out
				frame, err := adapter.Unpack(adapter.Frame{Bytes: b, Binary: binary})
				if err == nil {
					err = v.NewCodec().Decode(frame, &out)
				}
				lines := spell(&out, err)
				out.Reset()
				lines = append(lines, spell(&out, v.DecodeREST(target, b, &out))...)
				list, err := v.Instruments(target, b)
				return fmt.Sprint(lines, list, err)
			}
			if first, second := read(), read(); first != second {
				t.Errorf("%s reads %q as %s, then as %s", v.Slug, b, first, second)
			}
		}
	})
}

// FuzzConnections feeds a venue's codec the frames of a connection, one a line: what a frame says may
// hang on the ones before it. Seeds are the scripts, a connection each.
func FuzzConnections(f *testing.F) {
	venues := List()
	for i, v := range venues {
		scripts, _ := filepath.Glob(filepath.Join("testdata", v.Slug, "*.txt"))
		for _, path := range scripts {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			var frames []string
			for line := range strings.Lines(string(text)) {
				switch verb, rest, _ := strings.Cut(strings.TrimSpace(line), " "); verb {
				case "ws":
					frames = append(frames, rest)
				case "conn":
					f.Add(byte(i), strings.Join(frames, "\n"))
					frames = nil
				}
			}
			f.Add(byte(i), strings.Join(frames, "\n"))
		}
	}
	f.Fuzz(func(t *testing.T, venue byte, session string) {
		v := venues[int(venue)%len(venues)]
		read := func() string {
			codec := v.Recorded().NewCodec()
			var lines []string
			for frame := range strings.SplitSeq(session, "\n") {
				var out adapter.Out
				lines = append(lines, spell(&out, codec.Decode(adapter.Frame{Bytes: []byte(frame)}, &out))...)
			}
			return strings.Join(lines, "\n")
		}
		if first, second := read(), read(); first != second {
			t.Errorf("%s reads %q as %s, then as %s", v.Slug, session, first, second)
		}
	})
}
