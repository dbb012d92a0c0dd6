package rates_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// BenchmarkHotRead_8000RatesOfBare asks how much of what a bare handler of the same bytes answers is left to each hot
// answer, with 8,000 rates of 500 coins and a price of each by four exchanges. The goal is 0.75; cpu-us/req is the figure to
// trust while the machine does other work.
func BenchmarkHotRead_8000RatesOfBare(b *testing.B) {
	w := many(b)
	base := strings.TrimPrefix(w.Base(), "http://")
	for _, path := range []string{"rates/ETH", "rates/BTC?category=lending", "rates", "rates?symbol=eth", "rates/summary?symbol=eth", "rates/summary"} {
		b.Run(strings.NewReplacer("/", "_", "?", "_", "=", "_").Replace(path), func(b *testing.B) { beside(b, base, "/api/v1/"+path) })
	}
}

func beside(b *testing.B, base, path string) {
	response, err := http.Get("http://" + base + path)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d %s %v", path, response.StatusCode, body, err)
	}
	bare := querytest.Bare(b, path, body)
	const rounds = 5
	for b.Loop() {
		var ratios []float64
		var full, limit, fullCPU, limitCPU float64
		for range rounds {
			limit, limitCPU = querytest.Measure(b, bare, path, "")
			full, fullCPU = querytest.Measure(b, base, path, "")
			ratios = append(ratios, full/limit)
		}
		slices.Sort(ratios)
		b.ReportMetric(full, "req/s")
		b.ReportMetric(limit, "bare-req/s")
		b.ReportMetric(ratios[rounds/2], "of-bare")
		b.ReportMetric(fullCPU, "cpu-us/req")
		b.ReportMetric(limitCPU, "bare-cpu-us/req")
	}
	b.ReportMetric(float64(len(body)), "body-bytes")
}

// BenchmarkFirstReader_AfterAMinute asks how long the first reader waits after a minute in which every rate was reported.
func BenchmarkFirstReader_AfterAMinute(b *testing.B) {
	w := many(b)
	for b.Loop() {
		b.StopTimer()
		fill(w)
		b.StartTimer()
		response, err := http.Get(w.Base() + "/api/v1/rates/ETH")
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatalf("got %d, %v", response.StatusCode, err)
		}
	}
}

// many is a fixture with the largest 500 coins of the table.
func many(b *testing.B) *querytest.Fixture {
	w := querytest.NewFixture(b, schemas.Coins())
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	past := stored{w}
	w.Serve(rates.New(w.Yields, w.Prices, w.Catalog, past, rates.Served{}, views.NewRateCharts(w.Yields, past), states{}, venues).Endpoints())
	fill(w)
	w.Pulse()
	for i, coin := range w.Prices.Coins().All() {
		if i == 500 {
			break
		}
		price := 1 + 10_000/float64(i+1)
		var markets []string
		for _, venue := range []string{"kraken", "okx", "coinbase", "bybit"} {
			markets = append(markets, fmt.Sprintf("%s:%s/USD:USD:%g:1", venue, coin.Symbol, price))
		}
		priced(w, coin.ID, markets)
	}
	return w
}

// fill publishes 8,000 rates of 100 providers.
func fill(w *querytest.Fixture) {
	coins := w.Prices.Coins().All()
	at := w.Now.UnixNano()
	for i := range 8_000 {
		coin := coins[i*i%500]
		tvl := float64(i) * 1000
		provider := fmt.Sprintf("provider-%d", i%100)
		w.Must(w.Yields.Apply(views.TailRecord{Offset: w.Offset(), Marked: &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: &eventsv1.RateEntry{
			Provider: provider, ProviderName: provider, Source: "defillama-yields", Category: schemas.RateCategories[i%3], CoinId: coin.ID, Symbol: coin.Symbol,
			ProviderSymbol: coin.Symbol, Pool: fmt.Sprintf("00000000-0000-0000-0000-%012d", i), Chain: "Ethereum", Apr: float64(i%1000) / 100, Apy: float64(i%1000) / 100, TvlUsd: &tvl,
			Time: at, Heard: at, Said: &eventsv1.Rate{Raw: fmt.Sprint(float64(i%1000) / 100), RawUnit: "apy_percent", Interval: int64(time.Hour)},
		}}}}))
	}
	w.RateFolded(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Pulse{Pulse: &eventsv1.Pulse{Now: at, Watermark: at}}})
}
