package pages

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/limits"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// fixture is a server with pages, whose endpoints answer what a test sets.
type fixture struct {
	t      *testing.T
	unit   *Unit
	table  *keys.Table
	links  *Links
	pepper []byte
	addr   string
	port   string
	// linkTime is the clock of links, in Unix nanoseconds.
	linkTime atomic.Int64
}

// answers are what the endpoints answer, by operation; an operation that is left out is not served.
type answers map[string]string

// usual is an instance on the simulator with one coin.
var usual = answers{
	"listCoinMarketTable": `{"data":[{"id":"bitcoin","symbol":"btc","name":"Bitcoin","currentPrice":100,"priceSource":"median","marketCap":2e12,"marketCapRank":1,"priceChangePercentage24h":-2.5,"sparkline7d":[1,2,3]}],"meta":{}}`,
	"summarizePrices":     `{"data":{"prices":{"ETH":{"symbol":"ETH","coinId":"ethereum","price":3000.5,"volume24h":5,"priceSource":"median"},"BTC":{"symbol":"BTC","coinId":"bitcoin","price":99,"volume24h":9,"priceSource":"median"}}}}`,
	"getMarketSummary": `{"data":{"totalMarketCapUsd":2e12,"metrics":{"marketCapChange24h":-1.25,"activeCoins":214},"movers":{"data":[{"rankRange":"1-50","gainers":[{"id":"solana","symbol":"sol","name":"Solana","price":201.5,"priceChange24h":8.5}],"losers":[]}]},` +
		`"sentiment":{"data":[{"rankRange":"1-50","positive":31,"negative":19,"classification":"bullish"}]},"fearGreed":{"value":61,"classification":"Greed","source":"alternative"}}}`,
	"listPrices": `{"prices":[{"coinId":"bitcoin","priceUsd":101234.56,"isStale":false,"providers":15,"rejected":1,"confidence":20}]}`,
	"getCoin":    `{"data":{"id":"bitcoin","symbol":"btc","name":"Bitcoin","marketCapRank":1,"currentPrice":100,"marketCap":2e12}}`,
	"explainPrice": `{"data":{"price":101234.56,"confidence":20,"timestamp":"2026-11-20T10:00:05.000Z","accepted":["kraken"],"rejected":["okx"],"reproduced":true,"inputs":[` +
		`{"provider":"kraken","venueSymbol":"BTC/USD","priceUsd":101234.56,"accepted":true,"ageMs":120},{"provider":"okx","venueSymbol":"BTC-USDT","accepted":false,"reason":"no_rate","ageMs":90}]}}`,
	"listCoinMarkets": `{"markets":[]}`,
	"summarizeRates": `{"data":{"summary":[{"symbol":"USDC","coinId":"usd-coin","category":"lending","minRate":1,"maxRate":7.256,"medianRate":4.5,"providerCount":9},{"symbol":"ETH","coinId":"ethereum","category":"staking","minRate":2,"maxRate":3.1,"medianRate":2.8,"providerCount":3},` +
		`{"symbol":"USDC","coinId":"usd-coin","category":"borrowing","minRate":-0.5,"maxRate":9,"medianRate":5.25,"providerCount":4},{"symbol":"BTC","coinId":"bitcoin","category":"price","minRate":99999.5,"maxRate":1,"medianRate":1,"providerCount":1}]}}`,
	"getEarnBenchmark": `{"data":{"asOf":"2026-11-20T00:00:00Z","median":4.75,"providerCount":7,"cefi":{},"defi":{}}}`,
	"getRates": `{"data":{"symbol":"USDC","coinId":"usd-coin","rates":[{"id":"a|lending|b","provider":"aave-v3","providerName":"Aave V3","category":"lending","rate":7.256,"lastUpdated":"2026-11-20T10:00:00Z","metadata":{"source":"defillama-yields","raw":"0.0701","rawUnit":"apr_fraction","compounding":"daily"}},` +
		`{"id":"kraken|price|USDC/USD","provider":"kraken","category":"price","rate":0.9987,"lastUpdated":"2026-11-20T10:00:00Z"}]}}`,
	"listEarnProducts": `{"products":[]}`,
	"listStablecoins":  `{"stablecoins":[{"id":"tether","symbol":"USDT","name":"Tether","price":1.0002,"pegDeviation":2.25,"stabilityScore":97.5,"marketCap":1.5e11,"pegCurrency":"USD"},{"id":"lost","symbol":"LOST","name":"Lost","price":0.93,"pegDeviation":-700,"pegCurrency":"USD","isDepegged":true}],"meta":{}}`,
	"getDefiOverview":  `{"data":{"totalTvl":1.2e11,"lendingApy":3.21,"protocolCount":812}}`,
	"getDefiLending":   `{"data":{"topProtocols":[]}}`,
	"getDefiStaking":   `{"data":{"topProtocols":[]}}`,
	"getSystem":        `{"data":{"venues":[{"slug":"kraken","state":"down","connections":0,"markets":41,"lastEventAgeSeconds":3.25,"gaps":{},"refused":{}}],"sources":[],"path":[{"kind":"fold","name":"resolve","topic":"ticks.raw.v1","lagSeconds":0.125}]}}`,
}

