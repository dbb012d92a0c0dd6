package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// figure is one row of the page.
type figure struct {
	what  string
	value source
	// limit is what it is measured beside, and beside says in words what that is; empty for none.
	limit  source
	beside string
	// goal is what the ratio, or without a limit the value, should be: at least least, at most most; 0
	// for no goal.
	least, most float64
}

// enough is how many runs a median needs to mean anything; a benchmark that repeats its rounds itself is run once.
const enough = 3

type section struct {
	title, about string
	figures      []figure
}

const (
	sink    = "Sink_20Venues1000Coins"
	cached  = "SinkAndCache_20Venues1000Coins"
	hotRead = "HotRead_KeyAndLimits"
	kernel  = "Aggregate_15Venues"
	kernel2 = "Aggregate_20Venues"
	chain   = "Pipeline_20Venues500Coins"
	fanOut  = "FanOut_10kSubscribers200Symbols"
	wire    = "WireToSubscriber"
	start   = "Start"
	replay  = "Replay"
	doors   = "Doors"
	chart   = "Chart_100MillionCandles"
	cycle   = "Sources_FullCycle"
	crowd   = "Coins/coins="
	perCoin = "Markets/coins="
	lists   = "List_OfBare/coins="

	unasked     = "Search_NeverAskedBefore/coins="
	afterMinute = "FirstReader_AfterAMinute/coins="
)

