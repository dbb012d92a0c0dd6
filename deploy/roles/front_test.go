package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// asked is the answer to a GET.
func asked(t *testing.T, client *http.Client, url string) (status int, body string) {
	t.Helper()
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// eventuallyAnswers waits for an answer.
func eventuallyAnswers(t *testing.T, url string, status int, part string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		gotStatus, got := asked(t, http.DefaultClient, url)
		if gotStatus == status && strings.Contains(got, part) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s answers %d %s, want %d with %q", url, gotStatus, got, status, part)
		}
	}
}

// Bodies that never end hold no connection of the ports that are no API's, though nobody reads them.
func TestBodiesThatDribbleEndConnections(t *testing.T) {
	p, err := openPort("metrics_listen", "127.0.0.1:0", deploytest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	p.arrival = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	none := func() map[string][]string { return nil }
	go func() {
		done <- p.serveHTTP(ctx, healthHandler(supervise.NewHealth(time.Now), none, prometheus.NewRegistry()))
	}()
	for _, path := range []string{"/metrics", "/healthz", "/nothing"} {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", path)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, conn)
		}()
		deadline := time.After(time.Minute)
		for open := true; open; {
			select {
			case <-ended:
				open = false
			case <-deadline:
				t.Errorf("%s: the connection is open after a minute", path)
				open = false
			case <-time.After(20 * time.Millisecond):
				_, _ = io.WriteString(conn, "x") // the server may have ended it
			}
		}
		conn.Close()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Whoever asks gets an answer, and keeps no connection to the one who only answers for another.
func TestAddressAnswersBeforeBetweenAndAfterItsServer(t *testing.T) {
	p, err := openPort("listen", "127.0.0.1:0", deploytest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	f, url := newFront(p), "http://"+p.addr
	answering := func(who string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, who) })
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.run(ctx, answering("fallback")); err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Timeout: time.Minute}
	expect := func(want string) {
		t.Helper()
		for range 3 {
			if _, got := asked(t, client, url); got != want {
				t.Errorf("answers %q, want %q", got, want)
			}
		}
	}
	expect("fallback")
	for _, who := range []string{"first", "second"} {
		listener := f.listen()
		server := &http.Server{Handler: answering(who)}
		running.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("serving %s: %v", who, err)
			}
		})
		expect(who)
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		expect("fallback")
	}
	cancel()
	running.Wait()
	if conn, err := net.Dial("tcp", p.addr); err == nil {
		conn.Close()
		t.Error("the address is still open at the end")
	}
}

// A log that takes long to open, or does not answer, is a reason not to be ready, and none not to be alive.
func TestHealthAnswersBeforeTheLogIsOpen(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, and never sends a byte
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cfg := config.DefaultConfig()
	cfg.DataDir = t.TempDir()
	cfg.Listen, cfg.MetricsListen, cfg.SQLListen = deploytest.FreeAddr(t), deploytest.FreeAddr(t), ""
	cfg.Kafka.Brokers = []string{silent.Addr().String()}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg, "run", io.Discard, deploytest.Quiet) }()
	for _, addr := range []string{cfg.Listen, cfg.MetricsListen} {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
		if status, body := asked(t, http.DefaultClient, "http://"+addr+"/healthz"); status != http.StatusOK {
			t.Errorf("/healthz of %s answers %d %s, want 200", addr, status, body)
		}
		if status, body := asked(t, http.DefaultClient, "http://"+addr+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "opening the log") {
			t.Errorf("/readyz of %s answers %d %s, want 503 and what is missing", addr, status, body)
		}
	}
	var body struct {
		Error struct{ Code, RequestID string }
	}
	status, text := asked(t, http.DefaultClient, "http://"+cfg.Listen+"/api/v1/prices/BTC")
	if err := json.Unmarshal([]byte(text), &body); err != nil || status != http.StatusServiceUnavailable || body.Error.Code != "STARTING" || body.Error.RequestID == "" {
		t.Errorf("a price is answered by %d %s, want 503 STARTING with a request id", status, text)
	}
	// What depends on no data is there, as it will be.
	for path, holds := range map[string]string{
		"/llms.txt": "http://" + cfg.Listen + "/docs/rest.md", "/llms-full.txt": "`GET /api/v1/prices/{symbol}`", "/docs": "# Documentation", "/docs/rest.md": "# REST", "/docs/queries/01-newest-prices.sql": "SELECT",
		"/openapi.json": `"operationId":"getPrice"`, "/asyncapi.json": `"candles:1m"`, "/schemas": "prices.v1",
	} {
		if status, body := asked(t, http.DefaultClient, "http://"+cfg.Listen+path); status != http.StatusOK || !strings.Contains(body, holds) {
			t.Errorf("%s answers %d %.300s, want 200 with %s", path, status, body, holds)
		}
	}
	// A browser gets pages: of the guides, and one that comes again by itself and says what it waits for.
	for path, want := range map[string]string{"/docs/api": "200 ", "/docs/rest": "200 ", "/": "503 1", "/coins/bitcoin": "503 1"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+cfg.Listen+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "text/html,*/*;q=0.8")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got := fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("Refresh")); err != nil || got != want || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") ||
			strings.HasPrefix(want, "503") && (!strings.Contains(string(page), "opening the log") || strings.Contains(string(page), "<script")) {
			t.Errorf("%s answers a browser %s %v %.300s, want %s", path, got, answer.Header, page, want)
		}
	}
	cancel()
	silent.Close() // else the client waits for its time-out
	<-done         // with or without an error: it was asked to stop, and its connection broke
}

