package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/provider"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// decoded reads an answer of a source as T.
func decoded[T any](t testing.TB, s *Server, source, path string) T {
	t.Helper()
	var v T
	w := answerTo(t, s, source, path)
	if w.Code != http.StatusOK {
		t.Fatalf("%s %s: status %d, %.200s", source, path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%s %s: %v", source, path, err)
	}
	return v
}

type marketRow struct {
	ID           string
	Symbol       string
	CurrentPrice *float64 `json:"current_price"`
	MarketCap    *float64 `json:"market_cap"`
	Rank         *int     `json:"market_cap_rank"`
	Circulating  *float64 `json:"circulating_supply"`
	Total        *float64 `json:"total_supply"`
	High24h      *float64 `json:"high_24h"`
	Low24h       *float64 `json:"low_24h"`
	ATH, ATL     *float64
	Change24h    *float64 `json:"price_change_percentage_24h"`
	Change1y     *float64 `json:"price_change_percentage_1y_in_currency"`
	Volume       *float64 `json:"total_volume"`
}

// allMarkets are the pages of CoinGecko's markets.
func allMarkets(t testing.TB, s *Server) (all []marketRow) {
	t.Helper()
	for page := 1; ; page++ {
		rows := decoded[[]marketRow](t, s, "coingecko", geckoMarkets+"&precision=full&per_page=250&price_change_percentage=1y&page="+strconv.Itoa(page))
		if len(rows) == 0 {
			return all
		}
		all = append(all, rows...)
	}
}

// sourcePaths are what adapters ask for.
var sourcePaths = map[string][]string{
	"coingecko":   {"/coins/list?include_platform=true", geckoMarkets + "&per_page=100&page=5", "/coins/uniswap", "/global", "/coins/uniswap/market_chart?vs_currency=usd&days=30"},
	"coinpaprika": {"/tickers?quotes=USD", "/coins", "/coins/uni-uniswap", "/global"},
	"defillama":   {"/protocols", "/v2/chains", "/v2/historicalChainTvl", "/stablecoins?includePrices=true"},
	"alternative": {"/fng/?limit=0&format=json"}, "frankfurter": {"/v2/rates?base=USD&expand=providers"}, "coinbasefiat": {"/v2/exchange-rates?currency=USD"},
	"bankofcanada": {"/observations/FXCADUSD,FXCADEUR/json?recent=1", "/observations/FXCADUSD/json?start_date=2026-01-01"},
	"erapi":        {"/v6/latest/USD"}, "ecb": {"/eurofxref-daily.xml", "/eurofxref-hist-90d.xml"},
	"lido": {"/v1/protocol/steth/apr/last", "/v1/protocol/steth/apr/sma"}, "rocketpool": {"/api/apr"}, "frax": {"/v2/frxeth/summary/latest"},
	"jito": {"/api/v1/stake_pool_stats"}, "marinade": {"/msol/apy/7d"}, "coinbase-cbeth": {"/wrapped-assets/CBETH"},
	"binance-wbeth": {"/bapi/earn/v1/public/pos/cftoken/project/getPurchasableProject"}, "swell": {"/api/tokens/sweth/apr"},
	"okx-earn":         {"/api/v5/finance/savings/lending-rate-summary", "/api/v5/finance/savings/lending-rate-history?limit=1"},
	"bybit-earn":       {"/v5/earn/product?category=FlexibleSaving", "/v5/earn/product?category=OnChain"},
	"bybit-margin":     {"/v5/spot-margin-trade/data?vipLevel=No%20VIP"},
	"gate-lend":        {"/api/v4/earn/uni/rate"},
	"bitfinex-funding": {"/v2/tickers?symbols=ALL", "/v2/candles/trade:1h:fUSD:p30/hist?limit=10"},
	"kucoin-earn":      {"/api/v1/earn/saving/products", "/api/v1/earn/promotion/products", "/api/v1/earn/eth-staking/products"},
	"binance-earn":     {"/sapi/v1/simple-earn/flexible/list?size=100&current=1", "/sapi/v1/simple-earn/locked/list?size=100&current=2"},
	"kraken-earn":      {"/0/private/Earn/Strategies {}"},
	"defillama-yields": {"/pools", "/lendBorrow"}, "kamino": {"/v2/kamino-market", "/kamino-market/7u3HeHxYDLhnCoErrtycNokbQYbWGzLs6JSDqGAv5PfF/reserves/metrics"},
	"aave": {aaveReserves}, "morpho": {morphoStates},
}

// A process that starts again, and one that asked for other times before, receives the same.
func TestSourcesAreFunctionsOfSeedAndTime(t *testing.T) {
	now, later := simulatortest.Noon, simulatortest.Noon.Add(31*time.Hour)
	a := openWith(1, Config{Clock: simulatortest.Settable{Time: &now}, Coins: 1000})
	now = later
	for source, paths := range sourcePaths {
		for _, path := range paths {
			answerTo(t, a, source, path)
		}
	}
	now = simulatortest.Noon
	b, other := open(t, 1), open(t, 2)
	for source, paths := range sourcePaths {
		for _, path := range paths {
			got, want := answerTo(t, a, source, path), answerTo(t, b, source, path)
			if want.Code != http.StatusOK || !bytes.Equal(got.Body.Bytes(), want.Body.Bytes()) {
				t.Errorf("%s %s: status %d; what it says depends on what was asked before", source, path, want.Code)
			}
			if path != "/coins" && bytes.Equal(answerTo(t, other, source, path).Body.Bytes(), want.Body.Bytes()) {
				t.Errorf("%s %s: another seed serves the same", source, path)
			}
		}
	}
	if len(sourcePaths) != len(a.references) {
		t.Errorf("%d sources are asked, %d are simulated", len(sourcePaths), len(a.references))
	}
}

// A chart goes on where the one of an hour ago ended, and its last point is that of the list of markets.
func TestCoinGeckosChartsAreOfItsMarket(t *testing.T) {
	type chart struct {
		Prices  [][2]float64
		Caps    [][2]float64 `json:"market_caps"`
		Volumes [][2]float64 `json:"total_volumes"`
	}
	now := simulatortest.Noon
	s := openWith(1, Config{Clock: simulatortest.Settable{Time: &now}, Coins: 1000})
	const path = "/coins/ethereum/market_chart?vs_currency=usd&days="
	before := decoded[chart](t, s, "coingecko", path+"30")
	if n := len(before.Caps); n != 721 || len(before.Prices) != n || len(before.Volumes) != n || before.Caps[0][0]-float64(simulatortest.Noon.AddDate(0, 0, -30).UnixMilli()) > 3600e3 {
		t.Fatalf("30 days have %d, %d and %d points from %.0f on, want an hour each and now", len(before.Prices), n, len(before.Volumes), before.Caps[0][0])
	}
	row := decoded[[]marketRow](t, s, "coingecko", geckoMarkets+"&precision=full&ids=ethereum")[0]
	if got := before.Caps[720][1]; math.Round(got) != *row.MarketCap || before.Prices[720][1] != *row.CurrentPrice {
		t.Errorf("the chart ends with a cap of %.0f, the list has %.0f", got, *row.MarketCap)
	}
	now = simulatortest.Noon.Add(time.Hour)
	after := decoded[chart](t, s, "coingecko", path+"2")
	for i := range 40 {
		old := before.Caps[720-40+i]
		if j := slices.IndexFunc(after.Caps, func(p [2]float64) bool { return p[0] == old[0] }); j < 0 || after.Caps[j] != old || after.Volumes[j] != before.Volumes[720-40+i] {
			t.Fatalf("an hour later the chart has another cap than %v", old)
		}
	}
	for i, p := range before.Prices[1:] {
		if last := before.Prices[i][1]; p[1] < last*0.7 || p[1] > last/0.7 {
			t.Errorf("within an hour the price goes from %g to %g", last, p[1])
		}
	}
	if n := len(decoded[chart](t, s, "coingecko", path+"1").Caps); n != 289 && n != 288 {
		t.Errorf("a day has %d points, want one every five minutes", n)
	}
	if n := len(decoded[chart](t, s, "coingecko", path+"365").Caps); n < 300 || n > 366 {
		t.Errorf("a year has %d points, want one a day", n)
	}
	if got := answerTo(t, s, "coingecko", path+"366").Code; got != http.StatusUnauthorized {
		t.Errorf("more than a year: status %d", got)
	}
}

func TestMarketsAreWhole(t *testing.T) {
	rows := allMarkets(t, open(t, 1))
	if len(rows) < 900 {
		t.Fatalf("%d coins have a market, want about 1,000", len(rows))
	}
	rising, falling, ranked, young, unranked, unpriced := 0, 0, 0, 0, 0, 0
	last := math.Inf(1)
	seen := map[string]bool{}
	for i, row := range rows {
		if seen[row.ID] {
			t.Errorf("%s comes twice", row.ID)
		}
		seen[row.ID] = true
		if row.CurrentPrice == nil {
			unpriced++
			continue
		}
		price := *row.CurrentPrice
		if row.Rank == nil {
			unranked++
		} else if ranked++; *row.Rank != i+1 || *row.MarketCap > last {
			t.Errorf("%s is at rank %d with %g, as row %d after %g", row.ID, *row.Rank, *row.MarketCap, i+1, last)
		}
		last = *row.MarketCap
		if want := price * *row.Circulating; math.Abs(*row.MarketCap-want) > 1e-6*want+1 {
			t.Errorf("%s: capitalization %g, price × supply is %g", row.ID, *row.MarketCap, want)
		}
		if *row.Circulating > *row.Total*(1+1e-9) || *row.Volume < 0 {
			t.Errorf("%s: %g of %g circulate, volume %g", row.ID, *row.Circulating, *row.Total, *row.Volume)
		}
		if order := []float64{*row.ATL, *row.Low24h, price, *row.High24h, *row.ATH}; !slices.IsSorted(order) {
			t.Errorf("%s: lowest, low, price, high and highest are %v", row.ID, order)
		}
		if *row.Change24h > 0 {
			rising++
		} else {
			falling++
		}
		if row.Change1y == nil {
			young++
		}
	}
	if ranked < 250 || rising < 50 || falling < 50 || young == 0 || unranked == 0 || unpriced == 0 {
		t.Errorf("%d are ranked, %d rise, %d fall, %d are younger than a year, %d have no rank, %d no price", ranked, rising, falling, young, unranked, unpriced)
	}
}

// What nobody trades exists only in the lists, and some of it is named like what everybody knows.
func TestLongTailSharesSymbols(t *testing.T) {
	const all = 20_000
	s := openWith(1, Config{Clock: simulatortest.Fixed(simulatortest.Noon), Coins: all})
	ids, paprika, namesakes, gone := map[string]bool{}, map[string]bool{}, 0, 0
	known := map[string]bool{}
	for i, c := range s.references[0].catalogue.Coins {
		if ids[c.ID] || paprika[paprikaID(c)] {
			t.Errorf("two coins are %s or %s", c.ID, paprikaID(c))
		}
		ids[c.ID], paprika[paprikaID(c)] = true, true
		if i < len(s.references[0].world.Table.All()) {
			known[c.Symbol] = true
			continue
		}
		if known[c.Symbol] {
			namesakes++
		}
		if c.Gone {
			gone++
		}
	}
	if len(ids) != all || namesakes < 1000 || gone < 100 {
		t.Errorf("%d coins, %d of the tail share a symbol with a known one, %d are gone", len(ids), namesakes, gone)
	}
	rows := decoded[[]marketRow](t, s, "coingecko", geckoMarkets+"&per_page=250&page=70")
	if len(rows) != 250 || rows[0].Rank == nil || *rows[0].Rank != 69*250+1 {
		t.Errorf("page 70 has %d rows, the first %+v", len(rows), rows[0])
	}
}

func TestStablecoinsHoldTheirPegsButOne(t *testing.T) {
	s := open(t, 1)
	answer := decoded[struct {
		PeggedAssets []struct {
			ID, PegType          string
			Gecko                string `json:"gecko_id"`
			Price                *float64
			Circulating          map[string]float64
			Chains               []string
			ChainCirculating     map[string]struct{ Current map[string]float64 }
			Deprecated, Delisted bool
		}
	}](t, s, "defillama", "/stablecoins?includePrices=true")
	pegs, dead, wobbling := map[string]int{}, 0, 0
	for _, c := range answer.PeggedAssets {
		pegs[c.PegType]++
		sum := 0.0
		for _, chain := range c.Chains {
			sum += c.ChainCirculating[chain].Current[c.PegType]
		}
		if about := c.Circulating[c.PegType]; about <= 0 || math.Abs(sum/about-1) > 1e-9 {
			t.Errorf("%s: %g circulate, %g on chains", c.Gecko, about, sum)
		}
		target := s.references[0].world.Fiats[s.references[0].catalogue.ByID[c.Gecko].Peg].At(simulatortest.Noon.UnixNano())
		switch {
		case c.Price == nil:
		case c.Deprecated && c.Delisted:
			if dead++; *c.Price > target/2 {
				t.Errorf("%s is dead and costs %g", c.Gecko, *c.Price)
			}
		case math.Abs(*c.Price/target-1) > 0.03:
			t.Errorf("%s costs %g, its peg %g", c.Gecko, *c.Price, target)
		case math.Abs(*c.Price/target-1) > 0.001:
			wobbling++
		}
	}
	if pegs["peggedUSD"] < 10 || pegs["peggedEUR"] < 2 || len(pegs) < 5 || dead != 1 || wobbling == 0 {
		t.Errorf("pegs are %v, %d dead, %d more than ten basis points off", pegs, dead, wobbling)
	}
}

// What is locked on chains is what is locked in protocols, without exchanges and what liquid staking counts twice.
func TestChainsSumProtocols(t *testing.T) {
	s := open(t, 1)
	protocols := decoded[[]struct {
		Category  string
		TVL       float64
		ChainTvls map[string]float64
	}](t, s, "defillama", "/protocols")
	want, categories, borrowed := map[string]float64{}, map[string]bool{}, false
	for _, p := range protocols {
		categories[p.Category] = true
		borrowed = borrowed || p.ChainTvls["borrowed"] > 0 && p.Category == "Lending"
		sum := 0.0
		for chain, tvl := range p.ChainTvls {
			if strings.ContainsAny(chain, "-") || slices.Contains([]string{"borrowed", "staking", "pool2"}, chain) {
				continue
			}
			sum += tvl
			if p.Category != "CEX" && p.Category != "Liquid Staking" {
				want[chain] += tvl
			}
		}
		if math.Abs(sum/p.TVL-1) > 1e-9 {
			t.Errorf("%g is locked, %g on chains: %v", p.TVL, sum, p.ChainTvls)
		}
	}
	for _, chain := range decoded[[]struct {
		Name string
		TVL  float64
	}](t, s, "defillama", "/v2/chains") {
		if math.Abs(chain.TVL-want[chain.Name]) > 1e-6*want[chain.Name] {
			t.Errorf("%s: %g is locked, in protocols %g", chain.Name, chain.TVL, want[chain.Name])
		}
	}
	if len(protocols) < 100 || len(categories) < 12 || !borrowed {
		t.Errorf("%d protocols of %d categories, some is borrowed: %t", len(protocols), len(categories), borrowed)
	}
}

// As a day begins, the newest total of the past is what is locked on all chains, and the one before it what was locked a day ago.
func TestThePastOfDefiEndsWithWhatIsLocked(t *testing.T) {
	now := simulatortest.Noon.Truncate(24 * time.Hour)
	s := openWith(1, Config{Clock: simulatortest.Settable{Time: &now}, Coins: 1000})
	onChains := func() (sum float64) {
		for _, chain := range decoded[[]struct{ TVL float64 }](t, s, "defillama", "/v2/chains") {
			sum += chain.TVL
		}
		return sum
	}
	today := onChains()
	days := decoded[[]struct {
		Date int64
		TVL  float64
	}](t, s, "defillama", "/v2/historicalChainTvl")
	n := len(days)
	for i, d := range days[max(n-2, 0):] {
		now = time.Unix(days[n-1].Date, 0).UTC().AddDate(0, 0, i-1)
		if want := onChains(); d.Date != now.Unix() || math.Abs(d.TVL-want) > 1e-9*want {
			t.Errorf("as %s began, %g was locked, on chains %g", now, d.TVL, want)
		}
	}
	if n < 3000 || days[n-1].Date != simulatortest.Noon.Truncate(24*time.Hour).Unix() || math.Abs(days[n-1].TVL-today) > 1e-9*today {
		t.Errorf("got %d days to %d, at last %v, want years to today's %g", n, days[n-1].Date, days[n-1].TVL, today)
	}
}

func TestSentimentCoversYears(t *testing.T) {
	answer := decoded[struct {
		Data []struct {
			Value, Timestamp string
			Class            string `json:"value_classification"`
			Until            string `json:"time_until_update"`
		}
	}](t, open(t, 1), "alternative", "/fng/?limit=0")
	classes := map[string]int{}
	for i, d := range answer.Data {
		value, err := strconv.Atoi(d.Value)
		if err != nil || value < 0 || value > 100 {
			t.Errorf("value %q", d.Value)
		}
		if want := simulatortest.Noon.Truncate(24*time.Hour).AddDate(0, 0, -i).Unix(); d.Timestamp != strconv.FormatInt(want, 10) {
			t.Fatalf("day %d is %s, want %d", i, d.Timestamp, want)
		}
		if (d.Until != "") != (i == 0) {
			t.Errorf("day %d: time until update %q", i, d.Until)
		}
		classes[d.Class]++
	}
	if len(answer.Data) < 2900 || len(classes) != 5 {
		t.Errorf("%d days of %v, want years of all five moods", len(answer.Data), classes)
	}
}

// Four sources publish currencies at different times of the day, and mean the same.
func TestCurrenciesAgree(t *testing.T) {
	s := open(t, 1)
	coinbase := decoded[struct {
		Data struct{ Rates map[string]string }
	}](t, s, "coinbasefiat", "/v2/exchange-rates?currency=USD").Data.Rates
	daily := decoded[struct{ Rates map[string]float64 }](t, s, "erapi", "/v6/latest/USD").Rates
	blended := decoded[[]struct {
		Quote     string
		Rate      float64
		Providers []struct {
			Key      string
			Rate     float64
			Excluded bool
		}
	}](t, s, "frankfurter", "/v2/rates?base=USD&expand=providers")
	bank := answerTo(t, s, "ecb", "/eurofxref-daily.xml").Body.String()
	dollars := fixingOf(t, bank, "USD")
	if len(daily) < 20 || len(blended) < 20 {
		t.Errorf("%d and %d currencies, want 20 at least", len(daily), len(blended))
	}
	for _, row := range blended {
		want, err := strconv.ParseFloat(coinbase[row.Quote], 64)
		if err != nil {
			t.Errorf("%s: %v", row.Quote, err)
			continue
		}
		others := map[string]float64{"blended": row.Rate, "daily": daily[row.Quote]}
		if strings.Contains(bank, "'"+row.Quote+"'") && row.Quote != "USD" {
			others["the bank's"] = fixingOf(t, bank, row.Quote) / dollars
		}
		for _, p := range row.Providers {
			if !p.Excluded {
				others[p.Key] = p.Rate
			}
		}
		for name, rate := range others {
			if math.Abs(rate/want-1) > 0.02 {
				t.Errorf("%s: %s rate is %g, Coinbase's %g", row.Quote, name, rate, want)
			}
		}
	}
}

func fixingOf(t *testing.T, file, code string) float64 {
	t.Helper()
	_, rest, _ := strings.Cut(file, "currency='"+code+"' rate='")
	text, _, _ := strings.Cut(rest, "'")
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("the fixing of %s: %v", code, err)
	}
	return rate
}