var sections = []section{
	{"Log to views", "Ticks of 20 venues and 1,000 coins and the prices that they make, read from the log and written to ClickHouse and Redis with the ledger that makes a kill harmless. Each row of a price holds its twenty inputs.", []figure{
		{"rows of ticks and prices a second", source{cached + "/sink", "rows/s"}, source{cached + "/insert-only", "rows/s"}, "inserting the same rows and nothing else", 0.6, 0},
		{"rows of ticks a second", source{sink + "/sink", "rows/s"}, source{sink + "/insert-only", "rows/s"}, "inserting the same rows and nothing else", 0.6, 0},
		{"rows of ticks a second", source{sink + "/sink", "rows/s"}, source{sink + "/by-hand", "rows/s"}, "a consumer written by hand in whole columns, which guarantees nothing", 1, 0},
		{"µs of CPU a row of ticks", source{sink + "/sink", "cpu-µs/row"}, source{sink + "/insert-only", "cpu-µs/row"}, "inserting the same rows and nothing else", 0, 0},
	}},
	{"Raw ticks to tables and cache", "From the log of raw ticks of 20 venues and 500 coins: names resolved, each second a median of each coin over its venues, candles of each minute; ticks, prices and candles in ClickHouse, the newest prices in a Redis of its own process. Every row is there exactly once whatever is killed, and the same log gives the same rows; inserting the same rows (the usual driver, whole columns, each topic beside the others) resolves, computes and guarantees nothing. Broker, ClickHouse and all processors share the processors of the machine.", []figure{
		{"ticks a second", source{chain + "/pipeline", "ticks/s"}, source{chain + "/insert-only", "ticks/s"}, "inserting the same rows of ticks, prices and candles and nothing else", 0, 0},
		{"µs of CPU a tick", source{chain + "/pipeline", "cpu-µs/tick"}, source{}, "", 0, 0},
	}},
	{"A current price over REST", "`GET /api/v1/prices/{symbol}` with one of 10,000 keys and exact limits, on 64 connections of another process.", []figure{
		{"requests a second", source{hotRead, "req/s"}, source{hotRead, "bare-req/s"}, "a Fiber handler that returns the same bytes", 0.75, 0},
		{"µs of CPU a request", source{hotRead, "cpu-us/req"}, source{hotRead, "bare-cpu-us/req"}, "the same", 0, 0},
	}},
	{"Hot reads and MCP", "The whole binary with an Enterprise key and limits, fed by the simulator until its views were full, then at rest; 64 connections of another process.", []figure{
		{"requests a second of a price", source{doors + "/price", "req/s"}, source{doors + "/price", "bare-req/s"}, "a Fiber handler that returns the same bytes", 0.75, 0},
		{"of the top coins", source{doors + "/top_coins", "req/s"}, source{doors + "/top_coins", "bare-req/s"}, "the same", 0.75, 0},
		{"of the rates of a coin", source{doors + "/rates", "req/s"}, source{doors + "/rates", "bare-req/s"}, "the same", 0.75, 0},
		{"of the global summary", source{doors + "/global_summary", "req/s"}, source{doors + "/global_summary", "bare-req/s"}, "the same", 0.75, 0},
		{"of all currencies", source{doors + "/fiat", "req/s"}, source{doors + "/fiat", "bare-req/s"}, "the same", 0.75, 0},
		{"of a price while a statement on the SQL port runs", source{doors + "/price_beside_statements", "req/s"}, source{doors + "/price_beside_statements", "alone-req/s"}, "the same without it", 0.95, 0},
		{"of a tool over MCP", source{doors + "/mcp", "req/s"}, source{doors + "/mcp", "rest-req/s"}, "the same read over REST", 0.5, 0},
	}},
	{"Charts", "Of 500 coins with 200,000 minutes each, 100 million candles; 24 hours to 90 days.", []figure{
		{"ms cold, median", source{chart, "cold-p50-ms"}, source{chart, "rows-p50-ms"}, "one statement for the same rows", 0, 1.5},
		{"ms cold, 99 %", source{chart, "cold-p99-ms"}, source{chart, "rows-p99-ms"}, "one statement for the same rows", 0, 0},
		{"ms while held, median", source{chart, "held-p50-ms"}, source{}, "", 0, 0},
		{"ms while held, 99 %", source{chart, "held-p99-ms"}, source{}, "", 0, 0},
	}},
	{"Sources", "A round of every feed of every polled source against the simulator in the same process, on one core and without the budgets that spread it over time.", []figure{
		{"ms a round", source{cycle, "ms/cycle"}, source{cycle, "fetch-only-ms/cycle"}, "fetching the same answers and reading none", 0, 0},
		{"MB of heap then", source{cycle, "heap-MB"}, source{}, "", 0, 0},
	}},
	{"The stream", "10,000 subscribers in another process, 200 changed symbols a second; a bare loop writes the same bytes to as many connections. With half of the readers stalled, the others' arrivals count.", []figure{
		{"ms until 99 % have a second's changes", source{fanOut, "p99-ms"}, source{fanOut, "bare-p99-ms"}, "the bare loop", 0, 1.25},
		{"ms until the last has them", source{fanOut, "last-ms"}, source{fanOut, "bare-last-ms"}, "the bare loop", 0, 1.25},
		{"ms of CPU a second's changes", source{fanOut, "cpu-ms/tick"}, source{fanOut, "bare-cpu-ms/tick"}, "the bare loop", 0, 1.3},
		{"kB of memory a connection", source{fanOut, "kB/conn"}, source{}, "", 0, 22},
		{"ms until 99 % have them, half of all stalled", source{fanOut, "half-stalled-p99-ms"}, source{fanOut, "p99-ms"}, "none stalled", 0, 1.2},
		{"ms until the last has them, half of all stalled", source{fanOut, "half-stalled-last-ms"}, source{fanOut, "last-ms"}, "none stalled", 0, 1.2},
	}},
	{"From an exchange's wire to a subscriber", "One trade a coin and second, of 50 coins, through the log, which it passes three times. Prices are published once a second, so that a trade waits half a second on average by design; the rows from the second's end leave that out. Who follows the channel `ticks` gets the trade itself, which has passed the log twice.", []figure{
		{"ms from the wire, median", source{wire, "wire-p50-ms"}, source{}, "", 0, 0},
		{"ms from the wire, 99 %", source{wire, "wire-p99-ms"}, source{}, "", 0, 0},
		{"ms from the second's end, median", source{wire, "pulse-p50-ms"}, source{wire, "hop-p50-ms"}, "one record through the same log, once", 0, 0},
		{"ms from the second's end, 99 %", source{wire, "pulse-p99-ms"}, source{wire, "hop-p99-ms"}, "one record through the same log, once", 0, 0},
		{"ms from the wire as a tick, median", source{wire, "ticks-p50-ms"}, source{}, "", 0, 20},
		{"ms from the wire as a tick, 99 %", source{wire, "ticks-p99-ms"}, source{wire, "hop-p99-ms"}, "one record through the same log, once", 0, 0},
	}},
	{"Folds", "On one core, of 500 coins on 15 venues, with what goes into the log; the kernel is the rule of aggregation alone. The goal of 60 ns was set for a median of 20 numbers that are kept in order while one changes, which is the limit beside it. The rule is more: whether an input is fresh, what it weighs and whether it is an outlier depend on the second that is evaluated and on the first median, so that all inputs are looked at anew, and confidence, score, range and volume come with the price.", []figure{
		{"ns a price evaluated", source{"Median_500Coins15Venues", "ns/evaluation"}, source{kernel, "ns/evaluation"}, "the kernel alone", 0, 0},
		{"ns the kernel", source{kernel, "ns/evaluation"}, source{kernel, "sort-ns/evaluation"}, "two medians of 15 numbers by sorting", 0, 0},
		{"ns the kernel of 20 providers", source{kernel2, "ns/evaluation"}, source{kernel2, "sort-ns/evaluation"}, "two medians of 20 numbers by sorting", 0, 0},
		{"ns the kernel of 20 providers", source{kernel2, "ns/evaluation"}, source{kernel2, "kept-ns/evaluation"}, "a median of 20 numbers kept in order while one changes", 0, 0},
		{"ns the kernel of 20 providers", source{kernel2, "ns/evaluation"}, source{}, "", 0, 60},
		{"ns a trade in its candles", source{"Candles_500Coins15Venues", "ns/trade"}, source{"Candles_500Coins15Venues", "bare-ns/trade"}, "reading its exact price and size and finding its minute", 0, 0},
	}},
	{"Replay", "`marketlog replay --view all --verify` folds the log, writes what it makes beside the live rows and compares them. First of what the simulator wrote in two minutes, where all views are made anew and ticks alone are counted, and half the time goes to some twenty small tables; then of the log of the pipeline above, beside the pipeline that made the same rows of the same ticks.", []figure{
		{"ticks of the simulator a second, with all views", source{replay, "records/s"}, source{replay, "bare-records/s"}, "only polling the same ticks", 0, 0},
		{"ticks of the pipeline a second", source{chain + "/pipeline", "replayed-ticks/s"}, source{chain + "/pipeline", "ticks/s"}, "the live pipeline from raw ticks, above", 1, 0},
		{"ticks of the pipeline a second, beside it", source{chain + "/beside_a_replay", "replayed-ticks/s"}, source{chain + "/pipeline", "ticks/s"}, "the live pipeline from raw ticks, above", 0.4, 0},
		{"ticks a second of the live pipeline beside a replay", source{chain + "/beside_a_replay", "ticks/s"}, source{chain + "/pipeline", "ticks/s"}, "the same without a replay", 0.7, 0},
	}},
	{"20,000 coins", "The whole binary reading 20,000 coins of one source of CoinGecko's form, beside 1,000; then `replay --view all --verify` of it. Below, the fold of markets alone, with all that a minute does for each coin. The memory of 20,000 coins is larger than a machine's caches: the bare pass, which does nothing but find the coin of each event in a map, decode its row and encode it again, shows what that alone costs.", []figure{
		{"MB resident while fed", source{crowd + "20000", "fed-MB"}, source{crowd + "1000", "fed-MB"}, "1,000 coins", 0, 0},
		{"ms until it is ready after a restart", source{crowd + "20000", "restart-ready-ms"}, source{crowd + "1000", "restart-ready-ms"}, "1,000 coins", 0, 0},
		{"ms to rebuild all views and compare them", source{crowd + "20000", "rebuild-ms"}, source{crowd + "1000", "rebuild-ms"}, "1,000 coins", 0, 0},
		{"rows of these", source{crowd + "20000", "rows"}, source{crowd + "1000", "rows"}, "1,000 coins", 0, 0},
		{"ns of CPU of folding an event", source{perCoin + "20000", "cpu-ns/event"}, source{perCoin + "1000", "cpu-ns/event"}, "1,000 coins", 0, 1.25},
		{"ns of CPU of the bare pass, an event", source{perCoin + "20000", "bare-cpu-ns/event"}, source{perCoin + "1000", "bare-cpu-ns/event"}, "1,000 coins", 0, 0},
	}},
	{"Lists of 20,000 coins", "Each list of coins, of 20,000 and of 1,000, beside a Fiber handler that returns the same bytes; the load is another process. What a request costs is CPU time of the server alone. The list of all ids grows with the coins, by its bytes. A search whose answer is not held looks through all names.", manyCoins()},
	{"Start and rest", "The whole binary, everything embedded, on the simulator; at rest nothing is fed to it.", []figure{
		{"ms until it answers, empty", source{start, "answers-ms"}, source{}, "", 0, 0},
		{"ms until the first price of BTC, empty", source{start, "first-price-ms"}, source{}, "", 0, 20_000},
		{"ms until it is ready after a restart", source{start, "restart-ready-ms"}, source{start, "engine-open-ms"}, "opening the ClickHouse engine alone", 0, 0},
		{"MB resident at rest", source{start, "rest-MB"}, source{start, "engine-MB"}, "the ClickHouse engine alone", 0, 0},
		{"MB resident while fed", source{start, "fed-MB"}, source{start, "engine-MB"}, "the ClickHouse engine alone", 0, 0},
	}},
}

