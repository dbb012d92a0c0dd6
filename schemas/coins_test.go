package schemas

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var venues = strings.Fields(`binance coinbase kraken okx bybit bitstamp kucoin gate htx cryptocom
	bitget mexc gemini bitfinex upbit poloniex`)

func TestEmbeddedCoinTable(t *testing.T) {
	table, err := ParseCoins(coinsCSV, fiatsCSV)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(table.All()); n < 320 {
		t.Errorf("got %d coins, want at least 320", n)
	}
	ids := map[string]bool{}
	stablecoins := 0
	for i, c := range table.All() {
		if c.Rank != i+1 {
			t.Errorf("%s: got rank %d, want %d", c.ID, c.Rank, i+1)
		}
		if ids[c.ID] {
			t.Errorf("id %s appears twice", c.ID)
		}
		ids[c.ID] = true
		if got, ok := table.ByID(c.ID); !ok || got != c {
			t.Errorf("ByID(%q): got %v %v, want %v", c.ID, got, ok, c)
		}
		if all := table.BySymbol(c.Symbol); !slices.Contains(all, c) {
			t.Errorf("BySymbol(%q): %v lacks %s", c.Symbol, all, c.ID)
		}
		if c.Kind == KindStablecoin {
			stablecoins++
			if _, ok := table.Fiat(c.Peg); !ok {
				t.Errorf("stablecoin %s: peg %q is no fiat currency", c.ID, c.Peg)
			}
		}
	}
	if stablecoins < 20 {
		t.Errorf("got %d stablecoins, want at least 20", stablecoins)
	}
	for key := range table.venue {
		venue, _, _ := strings.Cut(key, ":")
		if !slices.Contains(venues, venue) {
			t.Errorf("alias %s names no venue we read", key)
		}
	}
}

// A price of a thousand units must never pass as the price of one.
func TestMultipliedSymbolsStayUnmapped(t *testing.T) {
	multiplied := regexp.MustCompile(`^(1000+|1M|10K|1K)[A-Z]`)
	var named []string
	for s := range Coins().symbols {
		named = append(named, s)
	}
	for key := range Coins().venue {
		named = append(named, key[strings.Index(key, ":")+1:])
	}
	for _, s := range named {
		if multiplied.MatchString(s) {
			t.Errorf("%s counts many units of a coin and is in the table", s)
		}
	}
	for _, s := range []string{"1000SATS", "1000CAT", "1000CHEEMS", "1MBABYDOGE", "1000000MOG"} {
		if c, _, ok := Coins().Resolve("binance", s); ok {
			t.Errorf("Resolve(binance, %s): got %s, want none", s, c.ID)
		}
	}
}

