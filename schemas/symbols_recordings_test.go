package schemas

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// instrument is a spot market of a venue's list.
type instrument struct{ venue, symbol, base, quote string }

// baseAndQuote are what venues call the two in their lists.
var baseAndQuote = [][2]string{
	{"baseAsset", "quoteAsset"}, {"base_currency", "quote_currency"}, {"baseCoin", "quoteCoin"}, {"baseCurrency", "quoteCurrency"},
	{"base-currency", "quote-currency"}, {"baseCcy", "quoteCcy"},
}

// recordedInstruments reads the lists of spot markets that venues answered with.
func recordedInstruments(t *testing.T, dir string) []instrument {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "cryptofeed", "*.instruments.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no lists of instruments in %s: %v", dir, err)
	}
	seen := map[instrument]bool{}
	var list []instrument
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		venue := VenueSlug(strings.ReplaceAll(strings.ToLower(name), "_", ""))
		if venue == "deribit" || venue == "bybit" {
			continue // their lists of that time hold no spot market
		}
		for _, line := range gunzippedLines(t, file) {
			var answer struct{ D, U, X string }
			if json.Unmarshal([]byte(line), &answer) != nil || answer.D != "http" {
				continue
			}
			var body any
			if json.Unmarshal([]byte(answer.X), &body) != nil || !spotList(answer.U) {
				continue
			}
			walk(venue, answer.U, "", body, func(i instrument) {
				if !seen[i] {
					seen[i] = true
					list = append(list, i)
				}
			})
		}
	}
	return list
}

func spotList(url string) bool {
	for _, other := range []string{"mix/", "SWAP", "FUTURES", "OPTION", "fapi", "dapi", "hbdm", "contract", "futures", "delivery"} {
		if strings.Contains(url, other) {
			return false
		}
	}
	return true
}

// walk finds the markets in an answer of any venue.
func walk(venue, url, key string, node any, found func(instrument)) {
	switch n := node.(type) {
	case []any:
		for _, item := range n {
			walk(venue, url, "", item, found)
		}
	case map[string]any:
		text := func(name string) string { s, _ := n[name].(string); return s }
		for _, names := range append(baseAndQuote, [2]string{"base", "quote"}) {
			base, quote := text(names[0]), text(names[1])
			if wsname := text("wsname"); wsname != "" {
				base, quote, _ = strings.Cut(wsname, "/")
			}
			if base != "" && quote != "" {
				found(instrument{venue, text("symbol") + text("id") + key, base, quote})
				return
			}
		}
		if base, quote, ok := strings.Cut(text("name"), "/"); ok && venue == "bitstamp" {
			found(instrument{venue, text("url_symbol"), base, quote})
			return
		}
		if base, quote, ok := strings.Cut(text("product_code"), "_"); ok && venue == "bitflyer" && text("market_type") == "Spot" {
			found(instrument{venue, base + quote, base, quote})
			return
		}
		for name, item := range n {
			if _, of, ok := strings.Cut(url, "ticker/ALL_"); ok && key == "data" && name != "date" {
				found(instrument{venue, name + of, name, of})
				continue
			}
			walk(venue, url, name, item, found)
		}
	}
}

// gunzippedLines reads all lines of a file.
func gunzippedLines(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	scanner := bufio.NewScanner(z)
	scanner.Buffer(nil, 64<<20)
	var lines []string
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return lines
}

// recordedCatalog is CoinGecko's list as recorded, together with the coin table, whose ranks are all that is known of
// sizes.
func recordedCatalog(t *testing.T, dir string) *SymbolIndex {
	t.Helper()
	return rankedCatalog(t, dir, nil, 0)
}

