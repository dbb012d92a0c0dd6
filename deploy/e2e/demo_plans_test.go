package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// spanParams are the parameters by which an operation looks back.
var spanParams = []string{"days", "history_days", "from", "since", "timeframe", "window", "period", "asOf"}

// boundByPlan are the operations that serve rates of the past, with a request that looks back further than the plan Free may.
var boundByPlan = map[string]string{
	"GET /api/v1/rates/{symbol}/history":             "/api/v1/rates/ETH/history?days=1825",
	"GET /api/v1/rates/history":                      "/api/v1/rates/history?coin=ethereum&product=staking-rewards&country=DE&timeframe=all",
	"GET /api/v1/charts/{coinId}/rates/{category}":   "/api/v1/charts/ethereum/rates/staking?timeframe=1y",
	"GET /api/v1/earn/benchmark":                     "/api/v1/earn/benchmark?history_days=365",
	"GET /api/v1/restatements":                       "/api/v1/restatements?since=2025-01-01T00:00:00Z",
	"GET /api/v1/prices":                             "/api/v1/prices?symbols=btc&asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/prices/{symbol}":                    "/api/v1/prices/BTC?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/symbols/resolve":                    "/api/v1/symbols/resolve?symbol=XBT&asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/symbols/mappings":                   "/api/v1/symbols/mappings?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/corrections":                        "/api/v1/corrections?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/prices/summary":                     "/api/v1/prices/summary?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/prices/{symbol}/explain":            "/api/v1/prices/BTC/explain?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/{coinId}/markets":             "/api/v1/coins/bitcoin/markets?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/markets":                      "/api/v1/coins/markets?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/top":                          "/api/v1/coins/top?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins":                              "/api/v1/coins?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/by-id/{id}":                   "/api/v1/coins/by-id/bitcoin?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/{coinId}":                     "/api/v1/coins/bitcoin?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/{coinId}/networks":            "/api/v1/coins/bitcoin/networks?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/{coinId}/similar":             "/api/v1/coins/bitcoin/similar?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/categories":                   "/api/v1/coins/categories?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/recent":                       "/api/v1/coins/recent?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/slugs":                        "/api/v1/coins/slugs?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/stats":                        "/api/v1/coins/stats?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/trending":                     "/api/v1/coins/trending?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/{coinId}/market-data":         "/api/v1/coins/bitcoin/market-data?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/movers":                "/api/v1/global-stats/movers?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/movers/{rankRange}":    "/api/v1/global-stats/movers/1-50?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/summary":               "/api/v1/global-stats/summary?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/fear-greed":            "/api/v1/global-stats/fear-greed?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/metrics":               "/api/v1/global-stats/metrics?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/sentiment":             "/api/v1/global-stats/sentiment?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/sentiment/{rankRange}": "/api/v1/global-stats/sentiment/1-50?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/defi":                  "/api/v1/global-stats/defi?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/defi/lending":          "/api/v1/global-stats/defi/lending?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/defi/staking":          "/api/v1/global-stats/defi/staking?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/defi/borrowing":        "/api/v1/global-stats/defi/borrowing?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/explain/{number}":                   "/api/v1/explain/price%2Fbitcoin?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/earn/products":                      "/api/v1/earn/products?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/earn/changes":                       "/api/v1/earn/changes?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/earn/products/{productId}":          "/api/v1/earn/products/aave-v3:usd-coin:lending?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/rates":                              "/api/v1/rates?category=lending&asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/rates/summary":                      "/api/v1/rates/summary?category=lending&asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/rates/{symbol}":                     "/api/v1/rates/ETH?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/providers":                          "/api/v1/providers?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/rates/providers":                    "/api/v1/rates/providers?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/rates/providers/{provider}":         "/api/v1/rates/providers/aave-v3?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/fiat":                               "/api/v1/fiat?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/fiat/{symbol}":                      "/api/v1/fiat/EUR?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/fiat/rates/usd":                     "/api/v1/fiat/rates/usd?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/fiat/stats":                         "/api/v1/fiat/stats?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/fiat/status":                        "/api/v1/fiat/status?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/stablecoins/index":                  "/api/v1/stablecoins/index?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/stablecoins/{symbol}/peg-stability": "/api/v1/stablecoins/USDT/peg-stability?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/charts":                             "/api/v1/charts?coins=btc&asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/charts/{coinId}":                    "/api/v1/charts/bitcoin?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/charts/{coinId}/current":            "/api/v1/charts/bitcoin/current?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/featured":                     "/api/v1/coins/featured?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/with-rates":                   "/api/v1/coins/with-rates?category=lending&asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/coins/history/{symbol}":             "/api/v1/coins/history/BTC?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/stream":                             "/api/v1/stream?from=2025-01-01T00:00:00Z",

	"GET /api/v1/global-stats/metrics/history/{metricType}": "/api/v1/global-stats/metrics/history/btc_dominance?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/metrics/ohlc/{metricType}":    "/api/v1/global-stats/metrics/ohlc/btc_dominance?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/defi/history/{metricType}":    "/api/v1/global-stats/defi/history/defi_tvl?asOf=2025-01-01T00:00:00Z",
	"GET /api/v1/global-stats/defi/ohlc/{metricType}":       "/api/v1/global-stats/defi/ohlc/defi_tvl?asOf=2025-01-01T00:00:00Z",
}

