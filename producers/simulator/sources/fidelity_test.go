package sources

import (
	"bytes"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

// sourceLikeness says what the answers of a source are to look like: bodies that were recorded where there are
// some, else those of testdata, which were written after the provider's documentation.
type sourceLikeness struct {
	source, get string
	// of are the last parts of paths that get is asked with in place of %s, some coins'.
	of []string
	// recorded is below MARKETLOG_RECORDINGS, documented below testdata.
	recorded, documented string
	keyed, newer, older  []string
	counters, tiny       []string
	// spelled are paths of times with the names of days and months in them, as RFC 1123 has them.
	spelled []string
	// without are keys of the recording that are not asked for.
	without []string
}

const geckoMarkets = "/coins/markets?vs_currency=usd"

var fidelityCases = []sourceLikeness{
	{source: "coingecko", get: geckoMarkets + "&ids=bitcoin", recorded: "coingecko_ruby/coins-markets-bitcoin.json", counters: []string{"[].total_volume"}},
	{
		source: "coingecko", get: geckoMarkets + "&ids=bitcoin", recorded: "jkorf/CoinGecko.Net/GetMarkets.txt",
		counters: []string{"[].market_cap", "[].fully_diluted_valuation"},
	},
	{source: "coingecko", get: "/coins/list", recorded: "coingecko_ruby/coins-list.json.gz"},
	{
		source: "coingecko", get: "/global", recorded: "jkorf/CoinGecko.Net/GetGlobalData.txt",
		keyed: []string{"data.market_cap_percentage", "data.total_market_cap", "data.total_volume"},
	},
	{
		source: "coingecko", get: "/global", recorded: "coingecko_ruby/global.json",
		keyed: []string{"data.market_cap_percentage", "data.total_market_cap", "data.total_volume"},
	},
	{
		source: "coingecko", get: "/coins/%s?tickers=false", of: []string{"bitcoin"}, recorded: "coingecko_ruby/coin-bitcoin.json.gz",
		keyed: append([]string{"platforms", "detail_platforms", "description"}, currencies...),
		newer: []string{
			"web_slug", "detail_platforms", "preview_listing", "links.whitepaper", "links.snapshot_url", "watchlist_portfolio_users",
			"market_data.market_cap_fdv_ratio", "categories[",
		},
		older: []string{
			"coingecko_rank", "coingecko_score", "community_score", "developer_score", "liquidity_score", "public_interest_score", "public_interest_stats",
			"public_interest_stats.alexa_rank", "public_interest_stats.bing_matches", "community_data.twitter_followers",
		},
		without: []string{"tickers"}, // which it is asked to leave out
	},
	{source: "coingecko", get: "/coins/bitcoin/market_chart?vs_currency=usd&days=1", recorded: "coingecko_ruby/market-chart-1d.json.gz"},
	{source: "coingecko", get: "/coins/%s/market_chart?vs_currency=usd&days=30", of: []string{"bitcoin", "tether"}, documented: "coingecko/chart.json", counters: []string{"market_caps[][1]", "total_volumes[][1]"}},
	{source: "coingecko", get: "/coins/nosuch/market_chart?vs_currency=usd&days=30", documented: "coingecko/unknown.json"},
	{source: "coingecko", get: "/coins/nosuch", documented: "coingecko/unknown.json"},
	{source: "coingecko", get: "/coins/markets", documented: "coingecko/unknown.json"},
	{source: "coingecko", get: "/coins/list?include_platform=true", documented: "coingecko/list.json", keyed: []string{"[].platforms"}},
	{
		source: "coingecko", get: geckoMarkets + "&per_page=250&page=%s&sparkline=true&price_change_percentage=1h,24h,7d,14d,30d,200d,1y",
		of: []string{"1", "2", "3", "4"}, documented: "coingecko/markets.json", tiny: []string{"[].price_change_24h", "[].atl"},
	},
	{
		source: "coingecko", get: "/coins/%s?localization=false&tickers=false&market_data=false&community_data=false&developer_data=true&sparkline=false",
		of: []string{"bitcoin", "uniswap", "tether", "solana", "usd-coin"}, documented: "coingecko/coin.json", keyed: []string{"platforms", "detail_platforms"},
	},
	{source: "coinpaprika", get: "/tickers?quotes=USD", documented: "coinpaprika/tickers.json", tiny: []string{"[].quotes.USD.ath_price"}},
	{source: "coinpaprika", get: "/coins", documented: "coinpaprika/coins.json"},
	{source: "coinpaprika", get: "/coins/%s", of: []string{"uni-uniswap", "link-chainlink"}, documented: "coinpaprika/coin.json"},
	{source: "coinpaprika", get: "/coins/no-such", documented: "coingecko/unknown.json"},
	{source: "coinpaprika", get: "/global", documented: "coinpaprika/global.json"},
	{source: "defillama", get: "/protocols", documented: "defillama/protocols.json", keyed: []string{"[].chainTvls"}, counters: []string{"[].mcap"}},
	{source: "defillama", get: "/v2/chains", documented: "defillama/chains.json", counters: []string{"[].chainId"}},
	{source: "defillama", get: "/v2/historicalChainTvl", documented: "defillama/past.json"},
	{
		source: "defillama", get: "/stablecoins?includePrices=true", documented: "defillama/stablecoins.json",
		keyed: slices.Concat([]string{"peggedAssets[].chainCirculating"}, amounts("peggedAssets[].", "circulating"), amounts("peggedAssets[].chainCirculating.*.", "current")),
	},
	{
		source: "defillama", get: "/stablecoins?includePrices=true", recorded: "defillama/stablecoins-2026-09-02-reshaped.json",
		keyed: slices.Concat([]string{"peggedAssets[].chainCirculating"}, amounts("peggedAssets[].", "circulating"), amounts("peggedAssets[].chainCirculating.*.", "current")),
		// What that collection left out.
		newer: []string{"peggedAssets[].gecko_id", "peggedAssets[].priceSource", "peggedAssets[].chain", "peggedAssets[].deprecated", "peggedAssets[].delisted"},
	},
	{source: "alternative", get: "/fng/?limit=2&format=json", recorded: "fng/fng-2022-09-12.json"},
	{source: "lido", get: "/v1/protocol/steth/apr/last", documented: "lido/last.json"},
	{source: "lido", get: "/v1/protocol/steth/apr/sma", documented: "lido/sma.json"},
	{source: "rocketpool", get: "/api/apr", documented: "rocketpool/apr.json"},
	{source: "frax", get: "/v2/frxeth/summary/latest", documented: "frax/summary.json"},
	{source: "jito", get: "/api/v1/stake_pool_stats", documented: "jito/stats.json"},
	{source: "marinade", get: "/msol/apy/7d", documented: "marinade/apy.json"},
	{source: "coinbase-cbeth", get: "/wrapped-assets/CBETH", documented: "coinbase-cbeth/asset.json"},
	{source: "binance-wbeth", get: "/bapi/earn/v1/public/pos/cftoken/project/getPurchasableProject", documented: "binance-wbeth/project.json"},
	{source: "swell", get: "/api/tokens/sweth/apr", documented: "swell/apr.json"},
	{source: "okx-earn", get: "/api/v5/finance/savings/lending-rate-summary", documented: "okx-earn/summary.json"},
	{source: "okx-earn", get: "/api/v5/finance/savings/lending-rate-history?%s", of: []string{"limit=1", "ccy=BTC"}, documented: "okx-earn/history.json"},
	{source: "bybit-earn", get: "/v5/earn/product?category=%s", of: []string{"FlexibleSaving", "OnChain"}, documented: "bybit-earn/products.json"},
	{source: "bybit-margin", get: "/v5/spot-margin-trade/data?vipLevel=No%20VIP", documented: "bybit-margin/data.json", counters: []string{"result.vipCoinList[].list[].maxBorrowingAmount"}},
	{source: "gate-lend", get: "/api/v4/earn/uni/rate", documented: "gate-lend/rate.json"},
	{source: "gate-lend", get: "/api/v4/earn/uni/currencies", documented: "gate-lend/currencies.json"},
	{source: "bitfinex-funding", get: "/v2/tickers?symbols=ALL", documented: "bitfinex-funding/tickers.json", tiny: []string{"[][8]"}},
	{source: "bitfinex-funding", get: "/v2/candles/trade:1h:fUSD:p30/hist", documented: "bitfinex-funding/candles.json"},
	{source: "kucoin-earn", get: "/api/v1/earn/%s/products", of: []string{"saving", "promotion", "staking", "kcs-staking", "eth-staking"}, documented: "kucoin-earn/products.json"},
	{
		source: "binance-earn", get: "/sapi/v1/simple-earn/flexible/list?size=100", documented: "binance-earn/flexible.json",
		keyed: []string{"rows[].tierAnnualPercentageRate"},
	},
	{source: "binance-earn", get: "/sapi/v1/simple-earn/locked/list?size=100", documented: "binance-earn/locked.json"},
	{source: "kraken-earn", get: "/0/private/Earn/Strategies {}", documented: "kraken-earn/strategies.json"},
	{source: "defillama-yields", get: "/pools", documented: "defillama-yields/pools.json"},
	{source: "defillama-yields", get: "/lendBorrow", documented: "defillama-yields/loans.json"},
	{source: "defillama-yields", get: "/chart/%s", of: []string{"9ab16038-addd-47c8-8e8a-178029395878", "7ab224ba-7380-442c-b0d4-5fd9fae72b04"}, documented: "defillama-yields/chart.json"},
	{source: "aave", get: aaveChains, documented: "aave/chains.json"},
	{source: "aave", get: aaveReserves, documented: "aave/markets.json", tiny: []string{"data.markets[].reserves[].supplyInfo.apy.value"}},
	{source: "aave", get: `/graphql {"query": "{ markets(request: {chainIds: [1]}) { reserves { supplyInfo { apr } } } }"}`, documented: "aave/error.json"},
	{source: "morpho", get: morphoStates, documented: "morpho/markets.json"},
	{source: "kamino", get: "/v2/kamino-market", documented: "kamino/markets.json"},
	{source: "kamino", get: "/kamino-market/7u3HeHxYDLhnCoErrtycNokbQYbWGzLs6JSDqGAv5PfF/reserves/metrics", documented: "kamino/reserves.json"},
	{source: "frankfurter", get: "/v2/rates?base=USD&expand=providers", documented: "frankfurter/rates.json"},
	{source: "bankofcanada", get: "/observations/FXCADUSD,FXCADEUR/json?recent=1", documented: "bankofcanada/rates.json"},
	{source: "coinbasefiat", get: "/v2/exchange-rates?currency=USD", documented: "coinbasefiat/rates.json", keyed: []string{"data.rates"}},
	{source: "erapi", get: "/v6/latest/USD", recorded: "er-api/latest-usd-2024-08-19.json", keyed: []string{"rates"}, spelled: []string{"time_last_update_utc", "time_next_update_utc"}},
}

// currencies are the paths of objects that are keyed by a currency.
var currencies = func() (paths []string) {
	for _, name := range strings.Fields(`current_price ath ath_change_percentage ath_date atl atl_change_percentage atl_date market_cap
		fully_diluted_valuation total_volume high_24h low_24h price_change_24h_in_currency price_change_percentage_1h_in_currency
		price_change_percentage_24h_in_currency price_change_percentage_7d_in_currency price_change_percentage_14d_in_currency
		price_change_percentage_30d_in_currency price_change_percentage_60d_in_currency price_change_percentage_200d_in_currency
		price_change_percentage_1y_in_currency market_cap_change_24h_in_currency market_cap_change_percentage_24h_in_currency`) {
		paths = append(paths, "market_data."+name)
	}
	return paths
}()

// amounts are the paths of objects that are keyed by a peg.
func amounts(prefix, now string) []string {
	return []string{prefix + now, prefix + "circulatingPrevDay", prefix + "circulatingPrevWeek", prefix + "circulatingPrevMonth"}
}

func TestSourcesAnswerLikeTheProviders(t *testing.T) {
	s := open(t, 1)
	for _, row := range fidelityCases {
		t.Run(row.source+strings.ReplaceAll(row.get, "/", " ")+" "+row.recorded, func(t *testing.T) {
			var real []byte
			if row.recorded != "" {
				real = recordedAnswer(t, row.recorded)
			} else {
				var err error
				if real, err = os.ReadFile(filepath.Join("testdata", row.documented)); err != nil {
					t.Fatal(err)
				}
			}
			var bodies [][]byte
			for _, of := range append(row.of, "")[:max(len(row.of), 1)] {
				bodies = append(bodies, answerTo(t, s, row.source, strings.ReplaceAll(row.get, "%s", of)).Body.Bytes())
			}
			recorded := simulatortest.Parse(t, [][]byte{real}, nil)
			if list, ok := recorded[0].([]any); ok && len(row.of) > 0 && bodies[0][0] == '{' { // several answers in one file
				recorded = list
			}
			for _, key := range row.without {
				delete(recorded[0].(map[string]any), key)
			}
			answers := simulatortest.Parse(t, bodies, nil)
			forms := simulatortest.Traits(answers, row.keyed)
			for _, path := range row.tiny {
				forms[path].Exponents = 0
			}
			for _, path := range row.spelled {
				forms[path].Patterns = nil
				text, _ := answers[0].(map[string]any)[path].(string)
				if _, err := time.Parse(time.RFC1123Z, text); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
			for _, fault := range simulatortest.Compare(simulatortest.Traits(recorded, row.keyed), forms, row.newer, row.older, row.counters...) {
				t.Error(fault)
			}
			if t.Failed() {
				t.Logf("recorded %s", simulatortest.Excerpt(recorded[0]))
				t.Logf("simulated %s", simulatortest.Excerpt(answers[0]))
			}
		})
	}
}

// answerTo makes one request of a source, at its base, and does not count it against the budget. A body after a space is
// posted.
func answerTo(t testing.TB, s *Server, source, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := s.reference(t, source)
	r.requests = nil
	w := httptest.NewRecorder()
	path, posted, isPost := strings.Cut(path, " ")
	method := http.MethodGet
	if isPost {
		method = http.MethodPost
	}
	s.mux.ServeHTTP(w, httptest.NewRequest(method, r.source.root()+r.source.Base+path, strings.NewReader(posted)))
	return w
}

// recordedAnswer is the body of a recording: of JSON that holds it as text, or after lines about the request.
func recordedAnswer(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("MARKETLOG_RECORDINGS")
	if dir == "" {
		t.Skip("tier recordings: MARKETLOG_RECORDINGS is not set")
	}
	path := filepath.Join(dir, name)
	if strings.HasSuffix(name, ".txt") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text[bytes.IndexAny(text, "[{"):]
	}
	messages := simulatortest.RecordedMessages(t, path)
	if len(messages) != 1 {
		t.Fatalf("%s holds %d answers", name, len(messages))
	}
	return messages[0]
}

// elements counts the elements of a document by their path and attributes.
func elements(t *testing.T, document []byte) map[string]int {
	t.Helper()
	counts, path := map[string]int{}, []string{}
	decoder := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return counts
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Space + ":" + e.Name.Local
			for _, a := range e.Attr {
				name += " " + a.Name.Local
			}
			path = append(path, name)
			counts[strings.Join(path, "/")]++
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
}

func TestCentralBankAnswersLikeTheBank(t *testing.T) {
	s := open(t, 1)
	for file, path := range map[string]string{
		"ecb/eurofxref-hist-90d-2019.json.gz": "/eurofxref-hist-90d.xml", "ecb/eurofxref-daily-2015-01-07.json": "/eurofxref-daily.xml",
	} {
		want := slices.Sorted(maps.Keys(elements(t, recordedAnswer(t, file))))
		got := elements(t, answerTo(t, s, "ecb", path).Body.Bytes())
		if !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
			t.Errorf("%s has elements %q, recorded are %q", path, slices.Sorted(maps.Keys(got)), want)
		}
	}
}