// A role that ended is started again in its process: what it registered, opened and listened on is not an obstacle.
func TestQueryRoleComesBack(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	dir, err := os.MkdirTemp("", "back") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Feeds, cfg.Auth.Mode = dir, "none", "open"
	cfg.Listen, cfg.MetricsListen, cfg.SQLListen, cfg.Kafka.Listen = deploytest.FreeAddr(t), "", "", deploytest.FreeAddr(t)
	in, err := instance.OpenInstance(t.Context(), cfg, deploytest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := operations.Migrate(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	at, err := openPorts(cfg, "query", deploytest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	started, err := queryRoles(in, at, false, func() string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	health := supervise.NewHealth(time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	kill := make(chan struct{})
	api := started[0]
	alive := api.Run
	api.Run = func(ctx context.Context) error {
		ctx, die := context.WithCancel(ctx)
		defer die()
		go func() {
			select {
			case <-kill:
				die()
			case <-ctx.Done():
			}
		}()
		return alive(ctx)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := at.api.run(ctx, http.NotFoundHandler()); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() { supervise.Run(ctx, api, health, deploytest.Quiet) })
	defer running.Wait()
	defer cancel()

	metrics := httptest.NewServer(healthHandler(health, func() map[string][]string { return in.Missing(health) }, in.Metrics))
	defer metrics.Close()
	starting := httptest.NewServer(documentsWhileStarting(in, cfg.Listen))
	defer starting.Close()
	url := "http://" + cfg.Listen
	for life := range 3 {
		eventuallyAnswers(t, url+"/readyz", http.StatusOK, "ready")
		if report := health.Report()[0]; report.Restarts != life {
			t.Errorf("life %d: restarted %d times, the last time after %q", life, report.Restarts, report.Error)
		}
		// While it starts it describes itself as it does then.
		for _, path := range []string{"/openapi.json", "/asyncapi.json", "/llms-full.txt", "/mcp/tools.json?toolset=full", "/.well-known/mcp.json"} {
			status, body := asked(t, http.DefaultClient, url+path)
			earlyStatus, early := asked(t, http.DefaultClient, starting.URL+path)
			if status != http.StatusOK || earlyStatus != status || strings.ReplaceAll(early, starting.Listener.Addr().String(), cfg.Listen) != body {
				t.Errorf("life %d: %s is answered by %d, while it starts by %d, with as much: %v", life, path, status, earlyStatus, early == body)
			}
		}
		if _, body := asked(t, http.DefaultClient, metrics.URL+"/metrics"); !strings.Contains(body, "marketlog_http_request_duration_seconds") {
			t.Errorf("life %d: its metrics are not among\n%s", life, body)
		}
		if life < 2 {
			kill <- struct{}{}
			eventuallyAnswers(t, url+"/readyz", http.StatusNotFound, "")
		}
	}
}

// A start reads an hour of rows, the oldest first: none of them is answered but the newest, which was answered before.
func TestRowsAreAnsweredOnceTheLogIsRead(t *testing.T) {
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Feeds, cfg.Auth.Mode = t.TempDir(), "none", "open"
	cfg.Listen, cfg.MetricsListen, cfg.SQLListen, cfg.Kafka.Listen = deploytest.FreeAddr(t), "", "", deploytest.FreeAddr(t)
	in, err := instance.OpenInstance(t.Context(), cfg, deploytest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := operations.Migrate(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	const rows = 100_000
	end := time.Now().Truncate(time.Minute)
	producer, err := in.Stream.NewProducer()
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	write := func(at time.Time, index uint32, rec *eventsv1.MarketRecord) {
		rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: at.UnixNano(), Index: index}
		value, err := rec.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		producer.Produce(t.Context(), &kgo.Record{Topic: schemas.TopicMarkets, Value: value, Timestamp: at}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	for i := range int64(rows) {
		at := end.Add(time.Duration(i-rows+1) * 30 * time.Millisecond) // 50 minutes of rows
		write(at, 0, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{CoinId: "bitcoin", Symbol: "BTC", Time: at.UnixNano(), Price: float64(i + 1)}}})
		write(at, 1, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: at.UnixNano(), Watermark: at.UnixNano()}}})
	}
	if err := producer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	at, err := openPorts(cfg, "query", deploytest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	started, err := queryRoles(in, at, false, func() string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := at.api.run(ctx, http.NotFoundHandler()); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() { supervise.Run(ctx, started[0], supervise.NewHealth(time.Now), deploytest.Quiet) })
	defer running.Wait()
	defer cancel()
	for deadline := time.Now().Add(time.Minute); ; {
		status, body := asked(t, http.DefaultClient, "http://"+cfg.Listen+"/api/v1/coins/bitcoin")
		if status == http.StatusOK {
			if want := fmt.Sprintf(`"currentPrice":%d,`, rows); !strings.Contains(body, want) {
				t.Errorf("the first answer is %s, want %s", body, want)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still answered %d %s", status, body)
		}
	}
}