// rankedCatalog is the recorded one with ranks, by id, of coins that the table does not have, of a ranking that ends at last; 0 for
// that of the table.
func rankedCatalog(t *testing.T, dir string, ranks map[string]int, last int) *SymbolIndex {
	t.Helper()
	var answer struct{ Body string }
	if err := json.Unmarshal([]byte(strings.Join(gunzippedLines(t, filepath.Join(dir, "coingecko_ruby", "coins-list.json.gz")), "\n")), &answer); err != nil {
		t.Fatal(err)
	}
	var list []struct{ ID, Symbol, Name string }
	if err := json.Unmarshal([]byte(answer.Body), &list); err != nil || len(list) < 7000 {
		t.Fatalf("got %d coins and %v, want at least 7000", len(list), err)
	}
	coins := slices.Collect(TableCoins(Coins()))
	for _, c := range list {
		coins = append(coins, SymbolCoin{ID: c.ID, Symbol: strings.ToUpper(c.Symbol), Name: c.Name, Rank: ranks[c.ID]})
	}
	if last > 0 {
		coins = append(coins, SymbolCoin{ID: "the last that is ranked", Symbol: "-", Rank: last})
	}
	return NewSymbolIndex(slices.Values(coins))
}

// leveraged reports whether a symbol of these lists is a fund which venues make of a coin, such as BTC3L and ETHDOWN.
func leveraged(symbol string, coins SymbolCatalog) bool {
	symbol = strings.ToUpper(symbol)
	for _, suffix := range []string{"UP", "DOWN", "BULL", "BEAR", "1S", "2L", "2S", "3L", "3S", "5L", "5S"} {
		if base, ok := strings.CutSuffix(symbol, suffix); ok && len(coins.BySymbol(base)) > 0 && len(coins.BySymbol(symbol)) == 0 {
			return true
		}
	}
	return false
}

// recordedLater are the venues whose lists are a year and more younger than the recorded catalog, which cannot know
// the coins that they began to trade meanwhile. Their markets count, their decisions are not judged.
var recordedLater = []string{"binancetr", "bitget", "okx", "okcoin"}

// tally is what a method decided.
type tally struct{ decided, sure, checked, wrong int }

func TestRecordedInstrumentsAreResolved(t *testing.T) {
	dir := os.Getenv("MARKETLOG_RECORDINGS")
	if dir == "" {
		t.Skip("tier recordings: MARKETLOG_RECORDINGS is not set")
	}
	catalog := recordedCatalog(t, dir)
	resolver := &Resolver{Table: Coins(), Catalog: catalog}
	givenAway := map[string]bool{}
	for _, row := range symbolRows(t, "given_away.csv") {
		givenAway[row[0]] = true
	}
	known := map[string]string{}
	for _, row := range symbolRows(t, "collisions.csv") {
		known["*:"+row[0]] = row[1]
	}
	for _, row := range symbolRows(t, "venues.csv") {
		known[row[0]+":"+row[1]] = row[2]
	}
	type decision struct {
		coin, method string
		confidence   int
	}
	decisions := map[string]decision{}
	markets, resolved, funds, left := 0, 0, 0, map[string]bool{}
	for _, i := range recordedInstruments(t, dir) {
		if leveraged(i.base, catalog) || leveraged(i.quote, catalog) {
			funds++
			continue
		}
		markets++
		whole := true
		for _, symbol := range []string{i.base, i.quote} {
			got := resolver.Resolve(SymbolRequest{Symbol: symbol, Source: i.venue})
			if got.Coin == nil {
				if got.Fiat == "" {
					whole, left[i.venue+":"+symbol] = false, true
				}
				continue
			}
			decisions[i.venue+":"+strings.ToUpper(symbol)] = decision{got.Coin.ID, string(got.Method), got.Confidence}
		}
		if whole {
			resolved++
		}
	}
	tallies := map[string]*tally{}
	all := tally{}
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(decisions)) {
		d := decisions[key]
		m := tallies[d.method]
		if m == nil {
			m = &tally{}
			tallies[d.method] = m
		}
		venue, symbol, _ := strings.Cut(key, ":")
		m.decided++
		if d.confidence < 85 || slices.Contains(recordedLater, venue) || givenAway[symbol] {
			continue
		}
		m.sure++
		all.sure++
		want, checked := known[key]
		if !checked {
			want, checked = known["*:"+symbol]
		}
		if !checked {
			continue
		}
		m.checked++
		all.checked++
		if want != d.coin {
			m.wrong++
			all.wrong++
			wrong = append(wrong, fmt.Sprintf("%s: got %s by %s at %d, want %s", key, d.coin, d.method, d.confidence, want))
		}
	}
	t.Logf("%d spot markets, %d (%.2f %%) resolved on both sides; %d more of leveraged funds, %.2f %% with them; %d symbols left", markets, resolved,
		100*float64(resolved)/float64(markets), funds, 100*float64(resolved)/float64(markets+funds), len(left))
	t.Logf("%d decisions, %d of them at 85 or above and judged, %d of these on the hand-checked lists, %d wrong", len(decisions), all.sure, all.checked, all.wrong)
	for _, method := range SymbolMethods {
		if m := tallies[string(method)]; m != nil {
			t.Logf("%-20s %4d symbols, %4d judged at 85 or above, %3d checked, %d wrong", method, m.decided, m.sure, m.checked, m.wrong)
		}
	}
	if resolved*100 < (markets+funds)*95 {
		t.Errorf("got %d of %d spot markets resolved, %d of funds among them, want 95 %%; left: %v", resolved, markets+funds, funds, slices.Sorted(maps.Keys(left)))
	}
	// What is not on a list is judged by nobody, so no more can be asked than that nothing on the lists is wrong.
	if all.sure < 1000 || all.checked < 275 || all.wrong > 0 {
		t.Errorf("got %d decisions at 85 or above, %d of them on the hand-checked lists and %d of these wrong; want at least 1,000, 275 and none:\n%s", all.sure, all.checked, all.wrong, strings.Join(wrong, "\n"))
	}
}