func TestResolve(t *testing.T) {
	for _, tc := range []struct{ venue, base, id, method string }{
		{"kraken", "XBT", "bitcoin", ResolvedByAlias},
		{"kraken", "XXBT", "bitcoin", ResolvedByVenueAlias},
		{"kraken", "BTC", "bitcoin", ResolvedBySymbol},
		{"kraken", "XDG", "dogecoin", ResolvedByVenueAlias},
		{"kraken", "LUNA", "terra-luna", ResolvedByVenueAlias},
		{"kraken", "LUNA2", "terra-luna-2", ResolvedByAlias},
		{"binance", "LUNA", "terra-luna-2", ResolvedBySymbol},
		{"binance", "LUNC", "terra-luna", ResolvedBySymbol},
		{"bitfinex", "UST", "tether", ResolvedByVenueAlias},
		{"bitfinex", "ust", "tether", ResolvedByVenueAlias},
		{"Kraken", "UST", "terrausd", ResolvedByVenueAlias},
		{"bitfinex", "DSH", "dash", ResolvedByVenueAlias},
		{"bitfinex", "IOT", "iota", ResolvedByVenueAlias},
		{"bitfinex", "QTM", "qtum", ResolvedByVenueAlias},
		{"bitfinex", "BCHN", "bitcoin-cash", ResolvedByVenueAlias},
		{"bitfinex", "AMP", "ampleforth", ResolvedByVenueAlias},
		{"gemini", "AMP", "amp-token", ResolvedBySymbol},
		{"bitfinex", "WBT", "wrapped-bitcoin", ResolvedByVenueAlias},
		{"bitfinex", "XCH", "", ""}, // a Swiss franc token there
		{"bitfinex", "CNHT", "cnh-tether", ResolvedBySymbol},
		{"bitfinex", "CNH", "", ""}, // the offshore yuan itself: there was a pair CNH:CNHT
		{"okx", "XCH", "chia", ResolvedBySymbol},
		{"kucoin", "BCHSV", "bitcoin-cash-sv", ResolvedByVenueAlias},
		{"poloniex", "STR", "stellar", ResolvedByVenueAlias},
		{"poloniex", "BCHSV", "bitcoin-cash-sv", ResolvedByVenueAlias},
		{"mexc", "GMT", "gmt-token", ResolvedByVenueAlias},
		{"mexc", "STEPN", "stepn", ResolvedByVenueAlias},
		{"bybit", "GMT", "stepn", ResolvedBySymbol},
		{"htx", "hot", "", ""}, // Hydro Protocol there
		{"htx", "btc", "bitcoin", ResolvedBySymbol},
		{"gate", "GTC", "", ""}, // Game.com there
		{"coinbase", "GTC", "gitcoin", ResolvedBySymbol},
		{"coinbase", "CGLD", "celo", ResolvedByAlias},
		{"binance", "MATIC", "polygon-ecosystem-token", ResolvedByAlias},
		{"binance", "FTM", "sonic-3", ResolvedByAlias},
		{"binance", "EOS", "vaulta", ResolvedByAlias},
		{"okx", "RNDR", "render-token", ResolvedByAlias},
		{"binance", "BTTC", "bittorrent", ResolvedByAlias},
		{"binance", "MKR", "maker", ResolvedBySymbol}, // SKY is 24,000 to one
		{"binance", "SKY", "sky", ResolvedBySymbol},
		{"binance", "FRAX", "frax-share", ResolvedByRank},
		{"binance", "EUR", "", ""},
		{"binance", "BCHA", "", ""}, // a million XEC
		{"binance", "BTCUP", "", ""},
		{"", "BTC", "bitcoin", ResolvedBySymbol},
		{"binance", "", "", ""},
		{"binance", strings.Repeat("A", 500), "", ""},
	} {
		c, method, ok := Coins().Resolve(tc.venue, tc.base)
		if c.ID != tc.id || method != tc.method || ok != (tc.id != "") {
			t.Errorf("Resolve(%q, %q): got %q by %q, %v, want %q by %q", tc.venue, tc.base, c.ID, method, ok, tc.id, tc.method)
		}
	}
}

func TestResolveQuote(t *testing.T) {
	for _, tc := range []struct {
		venue, quote string
		want         Asset
	}{
		{"coinbase", "USD", Asset{"USD", true}},
		{"kraken", "ZUSD", Asset{"USD", true}},
		{"kraken", "ZEUR", Asset{"EUR", true}},
		{"okx", "ZUSD", Asset{"zusd", false}},
		{"upbit", "KRW", Asset{"KRW", true}},
		{"binance", "try", Asset{"TRY", true}},
		{"binance", "USDT", Asset{"tether", false}},
		{"bitfinex", "UST", Asset{"tether", false}},
		{"bitfinex", "CNH", Asset{"CNH", true}},
		{"kraken", "XBT", Asset{"bitcoin", false}},
		{"binance", "FDUSD", Asset{"first-digital-usd", false}},
		{"gate", "VAI", Asset{}},
		{"binance", "NOSUCH", Asset{}},
	} {
		got, ok := Coins().ResolveQuote(tc.venue, tc.quote)
		if got != tc.want || ok != (tc.want != Asset{}) {
			t.Errorf("ResolveQuote(%q, %q): got %v %v, want %v", tc.venue, tc.quote, got, ok, tc.want)
		}
	}
}