// freeRequests is how many requests a key of the plan Free is used for: fewer than it allows a minute.
const freeRequests = 20

// refusedWhole are those of them that answer nothing of a span which the plan cuts: a part would be taken for all.
var refusedWhole = []string{"GET /api/v1/restatements", "GET /api/v1/stream"}

// Every operation that looks back is one of which somebody has decided that the plan bounds it, at least by asOf; and they say so to a key of the plan Free.
func TestDemoBoundsEveryHistoryOfRatesByPlan(t *testing.T) {
	d := filledDemo(t)
	_, document, err := d.ask("/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	walked := 0
	for path, methods := range document["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			parameters, _ := operation.(map[string]any)["parameters"].([]any)
			looksBack := slices.ContainsFunc(parameters, func(p any) bool {
				name, _ := p.(map[string]any)["name"].(string)
				return slices.Contains(spanParams, name)
			})
			key := strings.ToUpper(method) + " " + path
			_, bound := boundByPlan[key]
			if looksBack {
				walked++
			}
			if looksBack != bound {
				t.Errorf("%s looks back: %t; it is listed as bound by the plan: %t", key, looksBack, bound)
			}
		}
	}
	if want := len(boundByPlan); walked != want {
		t.Errorf("%d operations look back, want the %d that are listed", walked, want)
	}
	d.patiently(t, "/api/v1/earn/benchmark") // the last that a start has of these
	free, asked := "", 0
	for operation, path := range boundByPlan {
		if asked%freeRequests == 0 {
			if free, err = d.newKey("free"); err != nil {
				t.Fatal(err)
			}
		}
		asked++
		request, err := http.NewRequest(http.MethodGet, d.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+free)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Meta  struct{ Clamped map[string]int64 }
			Error struct{ Code string }
		}
		err = json.NewDecoder(response.Body).Decode(&body)
		response.Body.Close()
		parsed, _ := url.Parse(path)
		cut := slices.ContainsFunc(spanParams, func(name string) bool { return parsed.Query().Has(name) && body.Meta.Clamped[name] == 7 })
		if refused := response.StatusCode == http.StatusPaymentRequired && body.Error.Code == "PLAN_REQUIRED"; err != nil || cut == refused || refused != (parsed.Query().Has("asOf") || slices.Contains(refusedWhole, operation)) {
			t.Errorf("%s of a Free key: got %d, %+v, %v; want it cut to 7 days, or refused where an instant or the whole span is asked for", operation, response.StatusCode, body, err)
		}
	}
}
