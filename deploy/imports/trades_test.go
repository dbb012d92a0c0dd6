package imports_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/deploy/imports"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// drawnTrade is a trade in a file that is drawn.
type drawnTrade struct {
	at          int64 // microseconds
	price, size decimal.Decimal
}

// drawnTrades are trades of a day's first minutes in the order in which a recorder has them: their times go back by up to a minute.
func drawnTrades(r *rand.Rand) (all []drawnTrade) {
	type recorded struct {
		drawnTrade
		order int64
	}
	var list []recorded
	day := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	for range 300 + r.IntN(300) {
		at := day + r.Int64N(40*60)*1e6 + r.Int64N(3)*400_000
		behind := int64(0)
		if r.IntN(10) == 0 {
			behind = r.Int64N(29_000_000)
		}
		list = append(list, recorded{drawnTrade{at, decimal.New(90_000_00000000+r.Int64N(1e12), -8), decimal.New(1+r.Int64N(1e9), -8)}, at + behind})
	}
	slices.SortStableFunc(list, func(a, b recorded) int { return int(a.order - b.order) })
	for _, of := range list {
		all = append(all, of.drawnTrade)
	}
	return all
}

// klinesOf works the candles out in another way: of all trades of each minute, in order of time.
func klinesOf(trades []drawnTrade) string {
	sorted := slices.Clone(trades)
	slices.SortStableFunc(sorted, func(a, b drawnTrade) int { return int(a.at - b.at) })
	minute := func(t drawnTrade) int64 { return t.at / 60_000_000 }
	var text strings.Builder
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && minute(sorted[j]) == minute(sorted[i]) {
			j++
		}
		high, low, volume := sorted[i].price, sorted[i].price, decimal.Zero
		for _, t := range sorted[i:j] {
			high, low, volume = decimal.Max(high, t.price), decimal.Min(low, t.price), volume.Add(t.size)
		}
		fmt.Fprintf(&text, "%d,%s,%s,%s,%s,%s,%d,0,0,0,0,0\n", minute(sorted[i])*60_000_000, sorted[i].price, high, low, sorted[j-1].price, volume, minute(sorted[i])*60_000_000+59_999_999)
		i = j
	}
	return text.String()
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // a buffer takes all
	_ = w.Close()
	return b.String()
}

// tradeFile is trades as a publisher of the format has them, with the name that the file has.
func tradeFile(format string, trades []drawnTrade) (name, content string) {
	var text strings.Builder
	switch format {
	case "binance-trades":
		for i, t := range trades {
			fmt.Fprintf(&text, "%d,%s,%s,0,%d,True,True\n", 1000+i, t.price, t.size, t.at)
		}
		return "BTCUSDT-trades-2025-01-01.csv", text.String()
	case "binance-aggtrades":
		for i, t := range trades {
			fmt.Fprintf(&text, "%d,%s,%s,%d,%d,%d,True,True\n", 1000+i, t.price, t.size, 1000+i, 1000+i, t.at)
		}
		return "BTCUSDT-aggTrades-2025-01.csv", text.String()
	case "ticks": // as export --dataset trades --format csv writes them
		text.WriteString(`"coin_id","venue","symbol","event_time","ingest_time","price","size","side"` + "\n")
		for _, t := range trades {
			at := time.UnixMicro(t.at).UTC()
			fmt.Fprintf(&text, `"bitcoin","binance","BTCUSDT","%s","%s",%s,%s,"buy"`+"\n", at.Format("2006-01-02T15:04:05.000000000Z"), at.Format(time.RFC3339), t.price, t.size)
		}
		return "2025-01-01.csv", text.String()
	}
	text.WriteString("exchange,symbol,timestamp,local_timestamp,id,side,price,amount\n")
	for i, t := range trades {
		fmt.Fprintf(&text, "binance,BTCUSDT,%d,%d,%d,buy,%s,%s\n", t.at, t.at+1000, i, t.price, t.size)
	}
	return "binance_trades_2025-01-01_BTCUSDT.csv.gz", gzipped(text.String())
}

