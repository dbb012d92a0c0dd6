package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/earn"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/mcp"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/providers"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fixture is a querytest.Fixture with the handler of the tools of all its units.
type fixture struct {
	*querytest.Fixture
	// base is where those with a key are served, open where everybody is.
	base, open string
	// keys are by plan; tiny, small and spent admit two requests a minute, bulkless may use tools but not ask in bulk.
	keys map[string]string
}

// newFixture has a part of the embedded table, since the store knows the pegs of that, and something of
// everything that a tool serves.
func newFixture(t testing.TB) *fixture {
	table := querytest.Coins(
		"bitcoin,BTC,Bitcoin,1,coin,,*:XBT", "ethereum,ETH,Ethereum,2,coin,,", "tether,USDT,Tether,3,stablecoin,USD,",
		"solana,SOL,Solana,4,coin,,", "sol-wormhole,SOL,SOL (Wormhole),5,wrapped,,")
	w := &fixture{Fixture: querytest.NewFixture(t, table), keys: map[string]string{}}
	w.Open(enginetest.Migrated(t))
	candles := views.NewCandles(w.Prices, w.History())
	venues := []views.Provider{{Slug: "kraken", Name: "Kraken"}, {Slug: "okx", Name: "OKX"}}
	refused := &eventsv1.SymbolOverride{Source: "gate", Symbol: "SOL", CoinId: schemas.NoCoin, Time: 1} // an operator's override: none of the coins
	pastCoins := views.NewPastCoins(w.Catalog, views.NewPastRows(w.Catalog, nil, w.History()), nil, w.History())
	var endpoints []query.Endpoint
	states := providers.New(w.Prices, w.Catalog, w.Yields, w.History(), providers.Served{
		Sources: views.NewPastCurrencies(w.Catalog, nil, w.History()), Yields: views.NewPastYields(w.Yields, nil, w.History()), Prices: w.History()}, venues)
	for _, unit := range []interface{ Endpoints() []query.Endpoint }{
		prices.New(w.Prices, w.Catalog, views.NewConverter(w.Prices, w.Catalog, views.NewPastCurrencies(w.Catalog, nil, w.History())), w.History(), venues),
		coins.New(w.Prices, w.Catalog, w.Yields, candles, coins.Served{Coins: pastCoins, Yields: views.NewPastYields(w.Yields, nil, w.History())}, w.History()),
		globalstats.New(w.Catalog, globalstats.Served{Summaries: views.NewPastSummaries(w.Catalog, nil, w.History()), Coins: pastCoins,
			Sources: views.NewPastCurrencies(w.Catalog, nil, w.History())}, w.History()),
		stablecoins.New(w.Prices, w.Catalog, w.History(), stablecoins.Served{
			Sources: views.NewPastCurrencies(w.Catalog, nil, w.History()), Rows: views.NewPastRows(w.Catalog, nil, w.History()), Prices: w.History()}),
		states,
		rates.New(w.Yields, w.Prices, w.Catalog, w.History(), rates.Served{
			Yields: views.NewPastYields(w.Yields, nil, w.History()), Rows: views.NewPastRows(w.Catalog, nil, w.History()), Prices: w.History()}, views.NewRateCharts(w.Yields, w.History()), states, venues),
		earn.New(table, w.Catalog, w.History(), venues),
		symbols.New(w.Catalog, w.Prices, w.Rates, nil, w.History(), schemas.NewSymbolOverrides(refused)),
	} {
		endpoints = append(endpoints, unit.Endpoints()...)
	}
	endpoints = append(endpoints, faulty("broken", func() error { return errors.New("secret at 10.0.0.1") }),
		faulty("stale", func() error {
			return &query.Error{Status: http.StatusServiceUnavailable, Code: query.CodeStale, Message: "older than two hours", RetryAfter: 60}
		}))
	plans := limits.DefaultPlans()
	for _, name := range []string{"tiny", "small", "spent"} {
		plans[name] = limits.Plan{PerMinute: 2, MCP: true, Bulk: true}
	}
	plans["bulkless"] = limits.Plan{MCP: true}
	pepper := keys.NewPepper()
	issued, err := keys.NewTable(pepper, func() string { return "" })
	w.Must(err)
	for plan := range plans {
		key := keys.Generate()
		hash := keys.Hash(pepper, []byte(key))
		rec := &eventsv1.KeyRecord{Id: "id-" + plan, Plan: plan, Budget: plan, Hash: hash[:], Last4: key[len(key)-4:]}
		value, err := keys.Encode(pepper, rec)
		w.Must(err)
		issued.Follow([]byte(rec.Id), value)
		w.keys[plan] = key
	}
	w.base = w.serve(query.AuthRequired, endpoints, plans, issued)
	w.open = w.serve(query.AuthOpen, endpoints, plans, issued)
	w.Fixture.Run("use world.setup")
	return w
}

// earnProduct is the id of the one earn product.
var earnProduct = schemas.EarnProductID("okx", "tether", schemas.RateLending)

// in is the same fixture for a subtest.
func (w *fixture) in(t testing.TB) *fixture {
	inner, own := *w.Fixture, *w
	inner.T = t
	own.Fixture = &inner
	return &own
}