// The long file spans more than the past of markets, and its end is what the daily file and that of 90 days hold.
func TestCentralBankFilesAgree(t *testing.T) {
	s := open(t, 1)
	days := func(path string) []string {
		all := strings.Split(answerTo(t, s, "ecb", path).Body.String(), "<Cube time='")[1:]
		for i := range all {
			all[i], _, _ = strings.Cut(all[i], "</Cube>")
		}
		return all
	}
	long, quarter, newest := days("/eurofxref-hist.xml"), days("/eurofxref-hist-90d.xml"), days("/eurofxref-daily.xml")
	if years := len(long) / 261; years < 5 { // working days
		t.Errorf("%d days since %.10s, want more than five years", len(long), long[len(long)-1])
	}
	if !slices.Equal(long[:len(quarter)], quarter) || !slices.Equal(long[:1], newest) {
		t.Error("the files hold different rates")
	}
}

func TestFrankfurterServesRanges(t *testing.T) {
	s := open(t, 1)
	type row struct{ Date, Base, Quote string }
	rows := decoded[[]row](t, s, "frankfurter", "/v2/rates?base=USD&quotes=EUR&from=2026-02-20&to=2026-02-25")
	want := []string{"2026-02-20", "2026-02-23", "2026-02-24", "2026-02-25"} // without the weekend
	var got []string
	for _, r := range rows {
		got = append(got, r.Date)
	}
	if !slices.Equal(got, want) {
		t.Errorf("days are %v, want %v", got, want)
	}
	if sunday := decoded[[]row](t, s, "frankfurter", "/v2/rates?date=2026-02-22&quotes=USD"); len(sunday) != 1 || sunday[0] != (row{"2026-02-20", "EUR", "USD"}) {
		t.Errorf("a Sunday's rates are %v, want the Friday's", sunday)
	}
	for _, path := range []string{"/v2/rates?provider=ecb", "/v2/rates?base=XYZ", "/v2/rates?date=yesterday", "/v2/rates?from=1999-01-04"} {
		if w := answerTo(t, s, "frankfurter", path); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}

// request asks a source at its root, within its budget.
func (s *Server) request(source, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/"+source+path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w
}

func TestSourcesKeepTheirBudgets(t *testing.T) {
	for _, test := range []struct {
		source, path    string
		raised, allowed int
		contains        string
	}{
		{"coingecko", "/api/v3/ping", 0, 30, `"error_code":429`},
		{"coingecko", "/api/v3/ping", 600, 600, `"error_code":429`},
		{"coinpaprika", "/v1/global", 0, 10, "too many requests"},
		{"coinpaprika", "/v1/global", 600, 600, "too many requests"},
		{"alternative", "/fng/", 600, 60, "Too Many Requests"},
	} {
		s := openWith(1, Config{Clock: simulatortest.Fixed(simulatortest.Noon), Coins: 1000, Requests: test.raised})
		n := 0
		w := s.request(test.source, test.path)
		for ; w.Code == http.StatusOK && n < 1000; n++ {
			w = s.request(test.source, test.path)
		}
		if n < test.allowed || n > test.allowed+test.allowed/9+1 {
			t.Errorf("%s allows %d requests at once, want %d", test.source, n, test.allowed)
		}
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), test.contains) {
			t.Errorf("%s: status %d, %v, %s", test.source, w.Code, w.Header(), w.Body)
		}
		if got := s.reference(t, test.source).Stats(); got.Requests != int64(n+1) || got.Throttled != 1 {
			t.Errorf("%s counted %+v after %d", test.source, got, n+1)
		}
	}
}

