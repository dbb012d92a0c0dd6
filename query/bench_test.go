package query_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

const rounds = 5

// TestMain makes the test's binary its own load generator too.
func TestMain(m *testing.M) {
	if querytest.Load() {
		return
	}
	enginetest.Main(m)
}

// BenchmarkHotRead_KeyAndLimits asks how much of what a bare Fiber handler of the same bytes answers
// is left with the key check (10,000 keys), exact limits and all headers, each in its own process
// from the load. The goal is 0.75.
func BenchmarkHotRead_KeyAndLimits(b *testing.B) {
	key, base := hotServer(b)
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+base+"/api/v1/prices/BTC", nil)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("warming up: %d %s %v", response.StatusCode, body, err)
	}
	response.Body.Close()
	const path = "/api/v1/prices/BTC"
	bare := querytest.Bare(b, path, body)
	for b.Loop() {
		var full, limit, ratio, fullCPU, limitCPU []float64
		for range rounds {
			rate, cpu := querytest.Measure(b, bare, path, key)
			limit, limitCPU = append(limit, rate), append(limitCPU, cpu)
			rate, cpu = querytest.Measure(b, base, path, key)
			full, fullCPU = append(full, rate), append(fullCPU, cpu)
			ratio = append(ratio, full[len(full)-1]/limit[len(limit)-1])
		}
		for unit, figures := range map[string][]float64{"req/s": full, "bare-req/s": limit, "of-bare": ratio, "cpu-us/req": fullCPU, "bare-cpu-us/req": limitCPU} {
			slices.Sort(figures)
			b.ReportMetric(figures[rounds/2], unit)
		}
		b.ReportMetric(float64(len(body)), "body-bytes")
	}
}

// hotServer serves one price, of one provider, under an Enterprise key that is one of 10,000.
func hotServer(b *testing.B) (key, base string) {
	b.Helper()
	pepper := keys.NewPepper()
	table, err := keys.NewTable(pepper, func() string { return "" })
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		key = keys.Generate()
		hash := keys.Hash(pepper, []byte(key))
		id := "key_" + strconv.Itoa(i)
		table.Apply(&eventsv1.KeyRecord{Id: id, Hash: hash[:], Plan: limits.PlanEnterprise, Budget: id})
	}
	now := time.Now()
	priceCache := views.NewPriceCache(schemas.Coins())
	inputs := []*eventsv1.PriceInput{{Provider: "kraken", Symbol: "BTC/USD", QuoteId: "USD", Last: 100_000, LastHeard: now.UnixNano(), Rate: 1}}
	result, inputs := schemas.Aggregate(inputs, now.UnixNano())
	if err := priceCache.Apply(stream.TailRecord{Marked: &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{
		CoinId: "bitcoin", Time: now.UnixNano(), Price: result.Price, Min: result.Min, Max: result.Max, Accepted: 1, Inputs: inputs,
	}}}}); err != nil {
		b.Fatal(err)
	}
	catalog := views.NewCatalog(priceCache.Coins())
	plans := limits.DefaultPlans()
	enterprise := plans[limits.PlanEnterprise]
	enterprise.PerMinute, enterprise.PerMonth = 1_000_000_000, 1_000_000_000_000
	plans[limits.PlanEnterprise] = enterprise
	cfg := query.DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	server, err := query.NewServer(cfg, query.Deps{
		Keys: table, Limiter: limits.NewLimiter(time.Now, nil), Plans: plans, Endpoints: prices.New(priceCache, catalog, views.NewConverter(priceCache, catalog, nil), nil, nil).Endpoints(),
		Now: time.Now, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Version: "bench",
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := server.Bind(); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	return key, server.Addr()
}
