package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/diskguard"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// pastVenue is a Coinbase of two markets, whose candles are those of every interval of the last five years and more, and an OKX
// that lends two currencies.
type pastVenue struct {
	*httptest.Server
	calls atomic.Int64
	// onCall is called with the number of each call before it is answered; nil: nothing is.
	onCall func(n int64)
	// pages are calls for what was lent in the past.
	pages atomic.Int64
	// broken refuses all; stuck answers nothing until it is closed.
	broken atomic.Bool
	stuck  atomic.Pointer[chan struct{}]
	asked  chan struct{} // gets a value at each call, if there is room
}

func newPastVenue(t *testing.T) *pastVenue {
	v := &pastVenue{asked: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /products", func(w http.ResponseWriter, _ *http.Request) {
		if v.broken.Load() {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `[{"id":"SOL-USD","base_currency":"SOL","quote_currency":"USD","status":"online"},
			{"id":"USDT-USD","base_currency":"USDT","quote_currency":"USD","status":"online"}]`)
	})
	mux.HandleFunc("GET /products/{id}/candles", func(w http.ResponseWriter, r *http.Request) {
		if n := v.calls.Add(1); v.onCall != nil {
			v.onCall(n)
		}
		select {
		case v.asked <- struct{}{}:
		default:
		}
		if stuck := v.stuck.Load(); stuck != nil {
			select {
			case <-*stuck:
			case <-r.Context().Done():
			}
		}
		seconds, _ := strconv.Atoi(r.URL.Query().Get("granularity"))
		start, _ := time.Parse(time.RFC3339, r.URL.Query().Get("start"))
		end, _ := time.Parse(time.RFC3339, r.URL.Query().Get("end"))
		var rows []string
		for at := start; !at.After(end); at = at.Add(time.Duration(seconds) * time.Second) {
			rows = append(rows, fmt.Sprintf("[%d,1,3,2,2,5]", at.Unix()))
		}
		fmt.Fprintf(w, "[%s]", strings.Join(rows, ","))
	})
	lent := okxHours(time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC))
	mux.HandleFunc("GET /api/v5/finance/savings/lending-rate-history", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("ccy") {
			v.pages.Add(1)
		}
		lent(w, r)
	})
	v.Server = httptest.NewServer(mux)
	t.Cleanup(v.Close)
	return v
}

// charted is an instance whose only venue is v: it is read live, and gives no prices.
func (v *pastVenue) charted(t *testing.T) config.Config {
	t.Helper()
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	dir, err := os.MkdirTemp("", "past") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Feeds, cfg.Backfill.Sources = dir, "live", []string{"binance", "coinbase"}
	cfg.Listen, cfg.SQLListen, cfg.Kafka.Listen = deploytest.FreeAddr(t), deploytest.FreeAddr(t), deploytest.FreeAddr(t)
	for name := range cfg.Venues {
		cfg.Venues[name] = config.VenueConfig{}
	}
	for name := range cfg.Sources {
		cfg.Sources[name] = config.SourceConfig{Enabled: "false"}
	}
	cfg.Venues["coinbase"] = config.VenueConfig{Enabled: true, WSURL: "ws://127.0.0.1:1", RESTURL: v.URL}
	return cfg
}