func TestUnchangedAnswersAreNotSentAgain(t *testing.T) {
	now := simulatortest.Noon
	s := openWith(1, Config{Clock: simulatortest.Settable{Time: &now}, Coins: 1000})
	const path = "/api/v3" + geckoMarkets
	tag := s.request("coingecko", path).Header().Get("ETag")
	if w := s.request("coingecko", path, "If-None-Match", tag); tag == "" || w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("asked with %q: status %d and %d bytes, want 304 and none", tag, w.Code, w.Body.Len())
	}
	now = now.Add(time.Minute)
	if w := s.request("coingecko", path, "If-None-Match", tag); w.Code != http.StatusOK || w.Header().Get("ETag") == tag {
		t.Errorf("a minute later: status %d, tag %q", w.Code, w.Header().Get("ETag"))
	}
}

func TestSourcesMisbehaveOnDemand(t *testing.T) {
	now := simulatortest.Noon
	s := openWith(1, Config{Clock: simulatortest.Settable{Time: &now}, Coins: 1000})
	gecko := s.reference(t, "coingecko")
	const path = "/api/v3/ping"
	until := simulatortest.Noon.Add(time.Minute)
	inflict := func(f provider.Faults) {
		t.Helper()
		f.Until = until
		gecko.SetFaults(f)
		if got := gecko.Faults(); got != f {
			t.Errorf("in force are %+v, want %+v", got, f)
		}
	}
	inflict(provider.Faults{Refuse: true})
	if w := s.request("coingecko", path); w.Code != http.StatusServiceUnavailable {
		t.Errorf("refusing: status %d", w.Code)
	}
	inflict(provider.Faults{Flood: 49})
	if w := s.request("coingecko", path); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("flooded: status %d", w.Code)
	}
	inflict(provider.Faults{Garbage: 1})
	good := `{"gecko_says":"(V3) To the Moon!"}`
	for range 8 {
		if w := s.request("coingecko", path); w.Body.String() == good {
			t.Error("garbage reads well")
		}
	}
	inflict(provider.Faults{Silence: true})
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/coingecko"+path, nil).WithContext(ctx))
	if w.Body.Len() > 0 {
		t.Errorf("a silent source says %s", w.Body)
	}
	now = until
	if w := s.request("coingecko", path); w.Body.String() != good || gecko.Faults() != (provider.Faults{}) {
		t.Errorf("afterwards: %s, in force are %v", w.Body, gecko.Faults())
	}
}
