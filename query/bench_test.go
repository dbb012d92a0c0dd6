package query_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/keys"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

const (
	loadVariable    = "MARKETLOG_LOAD"
	loadConnections = 64
	loadFor         = 2 * time.Second
	rounds          = 5
)

// TestMain makes the test's binary its own load generator: a process of its own, so that what it
// costs is not the server's.
func TestMain(m *testing.M) {
	if target := os.Getenv(loadVariable); target != "" {
		fmt.Println(load(target, os.Getenv(loadVariable+"_KEY")))
		return
	}
	os.Exit(m.Run())
}

// load asks for one address on many connections, each waiting for its answer, and returns the
// answers a second.
func load(target, key string) float64 {
	host, path, _ := strings.Cut(target, "/")
	request := []byte("GET /" + path + " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + key + "\r\n\r\n")
	var answers atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range loadConnections {
		all.Go(func() {
			conn, err := net.Dial("tcp", host)
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			in := bufio.NewReaderSize(conn, 16<<10)
			for time.Since(start) < loadFor {
				if _, err := conn.Write(request); err != nil {
					panic(err)
				}
				if err := answer(in); err != nil {
					panic(err)
				}
				answers.Add(1)
			}
		})
	}
	all.Wait()
	return float64(answers.Load()) / time.Since(start).Seconds()
}

// answer reads one answer, which must be a success. It looks at the head as a whole: a load that took
// each header by itself would charge the server for the load's own work.
func answer(in *bufio.Reader) error {
	if _, err := in.Peek(1); err != nil {
		return err
	}
	head, err := in.Peek(in.Buffered())
	if err != nil {
		return err
	}
	end := bytes.Index(head, []byte("\r\n\r\n"))
	for end < 0 {
		if head, err = in.Peek(len(head) + 1); err != nil {
			return fmt.Errorf("reading a head of over %d bytes: %w", len(head), err)
		}
		end = bytes.Index(head, []byte("\r\n\r\n"))
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200")) {
		return fmt.Errorf("answered %s", head)
	}
	_, after, found := bytes.Cut(head[:end+2], []byte("Content-Length: "))
	digits, _, whole := bytes.Cut(after, []byte("\r\n"))
	length, err := strconv.Atoi(string(digits))
	if !found || !whole || err != nil {
		return fmt.Errorf("answered without a length: %s", head[:end])
	}
	_, err = in.Discard(end + 4 + length)
	return err
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
	bare := bareServer(b, body)
	for b.Loop() {
		var full, limit, ratio, fullCPU, limitCPU []float64
		for range rounds {
			rate, cpu := measure(b, bare, key)
			limit, limitCPU = append(limit, rate), append(limitCPU, cpu)
			rate, cpu = measure(b, base, key)
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

// measure returns the answers a second, and what each cost this process in microseconds of CPU: the
// figure to trust while the machine does other work.
func measure(b *testing.B, base, key string) (rate, cpu float64) {
	b.Helper()
	before := spent(b)
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env = append(os.Environ(), loadVariable+"="+base+"/api/v1/prices/BTC", loadVariable+"_KEY="+key)
	out, err := command.Output()
	if err != nil {
		b.Fatalf("running the load: %v", err)
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		b.Fatalf("the load printed %q: %v", out, err)
	}
	return n, float64((spent(b) - before).Microseconds()) / (n * loadFor.Seconds())
}

// spent is the CPU time of this process, without its children's.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func bareServer(b *testing.B, body []byte) string {
	b.Helper()
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/api/v1/prices/:symbol", func(c *fiber.Ctx) error {
		c.Context().Response.Header.SetContentType("application/json")
		c.Context().Response.SetBodyRaw(body)
		return nil
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- app.Listener(listener) }()
	b.Cleanup(func() {
		if err := app.Shutdown(); err != nil {
			b.Error(err)
		}
		<-done
	})
	return listener.Addr().String()
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
		table.Apply(&eventsv1.KeyRecord{Id: id, Hash: hash[:], Plan: query.PlanEnterprise, Budget: id})
	}
	now := time.Now()
	board := query.NewBoard(schemas.Coins())
	inputs := []*eventsv1.PriceInput{{Provider: "kraken", Symbol: "BTC/USD", QuoteId: "USD", Last: 100_000, LastHeard: now.UnixNano(), Rate: 1}}
	result, inputs := schemas.Aggregate(inputs, now.UnixNano())
	if err := board.Apply(stream.TailRecord{Marked: &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{
		CoinId: "bitcoin", Time: now.UnixNano(), Price: result.Price, Min: result.Min, Max: result.Max, Accepted: 1, Inputs: inputs,
	}}}}); err != nil {
		b.Fatal(err)
	}
	plans := query.DefaultPlans()
	enterprise := plans[query.PlanEnterprise]
	enterprise.PerMinute, enterprise.PerMonth = 1_000_000_000, 1_000_000_000_000
	plans[query.PlanEnterprise] = enterprise
	cfg := query.DefaultConfig()
	cfg.Listen = "127.0.0.1:0"
	server, err := query.NewServer(cfg, query.Deps{
		Keys: table, Limiter: query.NewLimiter(time.Now, nil), Plans: plans, Endpoints: prices.New(board, query.NewRates(), nil, nil).Endpoints(),
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