// manyCoins are the figures of each list, which should cost the same however many coins there are.
func manyCoins() (figures []figure) {
	const bare = "a Fiber handler that returns the same bytes"
	for _, list := range []struct{ what, path string }{
		{"the top coins", "coins_top"}, {"the list of coins", "coins"}, {"a search", "coins_q=coin1_limit=50"}, {"a page of markets", "coins_markets"},
		{"a page of markets by volume", "coins_markets_order=total_volume_order_dir=desc_page=3"}, {"featured coins", "coins_featured"},
		{"trending coins", "coins_trending"}, {"the youngest coins", "coins_recent"}, {"categories", "coins_categories"}, {"all ids", "coins_slugs"},
		{"similar coins", "coins_coin7_similar"}, {"one coin", "coins_coin7"},
	} {
		many, few := lists+"20000/"+list.path, lists+"1000/"+list.path
		most := 1.25
		if list.path == "coins_slugs" {
			most = 0
		}
		figures = append(figures,
			figure{"requests a second of " + list.what, source{many, "req/s"}, source{many, "bare-req/s"}, bare, 0, 0},
			figure{"the same, of 1,000 coins", source{few, "req/s"}, source{few, "bare-req/s"}, bare, 0, 0},
			figure{"µs of CPU a request", source{many, "cpu-us/req"}, source{few, "cpu-us/req"}, "1,000 coins", 0, most})
	}
	return append(figures,
		figure{"ns until a search is answered that nobody asked before", source{unasked + "20000", "ns/op"}, source{unasked + "1000", "ns/op"}, "1,000 coins", 0, 0},
		figure{"ns that the first reader after a minute waits", source{afterMinute + "20000", "ns/op"}, source{afterMinute + "1000", "ns/op"}, "1,000 coins", 0, 0})
}