// Trades of each format come to the candles that their market's klines have.
func TestTradesBecomeTheCandlesOfTheirMinutes(t *testing.T) {
	for _, seed := range streamtest.Seeds(t, 1) {
		streamtest.ReportSeed(t, seed)
		trades := drawnTrades(rand.New(rand.NewPCG(seed, 1)))
		w := newFixture(t)
		w.imported(w.klines(w.file("BTCUSDT-1m-2025-01-01.csv", klinesOf(trades))))
		candles := func() string {
			return w.table("SELECT start, open, high, low, close, toDecimal128(volume, 8) FROM " + w.store.Database() + ".backfill FINAL WHERE NOT withdrawn ORDER BY start")
		}
		want := candles()
		for _, format := range []string{"binance-trades", "binance-aggtrades", "tardis-trades", "ticks"} {
			w := newFixture(t)
			name, content := tradeFile(format, trades)
			line := w.imported(imports.Request{Format: format, Files: []string{w.file(name, content)}})
			if got := candles(); got != want || line.BadRows != 0 || line.Markets[0].Interval != "1m" || line.Rows != int64(strings.Count(want, "\n")) {
				t.Errorf("seed %d: %s comes to %+v and\n%s\nwant\n%s", seed, format, line, got, want)
			}
		}
	}
}

// Markets of tardis.dev are spelt as their venues do; trades that no minute can take are in the dead letters.
func TestTradesOfSeveralMarkets(t *testing.T) {
	w := newFixture(t)
	line := w.imported(imports.Request{Format: "tardis-trades", Files: []string{w.file("trades.csv", `exchange,symbol,timestamp,local_timestamp,id,side,price,amount
huobi,BTCUSDT,1735689660000000,1735689660000001,1,buy,93000,0.5
bitfinex,BTCUSD,1735689660000000,1735689660000002,2,sell,93010,0.25
gate-io,BTC_USDT,1735689661000000,1735689661000003,3,sell,93020,1
huobi,BTCUSDT,1735693400000000,1735693400000004,4,buy,93040,0.5
huobi,BTCUSDT,1735689661000000,1735689800000005,5,buy,93050,0.5
huobi,BTCUSDT,1735689801000000,1735689801000006,6,buy,0,0.5
huobi,BTCUSDT,1735689801000000,1735689801000006,7,buy,93000,-1
huobi,BTCUSDT,1735689801000000,1735689801000006,buy,93000,1
`)}})
	if line.MarketCount != 3 || line.Rows != 4 || line.BadRows != 4 {
		t.Errorf("got %+v, want four candles of three markets and four bad lines", line)
	}
	if got, want := w.table("SELECT venue, symbol, start, close, volume, line FROM default.v_backfill WHERE producer = 'import' ORDER BY venue, start"),
		"bitfinex\ttBTCUSD\t2025-01-01 00:01:00\t93010\t0.25\t3\ngate\tBTC_USDT\t2025-01-01 00:01:00\t93020\t1\t4\n"+
			"htx\tbtcusdt\t2025-01-01 00:01:00\t93000\t0.5\t2\nhtx\tbtcusdt\t2025-01-01 01:03:00\t93040\t0.5\t5\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := w.table("SELECT reason, replaceRegexpOne(detail, ' of .*', '') AS at FROM default.v_dead_letters WHERE source = 'import' ORDER BY at"),
		"undecodable\tline 6\nnon_positive\tline 7\nnon_positive\tline 8\nundecodable\tline 9\n"; got != want {
		t.Errorf("the dead letters are\n%s\nwant\n%s", got, want)
	}
}

