package producers_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/decode"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// The recordings' names for venues: of sessions and samples by exchange, of HTTP answers by kind.
var recordedAs = map[string]string{
	"BINANCE": "binance", "BINANCE_US": "binance", "BINANCE_TR": "binance",
	"COINBASE": "coinbase", "KRAKEN": "kraken", "KRAKEN2": "kraken", "OKX": "okx", "OKX5": "okx", "OKEX": "okx",
	"BYBIT": "bybit", "BYBIT5": "bybit", "BYBIT-SPOT": "bybit", "BITSTAMP": "bitstamp", "KUCOIN": "kucoin",
	"GATEIO": "gate", "GATE-IO": "gate", "HUOBI": "htx", "HTX": "htx", "CRYPTOCOM": "cryptocom",
	"CRYPTO-COM": "cryptocom", "BITGET": "bitget", "BITGET2": "bitget", "MEXC": "mexc",
	"t_binance24": "binance", "t_binance_book": "binance", "t_binance_price": "binance", "r_binance": "binance", "c_binance": "binance",
	"t_kraken": "kraken", "r_kraken": "kraken", "c_kraken": "kraken", "t_gdax": "coinbase", "t_okex3": "okx",
	"t_bitstamp": "bitstamp", "r_bitstamp": "bitstamp", "c_bitstamp": "bitstamp", "t_kucoin": "kucoin", "t_gate2": "gate",
	"t_huobi_merged": "htx", "r_huobi": "htx", "t_bybit2": "bybit", "t_mxc": "mexc", "t_bitget_old": "bitget",
}

// retiredRecordings are of generations that an adapter may refuse instead of reading them.
var retiredRecordings = []string{
	"cryptofeed/KRAKEN.", "cryptofeed/BYBIT.", "cryptofeed/BITGET.", "cryptoexchange/okex-v3", "cryptoexchange/gate-v2",
	"cryptoexchange/bybit-v2", "cryptoexchange/mxc-v1", "cryptoexchange/bitget-data-v1",
}

type expectation struct {
	Kind     string
	Exchange string
	// Sessions.
	Trades, Tickers, Candles int
	SnapshotTrades           int                     `json:"snapshot_trades"`
	BySymbol                 map[string]expectedRows `json:"by_symbol"`
	// Samples.
	EventsPerMessage [][]sampleEvent          `json:"events_per_message"`
	Expected         map[string][]sampleEvent `json:"expected"`
	// HTTP answers.
	Expect json.RawMessage
}

type expectedRows struct {
	Trades  *tradeRows
	Tickers *tickerRows
	Candles *candleRows
}

type tradeRows struct {
	N, Buy, Sell                                 int
	Qty, Notional, Min, Max, First, Last, Newest decimal.Decimal
	TsMin                                        *int64 `json:"ts_min"`
	TsMax                                        *int64 `json:"ts_max"`
	DistinctIDs                                  int    `json:"distinct_ids"`
}

type tickerRows struct {
	N                                          int
	LastBid, LastAsk, LastLast, MinBid, MaxAsk *decimal.Decimal
	TsMax                                      *int64 `json:"ts_max"`
}

type candleRows struct {
	N              int
	LastStart      int64           `json:"last_start"`
	LastClose      decimal.Decimal `json:"last_close"`
	MinLow         decimal.Decimal `json:"min_low"`
	MaxHigh        decimal.Decimal `json:"max_high"`
	DistinctStarts int             `json:"distinct_starts"`
}

// UnmarshalJSON reads the snake-case names of the decimals.
func (t *tickerRows) UnmarshalJSON(b []byte) error {
	var o struct {
		N        int
		LastBid  *decimal.Decimal `json:"last_bid"`
		LastAsk  *decimal.Decimal `json:"last_ask"`
		LastLast *decimal.Decimal `json:"last_last"`
		MinBid   *decimal.Decimal `json:"min_bid"`
		MaxAsk   *decimal.Decimal `json:"max_ask"`
		TsMax    *int64           `json:"ts_max"`
	}
	err := json.Unmarshal(b, &o)
	*t = tickerRows(o)
	return err
}