// write writes the page and returns the figures that were not measured.
func write(w io.Writer, m measured) (missing []string, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Figures\n\nWritten by `make figures`, and never by hand: medians of three runs or more, or of the rounds within one. A value of\n"+
		"one machine says little; each lies beside a limit that was measured in the same run, and the ratio is what to compare.\n\n")
	fmt.Fprintf(&b, "%s · commit %s · %s, %d cores, %s · %s · temporary files in %s\n",
		m.date.Format("2006-01-02"), m.commit, m.cpu, m.cores, m.memory, m.system, m.temporary)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| figure | value | limit | ratio | goal | limit is |\n|---|---:|---:|---:|---:|---|\n", s.title, s.about)
		for _, f := range s.figures {
			row, ok := f.row(m)
			if !ok {
				missing = append(missing, s.title+": "+f.what)
			}
			b.WriteString(row)
		}
	}
	_, err = io.WriteString(w, b.String())
	return missing, err
}

func (f figure) row(m measured) (row string, ok bool) {
	value, ok := m.median(f.value)
	shown := "not measured"
	limit, ratio := "", ""
	if ok {
		shown = spell(value)
	}
	judged := value
	if f.beside != "" {
		least, known := m.median(f.limit)
		if ok = ok && known && least > 0; ok {
			judged = value / least
			limit, ratio = spell(least), strconv.FormatFloat(judged, 'f', 2, 64)
		}
	}
	goal := ""
	if f.least > 0 {
		goal = "≥ " + spell(f.least)
	}
	if f.most > 0 {
		goal = "≤ " + spell(f.most)
	}
	if ok && (judged < f.least || f.most > 0 && judged > f.most) {
		goal += " **missed**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", f.what, shown, limit, ratio, goal, f.beside), ok
}

// spell writes three digits, or all before the point.
func spell(v float64) string {
	if math.Abs(v) >= 100 {
		text := strconv.FormatFloat(v, 'f', 0, 64)
		for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
		return text
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