func TestBySymbolPutsTheLargestFirst(t *testing.T) {
	for _, tc := range []struct {
		symbol string
		want   []string
	}{
		{"frax", []string{"frax-share", "frax"}},
		{"XBT", []string{"bitcoin"}},
		{"btc", []string{"bitcoin"}},
		{"nosuch", nil},
	} {
		var got []string
		for _, c := range Coins().BySymbol(tc.symbol) {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("BySymbol(%q): got %v, want %v", tc.symbol, got, tc.want)
		}
	}
}

func TestParseCoinsNamesLineAndField(t *testing.T) {
	const (
		fiats = "code,name,aliases\nUSD,US Dollar,kraken:ZUSD\n"
		head  = "id,symbol,name,rank,kind,peg,aliases\nbitcoin,BTC,Bitcoin,1,coin,,kraken:XXBT\n"
	)
	if _, err := ParseCoins(head, fiats); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ row, want string }{
		{"bitcoin,BTX,B,2,coin,,", "coins.csv line 3: id: bitcoin appears twice"},
		{"Eth,ETH,E,2,coin,,", `coins.csv line 3: id: "Eth"`},
		{"eth,eth,E,2,coin,,", `coins.csv line 3: symbol: "eth"`},
		{"eth,ETH-X,E,2,coin,,", `coins.csv line 3: symbol: "ETH-X"`},
		{"eth,ETH,,2,coin,,", "coins.csv line 3: name: empty"},
		{"eth,ETH,E,3,coin,,", `coins.csv line 3: rank: got "3", want 2`},
		{"eth,ETH,E,x,coin,,", `coins.csv line 3: rank: got "x"`},
		{"eth,ETH,E,2,thing,,", `coins.csv line 3: kind: "thing"`},
		{"eth,ETH,E,2,coin,USD,", `coins.csv line 3: peg: "USD"`},
		{"usdx,USDX,U,2,stablecoin,,", `coins.csv line 3: peg: ""`},
		{"eurx,EURX,U,2,stablecoin,EUR,", `coins.csv line 3: peg: "EUR"`},
		{"eth,ETH,E,2,coin,,XETH", `coins.csv line 3: aliases: "XETH"`},
		{"eth,ETH,E,2,coin,,kraken:xeth", `coins.csv line 3: aliases: "kraken:xeth"`},
		{"eth,ETH,E,2,coin,,kraken:XXBT", "coins.csv line 3: aliases: \"kraken:XXBT\": kraken:XXBT is listed twice"},
		{"eth,ETH,E,2,coin,,!kraken:XXBT", "kraken:XXBT is listed twice"},
		{"eth,ETH,E,2,coin,,kraken:ZUSD", "kraken:ZUSD is listed twice"},
		{"eth,ETH,E,2,coin,,*:BTC", `coins.csv line 3: aliases: "*:BTC"`},
		{"eth,ETH,E,2,coin,,!*:ETH", `coins.csv line 3: aliases: "!*:ETH"`},
		{"eth,ETH,E ,2,coin,,", "coins.csv line 3: row:"},
		{"eth,ETH,E,2,coin", "reading coins.csv: record on line 3"},
	} {
		_, err := ParseCoins(head+tc.row+"\n", fiats)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want one with %s", tc.row, err, tc.want)
		}
	}
	if _, err := ParseCoins("id,symbol\n", fiats); err == nil || !strings.Contains(err.Error(), "coins.csv line 1: header") {
		t.Errorf("other header: got %v", err)
	}
	_, err := ParseCoins(head+"a,A,A,5,x,,\nb,B,,3,coin,,\n", "code,name,aliases\nusd,,\n")
	for _, want := range []string{"fiats.csv line 2: code", "fiats.csv line 2: name", "line 3: rank", "line 3: kind", "line 4: name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("all faults at once: %v lacks %q", err, want)
		}
	}
}

