package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/pages"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// pictures has the browser make the pictures of the README.
var pictures = flag.Bool("pictures", false, "make the pictures of the pages in docs/pictures")

// shotsVariable names a folder for pictures of the pages, as the browser sees them.
const shotsVariable = "MARKETLOG_SHOTS"

// A real browser finds on every page, on large and small screens, light and dark, what the API answers, and nothing that it
// should not: no error, no breach of the policy, no request to another server, nothing wider than the screen, nothing that people with
// a screen reader cannot use. What others wrote stays text, and a server that is killed and started again is taken up again.
func TestDemoPagesInABrowser(t *testing.T) {
	streamtest.InTier(t, streamtest.TierBrowser)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		streamtest.Missing(t, streamtest.TierBrowser, "no chromium on PATH")
	}
	tools := filepath.Join("..", "..", "tools", "web")
	if _, err := os.Stat(filepath.Join(tools, "node_modules", ".installed")); err != nil {
		streamtest.Missing(t, streamtest.TierBrowser, "nothing to drive a browser with; tools/web/fetch.sh installs it")
	}
	d := filledDemo(t)
	mortal := startMortal(t)
	folder := ""
	if *pictures {
		if folder, err = filepath.Abs(filepath.Join("..", "..", "docs", "pictures")); err != nil {
			t.Fatal(err)
		}
	}
	input, err := json.Marshal(map[string]string{
		"pictures": folder, "base": d.base, "key": d.key, "hostile": serveHostile(t), "mortal": mortal.base, "executable": chromium, "shots": os.Getenv(shotsVariable),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	driver := exec.CommandContext(ctx, "node", "browser.mjs", string(input))
	driver.Dir, driver.Stderr = tools, os.Stderr
	orders, err := driver.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	watched := mortal.watch(t)
	done := false
	for lines := bufio.NewScanner(output); lines.Scan(); {
		var line struct {
			Fault, Ask, Figure string
			Value              float64
			Done               bool
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("the driver says %q", lines.Text())
			continue
		}
		switch {
		case line.Fault != "":
			t.Error(line.Fault)
		case line.Figure != "":
			t.Logf("%s: %g", line.Figure, line.Value)
		case line.Ask == "disconnect":
			if out, err := mortal.command("sim", "faults", "--venue", "kraken", "--fault", "disconnect", "--for", "10m"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		case line.Ask == "kill":
			watched.until(t, ` USD`)
			mortal.kill(t)
		case line.Ask == "start":
			mortal.start(t)
		case line.Ask == "end":
			watched.until(t, `(?s)connection is lost.*resumed: the newest prices of the \d+ s that were missed.* USD  [+-]`)
			mortal.kill(t)
		}
		if line.Ask != "" {
			fmt.Fprintln(orders, "done")
		}
		done = done || line.Done
	}
	if err := driver.Wait(); err != nil || !done {
		t.Errorf("the driver ended before it had seen everything: %v", err)
	}
}

// mortal is an instance that is killed. It has the shared demo's program.
type mortal struct {
	*demo
	arguments []string
}

func startMortal(t *testing.T) *mortal {
	t.Helper()
	folder, err := os.MkdirTemp("", "mortal") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	listen, sql := deploytest.FreeAddr(t), deploytest.FreeAddr(t)
	m := &mortal{demo: &demo{base: "http://" + listen, sql: "http://" + sql, dir: filepath.Join(folder, "data"), binary: theDemo.demo.binary}}
	m.arguments = []string{"run", "--feeds", "sim", "--data-dir", m.dir, "--listen", listen, "--sql-listen", sql, "--kafka-listen", deploytest.FreeAddr(t)}
	m.start(t)
	t.Cleanup(func() {
		m.kill(t)
		os.RemoveAll(folder)
	})
	return m
}

// start runs it until it has prices.
func (m *mortal) start(t *testing.T) {
	t.Helper()
	m.process = exec.Command(m.binary, m.arguments...)
	m.process.Env = append(os.Environ(), "MARKETLOG_BACKFILL_ENABLED=false")
	log, err := os.Create(m.dir + ".log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	m.process.Stdout, m.process.Stderr = log, log
	if err := m.process.Start(); err != nil {
		t.Fatal(err)
	}
	process := m.process
	m.ended = make(chan error, 1)
	go func(ended chan<- error) { ended <- process.Wait() }(m.ended)
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(100 * time.Millisecond) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.base+"/coins/bitcoin", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the instance shows no price: %v\n%s", err, m.logEnd())
		}
	}
}

// watching is a `marketlog watch` that runs, and what it has printed.
type watching struct{ printed string }

// watch follows a price of the instance in a terminal, beside the page.
func (m *mortal) watch(t *testing.T) *watching {
	t.Helper()
	w := &watching{filepath.Join(filepath.Dir(m.dir), "watch")}
	out, err := os.Create(w.printed)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	command := exec.Command(m.binary, "watch", "BTC", "--data-dir", m.dir)
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(command.Process.Signal(os.Interrupt), command.Wait()); err != nil {
			t.Errorf("interrupted, the watch ends with %v", err)
		}
	})
	return w
}

