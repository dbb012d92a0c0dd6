package coins_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
)

// BenchmarkList_OfBare asks how much of what a bare handler of the same bytes answers is left to each list, and whether
// that stays when the coins are twenty times as many: the load is a process of its own, cpu-us/req is the figure to
// trust while the machine does other work.
func BenchmarkList_OfBare(b *testing.B) {
	for _, n := range []int{1_000, 20_000} {
		b.Run(fmt.Sprintf("coins=%d", n), func(b *testing.B) {
			base := strings.TrimPrefix(serveMany(b, n), "http://")
			for _, path := range []string{
				"coins/top", "coins", "coins?q=coin1&limit=50", "coins/markets", "coins/markets?order=total_volume&order_dir=desc&page=3", "coins/featured",
				"coins/trending", "coins/recent", "coins/categories", "coins/slugs", "coins/coin7/similar", "coins/coin7",
			} {
				b.Run(strings.NewReplacer("/", "_", "?", "_", "&", "_").Replace(path), func(b *testing.B) { beside(b, base, "/api/v1/"+path) })
			}
		})
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
	for b.Loop() {
		full, fullCPU := querytest.Measure(b, base, path, "")
		limit, limitCPU := querytest.Measure(b, bare, path, "")
		b.ReportMetric(full, "req/s")
		b.ReportMetric(limit, "bare-req/s")
		b.ReportMetric(full/limit, "of-bare")
		b.ReportMetric(fullCPU, "cpu-us/req")
		b.ReportMetric(limitCPU, "bare-cpu-us/req")
	}
	b.ReportMetric(float64(len(body)), "body-bytes")
}

// BenchmarkSearch_NeverAskedBefore asks what a search costs whose answer is not held.
func BenchmarkSearch_NeverAskedBefore(b *testing.B) {
	for _, n := range []int{1_000, 20_000} {
		b.Run(fmt.Sprintf("coins=%d", n), func(b *testing.B) {
			base := serveMany(b, n)
			page := 0
			for b.Loop() {
				page++
				response, err := http.Get(base + "/api/v1/coins?q=oin%2077&page=" + strconv.Itoa(page))
				if err != nil {
					b.Fatal(err)
				}
				_, err = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				if err != nil || response.StatusCode != http.StatusOK {
					b.Fatalf("got %d, %v", response.StatusCode, err)
				}
			}
		})
	}
}

// BenchmarkFirstReader_AfterAMinute asks how long the first reader after a minute waits, whose rows all changed.
func BenchmarkFirstReader_AfterAMinute(b *testing.B) {
	for _, n := range []int{1_000, 20_000} {
		b.Run(fmt.Sprintf("coins=%d", n), func(b *testing.B) {
			w, serve := many(b, n)
			base := serve()
			for b.Loop() {
				b.StopTimer()
				w.Now = w.Now.Add(60e9)
				querytest.ManyRows(w, n)
				b.StartTimer()
				response, err := http.Get(base + "/api/v1/coins/markets")
				if err != nil {
					b.Fatal(err)
				}
				_, err = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				if err != nil || response.StatusCode != http.StatusOK {
					b.Fatalf("got %d, %v", response.StatusCode, err)
				}
			}
		})
	}
}

func serveMany(b *testing.B, n int) string {
	_, serve := many(b, n)
	return serve()
}

// many is a fixture of n coins, four of five with a row.
func many(b *testing.B, n int) (*querytest.Fixture, func() string) {
	w := querytest.NewFixture(b, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))
	w.Now = w.Time("2026-11-20T10:00:00Z")
	querytest.ManyCoins(w, n)
	querytest.ManyRows(w, n)
	return w, func() string {
		w.Serve(coins.New(w.Prices, w.Catalog, w.Yields, views.NewCandles(w.Prices, stored{w}), coins.Served{}, stored{w}).Endpoints())
		return w.Base()
	}
}

// Whatever is asked for, pages of one order hold each coin once.
func TestPagesHoldEachCoinOnce(t *testing.T) {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))
	w.Now = w.Time("2026-11-20T10:00:00Z")
	const n = 730
	querytest.ManyCoins(w, n)
	querytest.ManyRows(w, n)
	w.Serve(coins.New(w.Prices, w.Catalog, w.Yields, views.NewCandles(w.Prices, stored{w}), coins.Served{}, stored{w}).Endpoints())
	for _, order := range []string{"market_cap_rank", "total_volume", "name", "price_change_percentage_24h"} {
		for _, dir := range []string{"asc", "desc"} {
			var ids []string
			for page := 1; ; page++ {
				var body struct {
					Data []struct{ ID string }
					Meta struct{ Total, TotalPages int }
				}
				querytest.Decode(t, w.Base()+fmt.Sprintf("/api/v1/coins/markets?per_page=250&page=%d&order=%s&order_dir=%s", page, order, dir), &body)
				for _, row := range body.Data {
					ids = append(ids, row.ID)
				}
				if len(body.Data) == 0 {
					if body.Meta.Total != len(ids) || body.Meta.TotalPages != page-1 {
						t.Errorf("%s %s: got total %d and %d pages, want %d and %d", order, dir, body.Meta.Total, body.Meta.TotalPages, len(ids), page-1)
					}
					break
				}
			}
			slices.Sort(ids)
			if all := len(ids); all != n*4/5 || len(slices.Compact(ids)) != all {
				t.Errorf("%s %s: got %d coins, %d of them different; want %d", order, dir, all, len(slices.Compact(ids)), n*4/5)
			}
		}
	}
}

// A search finds what a plain look through all names finds.
func TestSearchFindsWhatNamesHold(t *testing.T) {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))
	w.Now = w.Time("2026-11-20T10:00:00Z")
	querytest.ManyCoins(w, 500)
	querytest.ManyRows(w, 500)
	w.Serve(coins.New(w.Prices, w.Catalog, w.Yields, views.NewCandles(w.Prices, stored{w}), coins.Served{}, stored{w}).Endpoints())
	for _, q := range []string{"1", "c", "coin4", "Coin 12", "N7", "in 3", "oin", "bit", "x", "coin 499"} {
		want := 0
		for _, coin := range w.Catalog.Snapshot().Coins {
			if text := strings.ToLower(q); strings.Contains(strings.ToLower(coin.Name), text) || strings.Contains(strings.ToLower(coin.Symbol), text) || strings.Contains(coin.ID, text) {
				want++
			}
		}
		var body coins.SearchBody
		querytest.Decode(t, w.Base()+"/api/v1/coins?q="+strings.ReplaceAll(q, " ", "%20"), &body)
		if body.Meta.Total != want || len(body.Data) != min(want, 20) {
			t.Errorf("%q: got %d found, %d answered; want %d and %d", q, body.Meta.Total, len(body.Data), want, min(want, 20))
		}
	}
}