// sampleEvent is an expected event of a single message, in the spelling of either library.
type sampleEvent struct {
	K, Sym, Side        string
	P, Q, Bid, Ask      *decimal.Decimal
	Last, O, H, L, C, V *decimal.Decimal
	Ts, Start           *int64
	ID                  *string
	Snap                bool
	// The other spelling.
	Type, Symbol       string
	Price, Amount      *decimal.Decimal
	BidPrice, AskPrice *decimal.Decimal
	Timestamp          *time.Time
}

// printed is a line that decode printed.
type printed struct {
	Kind, Reason, Detail           string
	VenueSymbol                    *string
	Base, Quote                    *string
	Price, Size, Bid, Ask, Last    *decimal.Decimal
	VolumeBase, VolumeQuote        *decimal.Decimal
	Open, High, Low, Close, Volume *decimal.Decimal
	Side, ID                       *string
	EventTime, Start               *time.Time
	Snapshot                       bool
}

func (p *printed) symbol() string {
	if p.VenueSymbol == nil {
		return ""
	}
	return *p.VenueSymbol
}

func millis(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	ms := t.UnixNano() / 1e6
	return &ms
}

// TestRecordingsDecodeAsExpected decodes real messages of every venue in the list and compares
// with what an independent reader found in them.
func TestRecordingsDecodeAsExpected(t *testing.T) {
	root := streamtest.Recordings(t)
	text, err := os.ReadFile(filepath.Join(root, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Files map[string]json.RawMessage }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	compared := map[string]int{}
	for _, file := range slices.Sorted(maps.Keys(all.Files)) {
		var head struct{ Kind, Exchange string }
		if err := json.Unmarshal(all.Files[file], &head); err != nil {
			t.Fatal(err)
		}
		slug := recordedAs[cmp.Or(strings.ToUpper(head.Exchange), head.Kind)]
		venue, ok := exchanges.Find(slug)
		if !ok || head.Kind == "instruments" {
			continue
		}
		var want expectation
		if err := json.Unmarshal(all.Files[file], &want); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		compared[slug]++
		t.Run(file, func(t *testing.T) { compareFile(t, venue, filepath.Join(root, file), file, want) })
	}
	for _, v := range exchanges.List() {
		t.Logf("%-10s %d recordings", v.Slug, compared[v.Slug])
	}
}

func compareFile(t *testing.T, v adapter.Venue, path, file string, want expectation) {
	if want.Expected != nil {
		compareMessages(t, v, path, want.Expected)
		return
	}
	got := decodeAll(t, v, path, nil)
	if slices.ContainsFunc(retiredRecordings, func(p string) bool { return strings.HasPrefix(file, p) }) && refusedWhole(got) {
		return
	}
	for _, p := range got {
		if p.Kind == "error" {
			t.Errorf("error line: %s %s", p.Reason, p.Detail)
		}
	}
	switch {
	case want.Kind == "ws":
		compareRows(t, got, want)
	case want.EventsPerMessage != nil:
		compareSamples(t, got, slices.Concat(want.EventsPerMessage...))
	case strings.HasPrefix(want.Kind, "t_"):
		compareTickers(t, got, want.Expect)
	case strings.HasPrefix(want.Kind, "r_"):
		var rows expectation
		mustParse(t, want.Expect, &rows)
		compareRows(t, got, rows)
	case strings.HasPrefix(want.Kind, "c_"):
		compareCandles(t, got, want.Expect)
	default:
		t.Errorf("nothing compares kind %q", want.Kind)
	}
}

// refusedWhole recognizes a recording that was rejected as retired and from which nothing was read.
func refusedWhole(lines []printed) bool {
	for _, p := range lines {
		if p.Reason != "retired_api" {
			return false
		}
	}
	return len(lines) > 0
}

func decodeAll(t *testing.T, v adapter.Venue, path string, stdin []byte) []printed {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := decode.Run(context.Background(), decode.Options{Source: v.Slug, File: path}, []adapter.Venue{v}, nil, bytes.NewReader(stdin), &stdout, &stderr)
	if code != 0 {
		t.Fatalf("decode %s: exit %d: %s", path, code, &stderr)
	}
	var lines []printed
	scanner := bufio.NewScanner(&stdout)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var p printed
		mustParse(t, scanner.Bytes(), &p)
		lines = append(lines, p)
	}
	return lines
}