func TestResolvingAllocatesNothing(t *testing.T) {
	table := Coins()
	allocs := testing.AllocsPerRun(100, func() {
		table.Resolve("bitfinex", "ust")
		table.Resolve("htx", "btc")
		table.Resolve("binance", "NOSUCH")
		table.ResolveQuote("kraken", "zusd")
		table.BySymbol("btc")
		table.Fiat("eur")
	})
	if allocs != 0 {
		t.Errorf("got %v allocations, want none", allocs)
	}
}

// The lists are years old: most of what is missing has since been delisted, or is a leveraged
// token. The floors are a little below what was measured.
func TestRecordedInstrumentsResolve(t *testing.T) {
	dir := os.Getenv("MARKETLOG_RECORDINGS")
	if dir == "" {
		t.Skip("tier recordings: MARKETLOG_RECORDINGS names no folder of recorded venue messages")
	}
	for _, tc := range []struct {
		file, venue string
		floor       float64
	}{
		{"BINANCE", "binance", 0.75},
		{"BINANCE_US", "binance", 1},
		{"COINBASE", "coinbase", 1},
		{"KRAKEN", "kraken", 0.98},
		{"BITSTAMP", "bitstamp", 1},
		{"OKX", "okx", 0.6},
		{"KUCOIN", "kucoin", 0.5},
		{"HUOBI", "htx", 0.6},
		{"BITGET", "bitget", 0.6},
		{"GATEIO", "gate", 0.3},
	} {
		files, err := filepath.Glob(filepath.Join(dir, "*", tc.file+".instruments.jsonl.gz"))
		if err != nil || len(files) != 1 {
			t.Errorf("%s: got instrument lists %v (%v), want one", tc.file, files, err)
			continue
		}
		markets, resolved := 0, 0
		var missing []string
		for pair := range recordedPairs(t, files[0]) {
			asset, ok := Coins().ResolveQuote(tc.venue, pair[1])
			if !ok || asset.ID != "USD" && asset.ID != "tether" {
				continue
			}
			markets++
			_, _, asCoin := Coins().Resolve(tc.venue, pair[0])
			_, asFiat := Coins().Fiat(pair[0])
			if !asCoin && !asFiat {
				missing = append(missing, pair[0])
				continue
			}
			resolved++
		}
		share := float64(resolved) / float64(max(markets, 1))
		t.Logf("%s: %d of %d USD and USDT markets resolve (%.3f)", tc.file, resolved, markets, share)
		if share < tc.floor {
			slices.Sort(missing)
			t.Errorf("%s: got a share of %.3f, want at least %.2f; missing %v", tc.file, share, tc.floor, missing)
		}
	}
}

// recordedPairs collects base and quote of every object in the recorded answers that has both.
func recordedPairs(t *testing.T, file string) map[[2]string]bool {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	pairs := map[[2]string]bool{}
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var line struct{ D, X string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		var body any
		if line.D != "http" || json.Unmarshal([]byte(line.X), &body) != nil {
			continue
		}
		collectPairs(body, pairs)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return pairs
}

func collectPairs(node any, pairs map[[2]string]bool) {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			collectPairs(child, pairs)
		}
	case map[string]any:
		text := func(key string) string { s, _ := node[key].(string); return s }
		for _, keys := range [][2]string{
			{"baseAsset", "quoteAsset"}, {"baseCcy", "quoteCcy"}, {"baseCoin", "quoteCoin"}, {"baseCurrency", "quoteCurrency"},
			{"base_currency", "quote_currency"}, {"base-currency", "quote-currency"}, {"base", "quote"},
		} {
			if base, quote := text(keys[0]), text(keys[1]); base != "" && quote != "" {
				if b, q, ok := strings.Cut(text("wsname"), "/"); ok { // Kraken: the names of its feed
					base, quote = b, q
				}
				pairs[[2]string{base, quote}] = true
				return
			}
		}
		if b, q, ok := strings.Cut(text("name"), "/"); ok && text("url_symbol") != "" { // Bitstamp
			pairs[[2]string{b, q}] = true
			return
		}
		for _, child := range node {
			collectPairs(child, pairs)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	table := Coins()
	b.ReportAllocs()
	for b.Loop() {
		table.Resolve("bitfinex", "ust")
	}
}