// until waits until it has printed something.
func (w *watching) until(t *testing.T, pattern string) {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(w.printed)
		if err != nil {
			t.Fatal(err)
		}
		if wanted.Match(text) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("the watch prints\n%s\nwant %s", text, pattern)
			return
		}
	}
}

func (m *mortal) kill(t *testing.T) {
	t.Helper()
	if err := m.process.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("killing the instance: %v", err)
	}
	m.ended <- <-m.ended
}

// serveHostile serves the pages of coins whose sources mean no good.
func serveHostile(t *testing.T) (base string) {
	t.Helper()
	const evil = `</script><img src=x onerror=alert(1) onload=harmed=true>\u202e<svg onload=alert(1)>`
	answers := map[string]string{
		"/api/v1/coins/markets listCoinMarketTable": `{"data":[{"id":"evil","symbol":"<b>","name":"EVIL","currentPrice":1,"priceSource":"EVIL","sparkline7d":[1]}],"meta":{}}`,
		"/api/v1/global-stats/summary getMarketSummary": `{"data":{"totalMarketCapUsd":1,"volume24hUsd":1,"btcDominance":1,"ethDominance":1,"metrics":{"dominance":{"EVIL":50},"activeCoins":1,"activeMarkets":1,"stablecoinMarketCap":1,"stablecoinDominance":1},` +
			`"movers":{"data":[{"rankRange":"1-50","gainers":[{"id":"evil","symbol":"EVIL","name":"EVIL","price":1,"priceChange24h":1}],"losers":[]}]},"sentiment":{"data":[]},"fearGreed":{"value":1,"classification":"EVIL","source":"EVIL","attribution":"EVIL","updatedAt":"2026-11-20T00:00:00Z","history":[]}}}`,
		"/api/v1/rates/summary summarizeRates": `{"data":{"summary":[{"symbol":"EVIL","coinId":"EVIL","category":"lending","minRate":1,"maxRate":1,"medianRate":1,"providerCount":1}]}}`,
		"/api/v1/rates/{symbol} getRates": `{"data":{"symbol":"EVIL","coinId":"evil","rates":[{"id":"EVIL","provider":"EVIL","providerName":"EVIL","category":"lending","rate":1,"lastUpdated":"2026-11-20T10:00:00Z",` +
			`"metadata":{"source":"EVIL","chain":"EVIL","name":"EVIL","term":"EVIL","raw":"EVIL","rawUnit":"EVIL","compounding":"EVIL"}}]}}`,
		"/api/v1/earn/benchmark getEarnBenchmark":          `{"data":{"asOf":"2026-11-20T10:00:00Z","median":1,"providerCount":1,"cefi":{},"defi":{}}}`,
		"/api/v1/earn/products listEarnProducts":           `{"products":[{"productId":"EVIL","provider":"EVIL","providerName":"EVIL","category":"lending","status":"open","variants":[{"variantId":"EVIL","status":"open","rate":1,"maxRate":1,"term":"EVIL","promo":true,"verifiedAt":"2026-11-20T10:00:00Z","source":"EVIL","name":"EVIL"}]}]}`,
		"/api/v1/stablecoins/index listStablecoins":        `{"stablecoins":[{"id":"evil","symbol":"EVIL","name":"EVIL","price":1,"pegDeviation":1,"marketCap":1,"pegCurrency":"EVIL","pegMechanism":"EVIL","isDepegged":false,"isStale":false}],"meta":{"attributions":["EVIL"]}}`,
		"/api/v1/global-stats/defi getDefiOverview":        `{"data":{"totalTvl":1,"lendingTvl":1,"stakingTvl":1,"borrowingTvl":1,"cefiTvl":1,"protocolCount":1}}`,
		"/api/v1/global-stats/defi/lending getDefiLending": `{"data":{"topProtocols":[{"slug":"EVIL","name":"EVIL","tvl":1}]}}`,
		"/api/v1/global-stats/defi/staking getDefiStaking": `{"data":{"topProtocols":[{"slug":"EVIL","name":"EVIL","tvl":1}]}}`,
		"/api/v1/prices listPrices":                        `{"prices":[]}`,
		"/api/v1/coins/{coinId} getCoin": `{"data":{"id":"evil","symbol":"<b>","name":"EVIL","description":"EVIL","homepage":"javascript:alert(1)","categories":["EVIL"],"platforms":{"EVIL":"EVIL"},` +
			`"attribution":[{"source":"x","name":"EVIL","url":"javascript:alert(1)","license":"EVIL","text":"EVIL"},{"source":"y","name":"EVIL","url":"data:text/html,EVIL"},{"source":"z","name":"EVIL","url":"http://evil.example/"}]}}`,
		"/api/v1/prices/{symbol}/explain explainPrice": `{"data":{"price":1,"confidence":1,"confidenceInterval":[0.9,1.1],"score":1,"timestamp":"2026-11-20T10:00:05.000Z","accepted":["EVIL"],"rejected":["EVIL"],"reproduced":true,"inputs":[` +
			`{"provider":"EVIL","venueSymbol":"EVIL","priceUsd":1,"accepted":true,"ageMs":1,"offset":{"topic":"EVIL","partition":0,"offset":0}},{"provider":"EVIL","venueSymbol":"EVIL2","accepted":false,"reason":"EVIL","ageMs":1,"offset":{"topic":"t","partition":0,"offset":0}}]}}`,
		"/api/v1/coins/{coinId}/markets listCoinMarkets": `{"markets":[{"exchange":"EVIL","pair":"EVIL","venueSymbol":"EVIL","price":1,"volume24h":1}]}`,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pepper := keys.NewPepper()
	table, err := keys.NewTable(pepper, func() string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	shown, err := pages.New(pages.Config{Listen: listener.Addr().String(), Automatic: true, Version: "test"}, pages.Deps{Pepper: pepper, Keys: table, Links: pages.NewLinks(time.Now)})
	if err != nil {
		t.Fatal(err)
	}
	var endpoints []query.Endpoint
	for operation, text := range answers {
		path, id, _ := strings.Cut(operation, " ")
		e := query.Endpoint{Method: http.MethodGet, Path: path, ID: id, Tag: "test", Summary: "A test.", Body: struct{}{}, Hot: true,
			Handle: func(context.Context, *query.Request) (query.Answer, error) {
				return query.Answer{Body: query.RawBody([]byte(strings.ReplaceAll(text, "EVIL", evil)))}, nil
			}}
		for _, name := range []string{"coinId", "symbol"} {
			if strings.Contains(path, "{"+name+"}") {
				e.Params = append(e.Params, query.CoinParam(name, query.Path, "bitcoin"))
			}
		}
		endpoints = append(endpoints, e)
	}
	cfg := query.DefaultConfig()
	cfg.Listen = listener.Addr().String()
	server, err := query.NewServer(cfg, query.Deps{Keys: table, Sessions: shown, Limiter: limits.NewLimiter(time.Now, nil), Plans: limits.DefaultPlans(), Endpoints: endpoints,
		Mount: func(r fiber.Router, s *query.Server) { shown.Mount(r, s) },
		Now:   time.Now, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Listener: listener, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("running the server: %v", err)
		}
	})
	return "http://" + listener.Addr().String()
}