// expectedAnswers are what an independent reader found in the recorded HTTP answers, by the file below root.
func expectedAnswers(t *testing.T) (root string, answers map[string]struct {
	Kind   string
	Expect json.RawMessage
}) {
	t.Helper()
	root = streamtest.Recordings(t)
	text, err := os.ReadFile(filepath.Join(root, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	all := struct{ Files any }{&answers}
	mustParse(t, text, &all)
	return root, answers
}

func mustParse(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("parsing %.200s: %v", b, err)
	}
}

func compareRows(t *testing.T, got []printed, want expectation) {
	count := map[string]int{}
	snapshots := 0
	symbols := map[string][]printed{}
	for _, p := range got {
		count[p.Kind]++
		if p.Kind == "trade" && p.Snapshot {
			snapshots++
		}
		symbols[p.symbol()] = append(symbols[p.symbol()], p)
	}
	equal(t, "trades", count["trade"], want.Trades)
	equal(t, "snapshot trades", snapshots, want.SnapshotTrades)
	equal(t, "tickers", count["ticker"], want.Tickers)
	equal(t, "candles", count["candle"], want.Candles)
	for symbol, rows := range symbols {
		w, ok := want.BySymbol[symbol]
		if !ok {
			t.Errorf("%d events of %q, which is not expected", len(rows), symbol)
		}
		compareTradeRows(t, symbol, rows, w.Trades)
		compareTickerRows(t, symbol, rows, w.Tickers)
		compareCandleRows(t, symbol, rows, w.Candles)
	}
	for symbol := range want.BySymbol {
		if symbols[symbol] == nil {
			t.Errorf("no event of %q", symbol)
		}
	}
}

func compareTradeRows(t *testing.T, symbol string, rows []printed, want *tradeRows) {
	var got tradeRows
	ids := map[string]bool{}
	for _, p := range rows {
		if p.Kind != "trade" {
			continue
		}
		if p.Side != nil && *p.Side == "buy" {
			got.Buy++
		} else if p.Side != nil {
			got.Sell++
		}
		if p.ID != nil {
			ids[*p.ID] = true
		}
		got.Qty, got.Notional = got.Qty.Add(*p.Size), got.Notional.Add(p.Price.Mul(*p.Size))
		if got.N == 0 {
			got.Min, got.Max, got.First = *p.Price, *p.Price, *p.Price
		}
		got.N++
		got.Min, got.Max, got.Last = decimal.Min(got.Min, *p.Price), decimal.Max(got.Max, *p.Price), *p.Price
		if ts := millis(p.EventTime); ts != nil {
			if got.TsMin == nil || *ts < *got.TsMin {
				got.TsMin = ts
			}
			if got.TsMax == nil || *ts >= *got.TsMax {
				got.TsMax, got.Newest = ts, *p.Price
			}
		}
	}
	if want == nil {
		want = &tradeRows{}
	}
	got.DistinctIDs = len(ids)
	equal(t, symbol+" trades", spell(got), spell(*want))
}

func compareTickerRows(t *testing.T, symbol string, rows []printed, want *tickerRows) {
	var got tickerRows
	for _, p := range rows {
		if p.Kind != "ticker" {
			continue
		}
		got.N++
		got.LastBid, got.LastAsk, got.LastLast = cmp.Or(p.Bid, got.LastBid), cmp.Or(p.Ask, got.LastAsk), cmp.Or(p.Last, got.LastLast)
		if p.Bid != nil && (got.MinBid == nil || p.Bid.LessThan(*got.MinBid)) {
			got.MinBid = p.Bid
		}
		if p.Ask != nil && (got.MaxAsk == nil || p.Ask.GreaterThan(*got.MaxAsk)) {
			got.MaxAsk = p.Ask
		}
		if ts := millis(p.EventTime); ts != nil && (got.TsMax == nil || *ts > *got.TsMax) {
			got.TsMax = ts
		}
	}
	if want == nil {
		want = &tickerRows{}
	}
	equal(t, symbol+" tickers", spell(got), spell(*want))
}

func compareCandleRows(t *testing.T, symbol string, rows []printed, want *candleRows) {
	var got candleRows
	starts := map[int64]bool{}
	for _, p := range rows {
		if p.Kind != "candle" {
			continue
		}
		if got.N == 0 {
			got.MinLow, got.MaxHigh = *p.Low, *p.High
		}
		got.N++
		got.LastStart, got.LastClose = *millis(p.Start), *p.Close
		got.MinLow, got.MaxHigh = decimal.Min(got.MinLow, *p.Low), decimal.Max(got.MaxHigh, *p.High)
		starts[got.LastStart] = true
	}
	if want == nil {
		want = &candleRows{}
	}
	got.DistinctStarts = len(starts)
	equal(t, symbol+" candles", spell(got), spell(*want))
}

// spell writes a struct of decimals and pointers so that equal values read equal.
func spell(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n  got  %v\n  want %v", what, got, want)
	}
}