// Each symbol that a coin of the table shares with another coin of the recorded list is decided for the one that a person
// means, and so sure that it may be traded on.
func TestEveryCollisionOfALargeCoinIsDecidedRight(t *testing.T) {
	dir := os.Getenv("MARKETLOG_RECORDINGS")
	if dir == "" {
		t.Skip("tier recordings: MARKETLOG_RECORDINGS is not set")
	}
	catalog := recordedCatalog(t, dir)
	resolver := &Resolver{Table: Coins(), Catalog: catalog}
	checked := map[string]string{}
	for _, row := range symbolRows(t, "collisions.csv") {
		checked[row[0]] = row[1]
	}
	ambiguous := 0
	for symbol, coins := range catalog.bySymbol {
		if len(coins) < 2 {
			continue
		}
		ambiguous++
		ours := slices.IndexFunc(coins, func(c SymbolCoin) bool { _, ok := Coins().ByID(c.ID); return ok })
		got := resolver.Resolve(SymbolRequest{Symbol: symbol, Source: GeneralSource})
		want, listed := checked[symbol]
		switch {
		case ours >= 0 && !listed:
			t.Errorf("%s: %d coins have it, one of them large; it is not on the hand-checked list", symbol, len(coins))
		case listed && (got.Coin == nil || got.Coin.ID != want):
			t.Errorf("%s: got %v, want %s", symbol, got.Coin, want)
		case !listed && got.Confidence >= 85:
			t.Errorf("%s: got %s at %d, though nothing is known of its %d coins", symbol, got.Coin.ID, got.Confidence, len(coins))
		}
	}
	if ambiguous < 687 {
		t.Errorf("got %d ambiguous symbols, want at least the 687 of the list", ambiguous)
	}
	t.Logf("%d ambiguous symbols, %d with a coin of the table", ambiguous, len(checked))
}

