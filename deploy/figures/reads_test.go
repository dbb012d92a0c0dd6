package figures

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
)

// readRounds is how often each read is measured beside its limit; the middle ratio counts.
const readRounds = 5

// wide are plans with the largest limit that there is, which two seconds of load do not fill.
const wide = `free: {per_minute: 30, per_month: 10000, history_days: 7, sockets: 1}
pro: {per_minute: 300, per_month: 1000000, history_days: 1825, sockets: 20}
enterprise: {per_minute: 1000000, per_month: 0, charts_per_minute: 1000000, history_days: 1825, sockets: 100, bulk: true, mcp: true}
`

// BenchmarkDoors asks how much of what a bare handler of the same bytes answers is left to hot reads of the whole binary, with
// its key check and limits, and how much of a read over REST to the same one over MCP. It was fed by the simulator until its
// views were full, and rests while it is asked.
func BenchmarkDoors(b *testing.B) {
	plans := filepath.Join(b.TempDir(), "plans.yaml")
	if err := os.WriteFile(plans, []byte(wide), 0o600); err != nil {
		b.Fatal(err)
	}
	binary := build(b)
	in := newInstance(b, binary, "MARKETLOG_PLANS_FILE="+plans)
	p := in.start(b, "sim")
	in.await(b, p, "/readyz", time.Now())
	for _, path := range []string{"/api/v1/coins/top", "/api/v1/rates/ETH", "/api/v1/fiat", "/api/v1/global-stats/summary"} {
		in.awaitFilled(b, path)
	}
	p.stop()
	in.environment = append(in.environment, "MARKETLOG_AUTH_MODE=required") // the last word counts
	p = in.start(b, "none")
	in.await(b, p, "/readyz", time.Now())
	// fresh is a key whose limit nobody has used, known to the server, and what a path answers to it.
	fresh := func(path string) (key string, body []byte) {
		key = in.key(b)
		return key, in.read(b, path, key)
	}

	for name, path := range map[string]string{
		"price": "/api/v1/prices/BTC", "top coins": "/api/v1/coins/top", "rates": "/api/v1/rates/ETH", "global summary": "/api/v1/global-stats/summary",
		"fiat": "/api/v1/fiat",
	} {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			key, body := fresh(path)
			bare := querytest.Bare(b, path, body)
			compare(b, "bare-req/s", func() float64 { rate, _ := querytest.Measure(b, bare, path, key); return rate },
				func() float64 {
					key, _ := fresh(path)
					rate, _ := querytest.Measure(b, in.rest, path, key)
					return rate
				})
		})
	}
	b.Run("price_beside_statements", func(b *testing.B) {
		const path = "/api/v1/prices/BTC"
		rate := func() float64 {
			key, _ := fresh(path)
			rate, _ := querytest.Measure(b, in.rest, path, key)
			return rate
		}
		compare(b, "alone-req/s", rate, func() float64 {
			stop := in.readOn(b, "SELECT coin_id, max(price) FROM v_prices GROUP BY coin_id FORMAT Null")
			defer stop()
			return rate()
		})
	})
	b.Run("mcp", func(b *testing.B) {
		const path, call = "/api/v1/prices?symbols=btc&view=tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_price","arguments":{"symbols":["btc"]}}}`
		compare(b, "rest-req/s", func() float64 {
			key, _ := fresh(path)
			rate, _ := querytest.Measure(b, in.rest, path, key)
			return rate
		}, func() float64 {
			key, _ := fresh(path)
			rate, _ := querytest.MeasurePosts(b, in.rest, "/mcp", key, call)
			return rate
		})
	})
}

// compare measures in turns, and reports the rates, and the middle of their ratios as of-limit.
func compare(b *testing.B, unit string, limit, full func() float64) {
	b.Helper()
	for b.Loop() {
		var ratios, rates, limits []float64
		for range readRounds {
			limits = append(limits, limit())
			rates = append(rates, full())
			ratios = append(ratios, rates[len(rates)-1]/limits[len(limits)-1])
		}
		b.ReportMetric(middle(rates), "req/s")
		b.ReportMetric(middle(limits), unit)
		b.ReportMetric(middle(ratios), "of-limit")
	}
}

// readOn asks the SQL port a statement again and again until the returned function is called.
func (in *instance) readOn(b *testing.B, statement string) (stop func()) {
	b.Helper()
	over, ended := make(chan struct{}), make(chan struct{})
	ask := func() {
		answer, err := http.Post("http://"+in.sql, "text/plain", strings.NewReader(statement))
		if err != nil {
			b.Errorf("%s: %v", statement, err)
			return
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			b.Errorf("%s: got %d %.200s %v", statement, answer.StatusCode, text, err)
		}
	}
	ask() // the first starts the process that runs them
	go func() {
		defer close(ended)
		for !b.Failed() {
			select {
			case <-over:
				return
			default:
				ask()
			}
		}
	}()
	return func() { close(over); <-ended }
}

// awaitFilled asks for a path until its answer has some size.
func (in *instance) awaitFilled(b *testing.B, path string) {
	b.Helper()
	for began := time.Now(); ; pause(b.Context(), time.Now().Add(time.Second)) {
		answer, err := http.Get("http://" + in.rest + path)
		if err == nil {
			n, _ := io.Copy(io.Discard, answer.Body) // what is short is asked for again
			answer.Body.Close()
			if n > 1000 && answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Since(began) > 5*patience {
			b.Fatalf("%s was not filled within %s", path, 5*patience)
		}
	}
}

// key makes one of the plan enterprise.
func (in *instance) key(b *testing.B) string {
	b.Helper()
	command := exec.CommandContext(b.Context(), in.binary, "keys", "create", "--plan", "enterprise", "-o", "json", "--data-dir", in.dir)
	command.Env = append(os.Environ(), in.environment...)
	out, err := command.Output()
	var made struct{ Key string }
	if err == nil {
		err = json.Unmarshal(out, &made)
	}
	if err != nil || made.Key == "" {
		b.Fatalf("making a key: %v, %s", err, out)
	}
	return made.Key
}

// read returns an answer, which must be a success; a new key may take a moment.
func (in *instance) read(b *testing.B, path, key string) []byte {
	b.Helper()
	for began := time.Now(); ; pause(b.Context(), time.Now().Add(100*time.Millisecond)) {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+in.rest+path, nil)
		if err != nil {
			b.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err == nil && answer.StatusCode == http.StatusOK {
			return body
		}
		if time.Since(began) > patience {
			b.Fatalf("%s: %d %s %v", path, answer.StatusCode, body, err)
		}
	}
}