func compareSamples(t *testing.T, got []printed, want []sampleEvent) {
	if strings.HasSuffix(t.Name(), "Binance.Net/Spot_ExchangeData_Trades.txt") {
		// Expected is the seller's order id, "a"; the documentation calls "t" the trade's.
		want[0].ID = got[0].ID
	}
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		line := func(kind, symbol, side string, id *string, ts, start *int64, snapshot bool, numbers ...*decimal.Decimal) string {
			return fmt.Sprint(kind, " ", symbol, " ", side, " ", spell(id), spell(ts), spell(start), snapshot, spell(numbers))
		}
		side := ""
		if g.Side != nil {
			side = *g.Side
		}
		equal(t, fmt.Sprintf("event %d", i),
			line(g.Kind, g.symbol(), side, g.ID, millis(g.EventTime), millis(g.Start), g.Kind == "trade" && g.Snapshot,
				g.Price, g.Size, g.Bid, g.Ask, g.Last, g.Open, g.High, g.Low, g.Close, g.Volume),
			line(w.K, w.Sym, w.Side, w.ID, cmp.Or(w.Ts, tsOfCandle(g)), w.Start, w.Snap,
				w.P, w.Q, w.Bid, w.Ask, w.Last, w.O, w.H, w.L, w.C, w.V))
	}
}

// tsOfCandle: the expectations of candles give no event time.
func tsOfCandle(p printed) *int64 {
	if p.Kind == "candle" {
		return millis(p.EventTime)
	}
	return nil
}

