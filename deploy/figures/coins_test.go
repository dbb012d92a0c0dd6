package figures

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// coinsFed is how long an instance reads its coins before its memory is looked at.
const coinsFed = 2 * time.Minute

// BenchmarkCoins asks what 20,000 coins cost where 1,000 are the limit: how much memory the whole binary takes while
// they are read, how soon it is ready again, and how long it takes to rebuild all views from the log and compare them.
func BenchmarkCoins(b *testing.B) {
	binary := build(b)
	for _, n := range []int{1_000, 20_000} {
		b.Run(fmt.Sprintf("coins=%d", n), func(b *testing.B) {
			for b.Loop() {
				measureCoins(b, binary, n)
			}
		})
	}
}

func measureCoins(b *testing.B, binary string, n int) {
	b.Helper()
	source := newCoinSource(b, n)
	in := newInstance(b, binary, append(only(b, binary), "MARKETLOG_SOURCES_COINGECKO_ENABLED=true",
		"MARKETLOG_SOURCES_COINGECKO_URL=http://"+source, "MARKETLOG_SOURCES_COINGECKO_REQUESTS=3000")...)
	began := time.Now()
	p := in.start(b, "live")
	// The first minute may have ended before all pages of the source were read, so that the second one has the first rows.
	for listed := in.coins(b); listed < n; listed = in.coins(b) {
		if time.Since(began) > 3*patience {
			b.Fatalf("%d of %d coins after %s\n%s", listed, n, time.Since(began), p.output)
		}
		pause(b.Context(), time.Now().Add(time.Second)) // more often, and the limit of requests is reached
	}
	b.ReportMetric(milliseconds(time.Since(began)), "all-listed-ms")
	pause(b.Context(), time.Now().Add(coinsFed))
	b.ReportMetric(resident(p.Pid), "fed-MB")
	p.stop()

	began = time.Now()
	p = in.start(b, "none")
	b.ReportMetric(milliseconds(in.await(b, p, "/readyz", began)), "restart-ready-ms")
	result := replay(b, in)
	b.ReportMetric(float64(result.Compared), "rows")
	b.ReportMetric(1000*result.Seconds, "rebuild-ms")
	p.stop()
}

// coins is how many coins have a row of their market.
func (in *instance) coins(b *testing.B) int {
	b.Helper()
	answer, err := http.Get("http://" + in.rest + "/api/v1/coins/markets?per_page=1")
	if err != nil {
		return 0 // it does not listen yet
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return 0
	}
	var page struct{ Meta struct{ Total int } }
	if err := json.Unmarshal(body, &page); err != nil {
		b.Fatalf("%v: %.200s", err, body)
	}
	return page.Meta.Total
}

// newCoinSource serves n coins in the words of CoinGecko: https://docs.coingecko.com/v3.0.1/reference/coins-list and
// https://docs.coingecko.com/v3.0.1/reference/coins-markets. No two answers hold the same price.
func newCoinSource(b *testing.B, n int) (address string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatalf("opening a source: %v", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /coins/list", func(w http.ResponseWriter, _ *http.Request) {
		list := make([]map[string]any, n)
		for i := range list {
			list[i] = map[string]any{"id": coinID(i), "symbol": fmt.Sprintf("c%d", i), "name": fmt.Sprintf("Coin %d", i), "platforms": map[string]string{}}
		}
		_ = json.NewEncoder(w).Encode(list) // a client that has gone asks again
	})
	mux.HandleFunc("GET /coins/markets", func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
		rows := []map[string]any{}
		now := time.Now()
		for i := (page - 1) * size; i < min(page*size, n); i++ {
			price := 1e5/float64(i+1) + float64(now.UnixNano()%1000)/1e9
			rows = append(rows, map[string]any{
				"id": coinID(i), "symbol": fmt.Sprintf("c%d", i), "name": fmt.Sprintf("Coin %d", i), "image": "https://example.com/" + coinID(i) + ".png",
				"current_price": price, "market_cap": price * 1e7, "market_cap_rank": i + 1, "fully_diluted_valuation": price * 2e7, "total_volume": price * 1e6,
				"high_24h": price * 1.02, "low_24h": price * 0.98, "price_change_percentage_24h": 1.5, "circulating_supply": 1e7, "total_supply": 2e7, "max_supply": nil,
				"ath": price * 3, "ath_date": "2021-11-10T14:24:11.849Z", "atl": price / 100, "atl_date": "2015-03-02T00:00:00.000Z", "last_updated": now.UTC().Format(time.RFC3339Nano),
				"price_change_percentage_1h_in_currency": 0.2, "price_change_percentage_24h_in_currency": 1.5, "price_change_percentage_7d_in_currency": -3.25,
				"price_change_percentage_14d_in_currency": 4.5, "price_change_percentage_30d_in_currency": 9.75, "price_change_percentage_200d_in_currency": 31.5,
				"price_change_percentage_1y_in_currency": 120.25,
			})
		}
		_ = json.NewEncoder(w).Encode(rows)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }() // ends with Close
	b.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return listener.Addr().String()
}

func coinID(i int) string { return fmt.Sprintf("coin-%d", i) }