// Each symbol that coins of the first thousand share with coins below it, and none of the table has, is decided for the one that a
// person means once ranks are known, and so sure that it may be traded on; where two of the thousand have it, or a fund that
// nobody ranks does, it is not.
func TestEveryCollisionOfARankedCoinIsDecidedRight(t *testing.T) {
	dir := os.Getenv("MARKETLOG_RECORDINGS")
	if dir == "" {
		t.Skip("tier recordings: MARKETLOG_RECORDINGS is not set")
	}
	const lowest = 1000 // for a coin of which no more is known than that it is among them
	ranks, largest, named := map[string]int{}, map[string]string{}, map[string][]string{}
	alone := map[string]map[string]int{} // what one ranking alone says
	for _, row := range symbolRows(t, "ranked.csv") {
		symbol, coin, rank, ground := row[0], row[1], 0, row[3]
		switch ground {
		case "2020-10", "2021-02", "2022-04": // the month of the ranking
			var err error
			if rank, err = strconv.Atoi(row[2]); err != nil || rank < 1 || rank > lowest {
				t.Errorf("%s: got rank %q, want 1 to %d", coin, row[2], lowest)
			}
			if alone[ground] == nil {
				alone[ground] = map[string]int{}
			}
			alone[ground][coin] = rank
		case "certain", "likely":
			rank = lowest
		case "fund":
		default:
			t.Errorf("%s: got the ground %q, want the month of a ranking, certain, likely or fund", coin, ground)
		}
		if ranked := ground[0] == '2'; ranked != (row[2] != "") {
			t.Errorf("%s: got rank %q by %s, want one by a ranking alone", coin, row[2], ground)
		}
		named[symbol] = append(named[symbol], coin)
		if rank == 0 {
			continue
		}
		ranks[coin] = rank
		if first := largest[symbol]; first == "" || rank < ranks[first] {
			largest[symbol] = coin
		}
	}
	// A source ranks many more than a thousand: what it does not rank is small.
	catalog := rankedCatalog(t, dir, ranks, 10*lowest)
	resolver := &Resolver{Table: Coins(), Catalog: catalog}
	sure := 0
	for symbol, want := range largest {
		coins := catalog.BySymbol(symbol)
		if len(coins) < 2 || slices.ContainsFunc(coins, func(c SymbolCoin) bool { _, ours := Coins().ByID(c.ID); return ours }) {
			t.Errorf("%s: got %d coins, want several, and none of the table's", symbol, len(coins))
		}
		for _, coin := range named[symbol] {
			if !slices.ContainsFunc(coins, func(c SymbolCoin) bool { return c.ID == coin }) {
				t.Errorf("%s: got %s, which is not among the recorded coins with it", symbol, coin)
			}
		}
		got := resolver.Resolve(SymbolRequest{Symbol: symbol, Source: GeneralSource})
		if got.Coin == nil || got.Coin.ID != want || got.Method != MethodRanking || (got.Confidence >= 85) != (len(named[symbol]) == 1) {
			t.Errorf("%s: got %v by %s at %d, want %s by %s, at 85 or above if it alone is large: %d are", symbol, got.Coin, got.Method, got.Confidence, want, MethodRanking, len(named[symbol]))
		}
		if got.Confidence >= 85 {
			sure++
		}
	}
	t.Logf("%d symbols of %d ranked coins, %d at 85 or above", len(largest), len(ranks), sure)
	// Of what a ranking that ends there does not hold nothing is known but that: it is sure of its first few hundreds alone.
	for ground, ranks := range alone {
		resolver := &Resolver{Table: Coins(), Catalog: rankedCatalog(t, dir, ranks, lowest)}
		sure, wrong := 0, 0
		for symbol, want := range largest {
			got := resolver.Resolve(SymbolRequest{Symbol: symbol, Source: GeneralSource})
			if got.Confidence < 85 {
				continue
			}
			if sure++; got.Coin.ID != want {
				wrong++
				t.Errorf("%s by the ranking of %s alone: got %s at %d, want %s", symbol, ground, got.Coin.ID, got.Confidence, want)
			}
		}
		t.Logf("%s alone: of %d symbols %d at 85 or above, %d wrong", ground, len(largest), sure, wrong)
	}
}