// faulty is a tool that only fails.
func faulty(name string, err func() error) query.Endpoint {
	return query.Endpoint{Method: http.MethodGet, Path: "/api/v1/" + name, ID: name, Tool: name, ToolSet: query.FullTools, Tag: "test", Summary: "Fails.",
		Body: struct{}{}, Handle: func(context.Context, *query.Request) (query.Answer, error) { return query.Answer{}, err() }}
}

func (w *fixture) serve(auth query.AuthMode, endpoints []query.Endpoint, plans map[string]limits.Plan, table query.Keyring) (base string) {
	cfg := query.DefaultConfig()
	cfg.Listen, cfg.Auth = "127.0.0.1:0", auth
	server, err := query.NewServer(cfg, query.Deps{
		Keys: table, Limiter: limits.NewLimiter(time.Now, nil), Plans: plans, Endpoints: endpoints,
		Now: func() time.Time { return w.Now }, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Version: "test",
		Mount: func(router fiber.Router, s *query.Server) {
			handler, err := mcp.New(mcp.Config{Version: "1.2.3", Simulated: true}, s)
			w.Must(err)
			handler.Mount(router)
		},
	})
	w.Must(err)
	w.Must(server.Bind())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	w.T.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.T.Errorf("running the server: %v", err)
		}
	})
	return "http://" + server.Addr()
}

// send posts a body with a key; headers are name: value.
func (w *fixture) send(base, key, body string, headers ...string) (*http.Response, []byte) {
	w.T.Helper()
	path := "/mcp"
	request, err := http.NewRequestWithContext(w.T.Context(), http.MethodPost, base+path, strings.NewReader(body))
	w.Must(err)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch name {
		case "Host":
			request.Host = value
		case "Query":
			request.URL.RawQuery = value
		default:
			request.Header.Set(name, value)
		}
	}
	response, err := http.DefaultClient.Do(request)
	w.Must(err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	w.Must(err)
	return response, answer
}

var (
	ids   = regexp.MustCompile(`"requestId": "[A-Z2-7]+"`)
	waits = regexp.MustCompile(`"retryAfter": \d+`)
)

// Run does one line of a script.
func (w *fixture) Run(line string) string {
	words := strings.Fields(line)
	base := w.base
	switch words[0] {
	case "open":
		base = w.open
	case "ask", "stdio":
	case "public": // a path that needs no key
		return strings.ReplaceAll(querytest.Get(w.T, w.base, words[1]), w.base, "BASE")
	default:
		return w.Fixture.Run(line)
	}
	// ask PLAN [Name:value]... BODY, over HTTP; stdio PLAN BODY
	rest := strings.TrimSpace(strings.TrimPrefix(line, words[0]))
	plan, rest, _ := strings.Cut(rest, " ")
	var headers []string
	for {
		word, after, more := strings.Cut(rest, " ")
		name, value, ok := strings.Cut(word, ":")
		if !ok || !more || strings.ContainsAny(name, `{["`) {
			break
		}
		headers, rest = append(headers, name+": "+value), after
	}
	key := w.keys[plan]
	switch plan {
	case "none":
	case "bad":
		key = keys.Generate()
	case "garbled":
		key = "ck_live_x"
	default:
		if key == "" {
			w.T.Fatalf("script: there is no key of plan %q", plan)
		}
	}
	var out bytes.Buffer
	if words[0] == "stdio" {
		if frame := w.stdio(base, key, unescape(rest)); frame != "" {
			w.Must(json.Indent(&out, []byte(frame), "", "  "))
		}
		return masked(out.String())
	}
	response, body := w.send(base, key, unescape(rest), headers...)
	fmt.Fprintf(&out, "%d", response.StatusCode)
	for _, name := range []string{"WWW-Authenticate", "X-RateLimit-Limit", "X-Data-Source"} {
		if value := response.Header.Get(name); value != "" {
			fmt.Fprintf(&out, " %s=%s", name, value)
		}
	}
	if left := response.Header.Get("X-RateLimit-Remaining"); plan == "tiny" {
		fmt.Fprintf(&out, " X-RateLimit-Remaining=%s", left)
	}
	if response.Header.Get("Retry-After") != "" {
		out.WriteString(" Retry-After")
	}
	out.WriteByte('\n')
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		out.Write(body)
	} else if len(body) > 0 {
		w.Must(json.Indent(&out, body, "", "  "))
		out.WriteByte('\n')
	}
	return masked(out.String())
}

// masked leaves out what differs from run to run.
func masked(text string) string {
	return waits.ReplaceAllString(ids.ReplaceAllString(text, `"requestId": "ID"`), `"retryAfter": SECONDS`)
}

// unescape writes out what would make a line of a script unreadable: deep(N) is N arrays within each other,
// long(N) N letters, and META what a request of the newer era reports of itself.
func unescape(body string) string {
	body = strings.ReplaceAll(body, "META", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`)
	body = long.ReplaceAllStringFunc(body, func(escape string) string {
		var n int
		if _, err := fmt.Sscanf(escape, "long(%d)", &n); err != nil {
			panic(err)
		}
		return strings.Repeat("x", n)
	})
	return deep.ReplaceAllStringFunc(body, func(escape string) string {
		var n int
		if _, err := fmt.Sscanf(escape, "deep(%d)", &n); err != nil {
			panic(err)
		}
		return strings.Repeat("[", n) + strings.Repeat("]", n)
	})
}

var (
	deep = regexp.MustCompile(`deep\(\d+\)`)
	long = regexp.MustCompile(`long\(\d+\)`)
)