// Plain ticks need not be in an order of columns, nor name their market, and have times in several forms; what is no trade is in the
// dead letters. A file of the same name with other trades replaces what it has no more.
func TestPlainTicksAreImported(t *testing.T) {
	w := newFixture(t)
	r := imports.Request{Format: "ticks", Venue: "kraken", Market: "BTC/USD", Files: []string{w.file("own.csv", `Time,kind,amount,note,price
1735689660,trade,0.5,a,93000
1735689661000,trade,0.25,b,93010
2025-01-01 00:02:00.5,trade,1,c,93020
2025-01-01T00:02:01Z,quote,1,d,93020
soon,trade,1,e,93020
2025-01-01T00:02:02Z,trade,1,f
`)}}
	if line := w.imported(r); line.Rows != 2 || line.BadRows != 3 || line.Markets[0].Interval != "1m" {
		t.Errorf("got %+v, want two candles and three bad lines", line)
	}
	candles := func() string {
		return w.table("SELECT venue, symbol, start, open, close, volume FROM " + w.store.Database() + ".backfill FINAL WHERE NOT withdrawn ORDER BY start")
	}
	if got, want := candles(), "kraken\tBTC/USD\t2025-01-01 00:01:00\t93000\t93010\t0.75\nkraken\tBTC/USD\t2025-01-01 00:02:00\t93020\t93020\t1\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.Files = []string{w.file("own.csv", "time,price,size\n1735689660,93000,0.5\n1735689780,93030,2\n")}
	if line := w.imported(r); line.Replaces == "" {
		t.Errorf("got %+v, want that it replaces the first", line)
	}
	if got, want := candles(), "kraken\tBTC/USD\t2025-01-01 00:01:00\t93000\t93000\t0.5\nkraken\tBTC/USD\t2025-01-01 00:03:00\t93030\t93030\t2\n"; got != want {
		t.Errorf("after the second file there are\n%s\nwant\n%s", got, want)
	}
}