var operations = map[string]struct {
	path   string
	params []query.Param
}{
	"listCoinMarketTable": {"/api/v1/coins/markets", []query.Param{{Name: "per_page", Kind: query.Integer, Default: "100", Min: 1, Max: 250, Doc: "Rows."}, {Name: "sparkline", Kind: query.Flag, Default: "false", Doc: "Lines."}}},
	"summarizePrices":     {"/api/v1/prices/summary", nil},
	"getMarketSummary":    {"/api/v1/global-stats/summary", nil},
	"listPrices":          {"/api/v1/prices", []query.Param{{Name: "symbols", Kind: query.List, Required: true, MaxItems: 250, Doc: "Coins."}}},
	"getSystem":           {"/api/v1/system", nil},
	"summarizeRates":      {"/api/v1/rates/summary", nil},
	"getRates":            {"/api/v1/rates/{symbol}", []query.Param{query.CoinParam("symbol", query.Path, "usd-coin")}},
	"getEarnBenchmark":    {"/api/v1/earn/benchmark", nil},
	"listEarnProducts":    {"/api/v1/earn/products", []query.Param{query.CoinParam("symbol", query.Query, "usd-coin"), {Name: "limit", Kind: query.Integer, Default: "50", Min: 1, Max: 500, Doc: "Rows."}}},
	"listStablecoins":     {"/api/v1/stablecoins/index", []query.Param{{Name: "limit", Kind: query.Integer, Default: "50", Min: 1, Max: 500, Doc: "Rows."}}},
	"getDefiOverview":     {"/api/v1/global-stats/defi", nil},
	"getDefiLending":      {"/api/v1/global-stats/defi/lending", nil},
	"getDefiStaking":      {"/api/v1/global-stats/defi/staking", nil},
	"getCoin":             {"/api/v1/coins/{coinId}", []query.Param{query.CoinParam("coinId", query.Path, "bitcoin")}},
	"explainPrice":        {"/api/v1/prices/{symbol}/explain", []query.Param{query.CoinParam("symbol", query.Path, "bitcoin")}},
	"listCoinMarkets":     {"/api/v1/coins/{coinId}/markets", []query.Param{query.CoinParam("coinId", query.Path, "bitcoin"), {Name: "limit", Kind: query.Integer, Default: "50", Min: 1, Max: 200, Doc: "Rows."}}},
}