// lives runs an instance in this process until it is stopped.
func lives(t *testing.T, cfg config.Config, log *slog.Logger) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- roles.Run(ctx, cfg, "run", io.Discard, log) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// backfilled waits until /readyz waits for no back-fill any more, and returns what it waits for then.
func backfilled(t *testing.T, cfg config.Config) map[string][]string {
	t.Helper()
	var body struct {
		Error struct{ Errors map[string][]string }
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if answer, err := http.Get("http://" + cfg.Listen + "/readyz"); err == nil {
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			body.Error.Errors = nil
			if err := json.Unmarshal(text, &body); err != nil {
				t.Fatalf("/readyz answers %d %s", answer.StatusCode, text)
			}
			missing := body.Error.Errors
			// The server itself must be there: its substitute knows of no back-fill.
			if len(missing["backfill"])+len(missing["instance"])+len(missing["query/api"])+len(missing["server"]) == 0 {
				return missing
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %v", body.Error.Errors)
		}
	}
}

// ask reads one value of the views.
func ask(t *testing.T, cfg config.Config, statement string) string {
	t.Helper()
	answer, err := http.Get("http://" + cfg.SQLListen + "/?" + url.Values{"query": {statement}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", statement, answer.StatusCode, text, err)
	}
	return strings.TrimSpace(string(text))
}

// The first start reads what charts show, and is ready when the views have it; the next one asks for the minutes of its
// absence at most.
func TestStartReadsWhatChartsShow(t *testing.T) {
	venue := newPastVenue(t)
	cfg := venue.charted(t)
	cfg.Backfill.Sources = append(cfg.Backfill.Sources, "okx-earn")
	cfg.Sources["okx-earn"] = config.SourceConfig{Enabled: "true", URL: venue.URL, Requests: 1000}
	stop := lives(t, cfg, deploytest.Quiet)
	if missing := backfilled(t, cfg); len(missing["prices"]) == 0 {
		t.Errorf("without a price the instance waits for %v, want the prices among them", missing)
	}
	const count = "SELECT groupArray((symbol, seconds, n)) FROM (SELECT symbol, seconds, count() n, uniqExact(start) FROM v_backfill GROUP BY ALL ORDER BY ALL)"
	const doubled = "SELECT count() FROM (SELECT symbol, seconds, start FROM v_backfill GROUP BY ALL HAVING count() > 1)"
	first := ask(t, cfg, count)
	days := int(time.Now().UTC().Truncate(24*time.Hour).Sub(time.Now().Add(-operations.BackfilledPast)).Hours() / 24)
	if want := fmt.Sprintf("('SOL-USD',86400,%d)", days); !strings.Contains(first, want) {
		t.Errorf("the view holds %s, want %s", first, want)
	}
	for _, part := range []string{"('USDT-USD',86400,", "('SOL-USD',3600,7", "('SOL-USD',60,14", "('USDT-USD',3600,7", "('USDT-USD',60,14"} {
		if !strings.Contains(first, part) {
			t.Errorf("the view holds %s, want %s…", first, part)
		}
	}
	if calls := venue.calls.Load(); calls < 2*15 || calls > 2*16 {
		t.Errorf("the venue was asked %d times, want some 15 for each of two markets", calls)
	}
	const lent = "SELECT groupArray((coin_id, category, n)) FROM (SELECT coin_id, category, count() n FROM v_rates_hourly WHERE origin = 'backfill' GROUP BY ALL ORDER BY ALL)"
	hours := ask(t, cfg, lent)
	for _, part := range []string{"('ripple','borrowing',7", "('ripple','lending',7", "('usd-coin','borrowing',7", "('usd-coin','lending',7"} { // 720, less the one that is read live
		if !strings.Contains(hours, part) {
			t.Errorf("the view of rates holds %s, want %s…", hours, part)
		}
	}
	if pages := venue.pages.Load(); pages != 2*8 {
		t.Errorf("the past of two currencies was asked for in %d calls, want 16", pages)
	}
	stop()

	venue.calls.Store(0)
	venue.pages.Store(0)
	stop = lives(t, cfg, deploytest.Quiet)
	backfilled(t, cfg)
	if calls := venue.calls.Load(); calls > 2 {
		t.Errorf("after a second the venue is asked %d times, want once for each market's last minutes at most", calls)
	}
	if pages := venue.pages.Load(); pages > 2 {
		t.Errorf("after a second the past of two currencies is asked for in %d calls, want once for the last hour of each at most", pages)
	}
	if got := ask(t, cfg, doubled); got != "0" {
		t.Errorf("%s candles are there twice", got)
	}
	stop()
}

// A venue that does not answer costs a charts' past, not the service; what is missing can be seen, and filled later.
func TestVenueThatIsDownDelaysNoStart(t *testing.T) {
	venue := newPastVenue(t)
	venue.broken.Store(true)
	cfg := venue.charted(t)
	var logged syncBuffer
	stop := lives(t, cfg, slog.New(slog.NewTextHandler(&logged, nil)))
	backfilled(t, cfg)
	if text := logged.String(); strings.Count(text, "backfill failed") != operations.OwnTries-1 || !strings.Contains(text, "chart history has gaps") {
		t.Errorf("the log says %s, want %d tries and the gaps", text, operations.OwnTries)
	}
	venue.broken.Store(false)
	var out bytes.Buffer
	app := command.Runtime{Stdout: &out, Stderr: &out, Env: []string{"MARKETLOG_DATA_DIR=" + cfg.DataDir}}
	if code := Execute(t.Context(), &app, []string{"gaps"}); code != 0 {
		t.Errorf("gaps exits with %d: %s", code, &out)
	}
	for _, want := range []string{"coinbase USDT-USD 1d: ", "coinbase SOL-USD 1h: ", "coinbase SOL-USD 1m: ", " missing, "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("gaps prints\n%s\nwant %q in it", &out, want)
		}
	}
	stop()
}

// Stopping does not wait for a venue, and neither does --cancel, which makes the instance ready.
func TestOwnBackfillIsEndedLikeAnother(t *testing.T) {
	venue, next := newPastVenue(t), newPastVenue(t) // of the second life, which calls of the first must not be taken for
	never := make(chan struct{})
	venue.stuck.Store(&never)
	next.stuck.Store(&never)
	cfg := venue.charted(t)
	stop := lives(t, cfg, deploytest.Quiet)
	<-venue.asked
	began := time.Now()
	stop()
	if took := time.Since(began); took > time.Minute { // a call may take some minutes
		t.Errorf("stopping took %v beside a venue that does not answer", took)
	}

	coinbase := cfg.Venues["coinbase"]
	coinbase.RESTURL = next.URL
	cfg.Venues["coinbase"] = coinbase
	stop = lives(t, cfg, deploytest.Quiet)
	<-next.asked
	var out bytes.Buffer
	app := command.Runtime{Stdout: &out, Stderr: &out, Env: []string{"MARKETLOG_DATA_DIR=" + cfg.DataDir}}
	if code := Execute(t.Context(), &app, []string{"backfill", "--source", "coinbase"}); code == 0 || !strings.Contains(out.String(), "--attach") {
		t.Errorf("a second back-fill exits with %d: %s, want a hint at the running one", code, &out)
	}
	out.Reset()
	if code := Execute(t.Context(), &app, []string{"backfill", "--cancel"}); code != 0 || !strings.Contains(out.String(), "continues where it stopped") {
		t.Errorf("cancelling exits with %d: %s", code, &out)
	}
	backfilled(t, cfg)
	stop()
}

// A back-fill waits while the disk is nearly full, its venue unasked, and goes on by itself when there is room: nothing is
// missing then.
func TestBackfillWaitsForRoom(t *testing.T) {
	venue := newPastVenue(t)
	cfg := venue.charted(t)
	in, err := instance.OpenInstance(t.Context(), cfg, deploytest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	free := atomic.Int64{}
	free.Store(1 << 40)
	in.Disk = diskguard.New(diskguard.Config{Dir: cfg.DataDir, Reserve: config.MinReserveBytes, Space: func(string) (diskguard.Space, error) {
		return diskguard.Space{Free: free.Load(), Total: 1 << 41}, nil
	}})
	const full, inFlight = 5, 4 // the call after which the disk has no room, and how many there are at a time
	waiting := make(chan struct{})
	venue.onCall = func(n int64) {
		if n == full {
			free.Store(0)
			in.Disk.Look()
			close(waiting)
		}
	}
	ended := make(chan error, 1)
	go func() {
		verb := operations.InstanceVerbs(in)["backfill"]
		ended <- verb.Run(t.Context(), []byte(`{"own":true}`), func(any) error { return nil })
	}()
	<-waiting
	select {
	case err := <-ended:
		t.Fatalf("without room the back-fill ended: %v", err)
	case <-time.After(time.Second): // at its pace it would have called some more times
	}
	// Calls that wait for their turn in the venue's budget are made.
	if calls := venue.calls.Load(); calls >= full+inFlight {
		t.Errorf("without room the venue was asked %d times, want %d and those that were on their way", calls, full)
	}
	free.Store(1 << 40)
	in.Disk.Look()
	if err := <-ended; err != nil {
		t.Errorf("with room again the back-fill ends with %v", err)
	}
	if calls := venue.calls.Load(); calls < 2*15 || calls > 2*16 {
		t.Errorf("the venue was asked %d times, want some 15 for each of two markets", calls)
	}
}

// What quotes are worth comes first, and of each coin the market that needs the fewest conversions.
func TestChartedMarketsBeginWithQuotes(t *testing.T) {
	market := func(base, quote string) adapter.Instrument {
		return adapter.Instrument{Symbol: base + "-" + quote, Base: base, Quote: quote}
	}
	list := []adapter.Instrument{
		market("SOL", "USDT"), market("DOGE", "USDT"), market("DOGE", "BTC"), market("NOBODYKNOWS", "USD"), market("BTC", "USDT"),
		market("USDT", "USD"), market("SOL", "USD"), market("BTC", "USD"), market("ETH", "XYZ"), market("EUR", "USD"), market("EUR", "USDT"),
	}
	var got []string
	known := map[string]bool{"SOL-USDT": true, "SOL-USD": true}
	for _, m := range operations.ChartedMarkets("coinbase", list, 10, known) {
		got = append(got, m.Symbol)
	}
	if few := operations.ChartedMarkets("coinbase", list, 2, known); len(few) != 4 || few[1].Symbol != "BTC-USD" {
		t.Errorf("of two markets and two known ones, got %v", few)
	}
	if want := "EUR-USD BTC-USD USDT-USD SOL-USD DOGE-USDT SOL-USDT"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}

// Of a source's series the best known of each coin and category come first, by the rank of the coin, and known ones last.
func TestOwnSeriesBeginWithTheBestKnownCoins(t *testing.T) {
	series := func(id, coin, category string) poll.Series {
		return poll.Series{ID: id, Coin: coin, Category: category}
	}
	listed := []poll.Series{
		series("steth", "ethereum", "staking"), series("reth", "ethereum", "staking"), series("usdc", "usd-coin", "lending"), series("weth", "ethereum", "lending"),
		series("nobody knows", "", ""), series("btc", "bitcoin", "lending"),
	}
	for i := range operations.OwnSeries {
		listed = append(listed, series(fmt.Sprint(i), "ethereum", "lending"))
	}
	got := operations.OwnPicked(listed, map[string]bool{"20": true, "3": true})
	var ids []string
	for _, s := range got {
		ids = append(ids, s.ID)
	}
	if want := "btc steth weth usdc reth nobody knows 0 1"; len(got) != operations.OwnSeries+1 || !strings.HasPrefix(strings.Join(ids, " "), want) || ids[operations.OwnSeries] != "20" {
		t.Errorf("got %d series, %q, want %s first and 20 last", len(got), ids, want)
	}
}

// What fits is what the venue's budget allows: five calls a market at a thousand candles a call.
func TestChartedMarketsFitIntoTheTime(t *testing.T) {
	in := &instance.Instance{Config: config.DefaultConfig()}
	for rows, want := range map[int]int{1000: 88, 300: 29, 720: 73} {
		if got := operations.ChartedMost(in, &adapter.History{Rows: rows}, 5); got != want {
			t.Errorf("at 5 calls a second of %d candles: %d markets, want %d", rows, got, want)
		}
	}
}

// An accelerated run's time would pass while it asks.
func TestAcceleratedRunReadsNoPast(t *testing.T) {
	cfg := config.DefaultConfig()
	cfg.Venues["binance"] = config.VenueConfig{Enabled: true, RESTURL: "http://127.0.0.1:1"}
	cfg.Sources["lido"] = config.SourceConfig{Enabled: config.SourceAuto, URL: "http://127.0.0.1:1"}
	for speed, want := range map[int]int{1: 2, 60: 0} {
		cfg.Sim.Speed = speed
		in := &instance.Instance{Config: cfg, Clock: instance.NewClock(cfg), Switches: &instance.SourceSwitches{}}
		if got := len(operations.OwnSources(in)); got != want {
			t.Errorf("at speed %d: %d sources, want %d", speed, got, want)
		}
	}
	cfg.Sim.Speed, cfg.Backfill.Enabled = 1, false
	if got := operations.OwnSources((&instance.Instance{Config: cfg, Clock: instance.NewClock(cfg)})); len(got) != 0 {
		t.Errorf("switched off: %v", got)
	}
}

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