// A symbol without a separator is read in the way that names a coin.
func TestSymbolsAreReadByWhatIsKnown(t *testing.T) {
	w := newFixture(t)
	line := w.imported(imports.Request{Format: "tardis-trades", Files: []string{w.file("trades.csv", `exchange,symbol,timestamp,local_timestamp,id,side,price,amount
bitstamp,ETHUSD,1735689660000000,1735689660000001,1,buy,3300,0.5
bitstamp,DOTUSD,1735689660000000,1735689660000001,2,buy,6,0.5
binance,BTCTUSD,1735689660000000,1735689660000001,3,buy,93000,0.5
`)}})
	var got []string
	for _, m := range line.Markets {
		got = append(got, m.Coin+" in "+m.Quote)
	}
	if want := []string{"ethereum in USD", "polkadot in USD", "bitcoin in TUSD"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Markets whose coin nobody knows here do not keep the others of a file from being imported; they are named.
func TestMarketsThatAreNotKnownArePassedOver(t *testing.T) {
	w := newFixture(t)
	r := imports.Request{Format: "tardis-trades", Files: []string{w.file("trades.csv", `exchange,symbol,timestamp,local_timestamp,id,side,price,amount
huobi,NOBODYKNOWSUSDT,1735689660000000,1735689660000001,1,buy,1,0.5
huobi,BTCUSDT,1735689660000000,1735689660000001,1,buy,93000,0.5
kraken,NOTAPAIR,1735689660000000,1735689660000002,2,sell,no number,0.25
huobi,NOBODYKNOWSUSDT,1735689661000000,1735689661000003,3,sell,1,1
`)}}
	line := w.imported(r)
	if line.MarketCount != 1 || line.Rows != 1 || line.BadRows != 0 || line.PassedCount != 2 || line.PassedLines != 3 ||
		!strings.Contains(line.Passed[0].Reason, `no coin is called "NOBODYKNOWS" at htx`) || line.Passed[1].Venue != "kraken" {
		t.Errorf("got %+v, want one market, and two that are passed over", line)
	}
	if got, want := w.table("SELECT symbol, line FROM default.v_backfill WHERE producer = 'import'"), "btcusdt\t3\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	before := w.all()
	lines, _, err := w.run(r)
	w.must(err)
	if lines[0].State != imports.StateKnown || lines[0].PassedCount != 2 || w.all() != before {
		t.Errorf("given again: %+v, want that it is known", lines[0])
	}
}

// Each market of a file is compared with itself, where it is known, and else with the price of its coin.
func TestMarketsOfAFileAreCompared(t *testing.T) {
	w := newFixture(t)
	const header = "venue,symbol,interval,open_time,open,high,low,close,volume\n"
	w.imported(w.plain(w.file("a.csv", header+"coinbase,BTC-USD,1m,1704067200,100,100,100,100,1\ncoinbase,ETH-USD,1m,1704067200,10,10,10,10,1\n")))
	r := w.plain(w.file("b.csv", header+"coinbase,BTC-USD,1m,1704067260,101,101,101,101,1\nkraken,ETH/USD,1m,1704067260,40,40,40,40,1\nkraken,SOL/USD,1m,1704067260,7,7,7,7,1\n"))
	lines, _, err := w.run(r)
	w.must(err)
	if lines[0].State != imports.StateRefused || !strings.Contains(lines[0].Reason, "kraken ETH/USD: its closes are 4 times what is known") || !strings.Contains(lines[0].Reason, "10 by the price of ethereum in USD") {
		t.Errorf("got %+v, want that it is refused for ether", lines[0])
	}
	r.Confirm = true
	line := w.imported(r)
	if c := line.Markets[0].Compared; !strings.Contains(c, "1.01 times") || !strings.Contains(c, "its candles in the log") || line.Markets[2].Compared != "" {
		t.Errorf("got %+v, want bitcoin compared with itself, and solana with nothing", line.Markets)
	}
}

// A file of trades that its format does not fit is refused, and names the remedy.
func TestFilesOfTradesAreRefused(t *testing.T) {
	w := newFixture(t)
	_, klines := tradeFile("binance-trades", drawnTrades(rand.New(rand.NewPCG(1, 1))))
	for want, r := range map[string]imports.Request{
		"import it with --format binance-aggtrades": {Format: "binance-trades", Files: []string{w.file("BTCUSDT-aggTrades-2025-01-01.csv", klines)}},
		"name it with --market":                     {Format: "binance-trades", Files: []string{w.file("trades.csv", klines)}},
		"leave out --interval":                      {Format: "binance-trades", Interval: "1h", Files: []string{w.file("BTCUSDT-trades-2025-01-02.csv", klines)}},
		"is not in the time that the file is named": {Format: "binance-trades", Files: []string{w.file("BTCUSDT-trades-2025-01-03.csv", klines)}},
		"does not name the columns exchange,symbol": {Format: "tardis-trades", Files: []string{w.file("tardis.csv", klines)}},
		"leave out --venue and --market":            {Format: "tardis-trades", Market: "BTCUSDT", Files: []string{w.file("market.csv", klines)}},
		`there is no venue "binance-futures"`:       {Format: "tardis-trades", Files: []string{w.file("futures.csv", "exchange,symbol,timestamp,local_timestamp,id,side,price,amount\nbinance-futures,BTCUSDT,1735689660000000,1735689660000001,1,buy,93000,0.5\n")}},
		"has no column size: it must name":          {Format: "ticks", Files: []string{w.file("few.csv", "venue,symbol,time,price\n")}},
		"name it with --venue":                      {Format: "ticks", Market: "BTCUSDT", Files: []string{w.file("whose.csv", "time,price,size\n")}},
		"leave out --market":                        {Format: "ticks", Market: "BTCUSDT", Files: []string{w.file("twice.csv", "venue,symbol,time,price,size\n")}},
		"table of ticks drops what is older":        {Format: "ticks", Files: []string{w.file("quotes.csv", "venue,symbol,event_time,bid,ask\n")}},
		"quotes are not imported":                   {Format: "tardis-trades", Files: []string{w.file("binance_quotes_2025-01-01_BTCUSDT.csv", "exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount\n")}},
		"unexpected EOF":                            {Format: "tardis-trades", Files: []string{w.file("cut.csv.gz", gzipped(klines)[:20])}},
	} {
		lines, result, err := w.run(r)
		w.must(err)
		if result.Refused != 1 || !strings.Contains(lines[0].Reason, want) {
			t.Errorf("got %+v, want that it is refused: %s", lines, want)
		}
	}
}