var guidesOfTest = fstest.MapFS{
	"README.md": {Data: []byte("# Documentation\n\n| Page | Answers |\n|---|---|\n| [rest.md](rest.md#a) | paths |\n")},
	"rest.md": {Data: []byte("# REST\n\nThe map of [all](README.md) paths. More.\n\n## Any section\n\nSee [why](decisions/0001.md), [second](decisions/0002.md), [hours](queries/01-hours.sql), [code](../main.go), [there](https://example.com/x), [gone](gone.md), [below](#any-section), " +
		"[evil](javascript:alert(1)).\n\n<img src=x onerror=alert(1)>\n\n```sh\ncurl \"<x>\"\n```\n")},
	"decisions/0002.md":    {Data: []byte("# 0002 Second\n\nSee [rest](../rest.md), [code](../../main.go), [hours](../queries/01-hours.sql).\n")},
	"CHANGELOG.md":         {Data: []byte("# Changelog\n\nOld.\n")},
	"queries/02-later.sql": {Data: []byte("-- Later\nSELECT 2 FROM v_prices\n")},
	"queries/01-hours.sql": {Data: []byte("-- Bitcoin by the hour\n--\n-- Columns: start.\nSELECT start FROM v_candles_1h\n")},
}

func newFixture(t *testing.T, canned answers, change func(*Config)) *fixture {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t, pepper: keys.NewPepper(), addr: listener.Addr().String()}
	_, w.port, _ = net.SplitHostPort(w.addr)
	w.linkTime.Store(time.Now().UnixNano())
	if w.table, err = keys.NewTable(w.pepper, func() string { return "" }); err != nil {
		t.Fatal(err)
	}
	w.links = NewLinks(func() time.Time { return time.Unix(0, w.linkTime.Load()) })
	cfg := Config{Listen: w.addr, Simulated: true, Automatic: true, Version: "test"}
	if change != nil {
		change(&cfg)
	}
	if w.unit, err = New(cfg, Deps{Pepper: w.pepper, Keys: w.table, Links: w.links, SQL: func() bool { return true }, Docs: guidesOfTest}); err != nil {
		t.Fatal(err)
	}
	var endpoints []query.Endpoint
	for id, text := range canned {
		endpoints = append(endpoints, query.Endpoint{Method: http.MethodGet, Path: operations[id].path, ID: id, Tag: "test", Summary: "A test.", Params: operations[id].params, Body: struct{}{}, Hot: true,
			Handle: func(context.Context, *query.Request) (query.Answer, error) {
				if text == "" {
					return query.Answer{}, query.NotFound("there is none")
				}
				return query.Answer{Body: query.RawBody([]byte(text))}, nil
			}})
	}
	served := query.DefaultConfig()
	served.Listen = w.addr
	server, err := query.NewServer(served, query.Deps{Keys: w.table, Sessions: w.unit, Limiter: limits.NewLimiter(time.Now, nil), Plans: limits.DefaultPlans(), Endpoints: endpoints,
		Mount: func(r fiber.Router, s *query.Server) { w.unit.Mount(r, s) },
		Now:   time.Now, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Listener: listener, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the server: %v", err)
		}
	})
	return w
}

// key makes a key of a plan, with its id.
func (w *fixture) key(plan string) (key, id string) {
	key = keys.Generate()
	id = "key_" + key[len(key)-8:]
	hash := keys.Hash(w.pepper, []byte(key))
	w.table.Apply(&eventsv1.KeyRecord{Id: id, Plan: plan, Budget: id, Hash: hash[:]})
	return key, id
}

// ask sends a request as it is written; in headers, PORT is the server's port.
func (w *fixture) ask(method, path, protocol string, headers []string, body string) (*http.Response, string) {
	w.t.Helper()
	conn, err := net.DialTimeout("tcp", w.addr, 5*time.Second)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	request := fmt.Sprintf("%s %s %s\r\n", method, path, protocol)
	for _, h := range headers {
		request += h + "\r\n"
	}
	if body != "" {
		request += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if _, err := io.WriteString(conn, request+"\r\n"+body); err != nil {
		w.t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response, string(page)
}

const page, current = "Accept: text/html", "HTTP/1.1"

// browser are the headers of a person's browser at this machine.
func (w *fixture) browser(more ...string) []string {
	return append([]string{"Host: " + w.addr, page, "Sec-Fetch-Site: none"}, more...)
}

// cookie is what an answer set, for a Cookie header.
func cookie(response *http.Response) string {
	for _, c := range response.Cookies() {
		return c.Name + "=" + c.Value
	}
	return ""
}