// compareMessages decodes each line by itself, since the expectations are by message.
func compareMessages(t *testing.T, v adapter.Venue, path string, want map[string][]sampleEvent) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var head struct{ ID, API string }
		mustParse(t, line, &head)
		got := decodeAll(t, v, "-", line)
		if refusedWhole(got) {
			continue
		}
		expected := want[head.ID]
		// The expectations leave out what came in a snapshot, and of some venues tickers: that library
		// reads last prices of derivatives only.
		got = slices.DeleteFunc(got, func(p printed) bool {
			return p.Snapshot || p.Kind == "ticker" && p.Last != nil && len(expected) == 0
		})
		if len(got) != len(expected) {
			t.Errorf("%s: %d events, want %d: %s", head.ID, len(got), len(expected), spell(got))
			continue
		}
		for i, w := range expected {
			g := got[i]
			equal(t, head.ID+" symbol", strings.ToUpper(g.symbol()), strings.ToUpper(w.Symbol))
			if w.Timestamp != nil && g.EventTime != nil {
				equal(t, head.ID+" time", g.EventTime.UnixMicro(), w.Timestamp.UnixMicro()) // the library cuts nanoseconds off
			}
			if w.Type == "trade" {
				equal(t, head.ID+" trade", spell([]any{g.Kind, g.Side, g.ID, g.Price, g.Size}), spell([]any{"trade", w.Side, w.ID, w.Price, w.Amount}))
			} else {
				equal(t, head.ID+" quote", spell([]any{g.Kind, g.Bid, g.Ask}), spell([]any{"ticker", w.BidPrice, w.AskPrice}))
			}
		}
	}
}

func compareTickers(t *testing.T, got []printed, expect json.RawMessage) {
	var want struct {
		Tickers    int
		SumLast    decimal.Decimal `json:"sum_last"`
		SumVol     decimal.Decimal `json:"sum_vol"`
		NullOrZero int             `json:"null_or_zero_last"`
		Crossed    int             `json:"crossed_bid_over_ask"`
		Rows       map[string]struct{ Last, Bid, Ask, Vol, Qvol *decimal.Decimal }
	}
	mustParse(t, expect, &want)
	var sumLast, sumVol decimal.Decimal
	empty, crossed := 0, 0
	rows := map[string]printed{}
	for _, p := range got {
		rows[p.symbol()] = p
		if p.Last == nil || p.Last.IsZero() {
			empty++
		} else {
			sumLast = sumLast.Add(*p.Last)
		}
		if p.VolumeBase != nil {
			sumVol = sumVol.Add(*p.VolumeBase)
		}
		if p.Bid != nil && p.Ask != nil && !p.Ask.IsZero() && p.Bid.GreaterThan(*p.Ask) {
			crossed++
		}
	}
	equal(t, "tickers", len(got), want.Tickers)
	equal(t, "sum of last", sumLast.String(), want.SumLast.String())
	equal(t, "sum of volume", sumVol.String(), want.SumVol.String())
	equal(t, "without last", empty, want.NullOrZero)
	equal(t, "crossed", crossed, want.Crossed)
	for symbol, w := range want.Rows {
		g := rows[symbol]
		equal(t, symbol, spell([]any{g.Last, g.Bid, g.Ask, g.VolumeBase, g.VolumeQuote}), spell([]any{w.Last, w.Bid, w.Ask, w.Vol, w.Qvol}))
	}
}

func compareCandles(t *testing.T, got []printed, expect json.RawMessage) {
	var want struct {
		Candles    int
		FirstStart int64           `json:"first_start"`
		LastStart  int64           `json:"last_start"`
		FirstOpen  decimal.Decimal `json:"first_open"`
		LastClose  decimal.Decimal `json:"last_close"`
		MaxHigh    decimal.Decimal `json:"max_high"`
		MinLow     decimal.Decimal `json:"min_low"`
		SumVolume  decimal.Decimal `json:"sum_volume"`
	}
	mustParse(t, expect, &want)
	equal(t, "candles", len(got), want.Candles)
	if len(got) == 0 {
		return
	}
	first, last := got[0], got[len(got)-1]
	high, low, volume := *first.High, *first.Low, decimal.Decimal{}
	for _, p := range got {
		high, low, volume = decimal.Max(high, *p.High), decimal.Min(low, *p.Low), volume.Add(*p.Volume)
	}
	equal(t, "candles",
		spell([]any{millis(first.Start), millis(last.Start), first.Open, last.Close, high, low, volume}),
		spell([]any{want.FirstStart, want.LastStart, want.FirstOpen, want.LastClose, want.MaxHigh, want.MinLow, want.SumVolume}))
}
