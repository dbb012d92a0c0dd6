package backfill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/marketlog/marketlog/producers/adapter"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/outbox"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// now is when every test happens.
var now = time.Date(2026, 3, 1, 12, 34, 56, 0, time.UTC)

// stopped is a clock that does not advance.
type stopped struct{}

func (stopped) Now() time.Time { return now }
func (stopped) After(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- now
	return c
}

type fetcher struct{}

func (fetcher) Fetch(ctx context.Context, method, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	return io.ReadAll(response.Body)
}

// listed is when the scripted venue began to trade; the hour from three o'clock on the last day nobody traded.
var (
	listed = now.Add(-9 * day).Truncate(day)
	quiet  = now.Truncate(day).Add(3 * time.Hour)
)

func traded(start time.Time, interval time.Duration) bool {
	return !start.Before(listed) && (interval > time.Hour || !start.Truncate(time.Hour).Equal(quiet))
}

// coinbase answers as Coinbase does, the newest candle first; before is called with each request.
type coinbase struct {
	calls  atomic.Int64
	mu     sync.Mutex
	before func(n int, target string) bool
}

func (c *coinbase) script(before func(n int, target string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = before
}

func (c *coinbase) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target := r.URL.String()
	c.mu.Lock()
	before := c.before
	c.mu.Unlock()
	if n := int(c.calls.Add(1)); before != nil && !before(n, target) {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	q := r.URL.Query()
	seconds, _ := strconv.Atoi(q.Get("granularity"))
	interval := time.Duration(seconds) * time.Second
	start, _ := time.Parse(time.RFC3339, q.Get("start"))
	end, _ := time.Parse(time.RFC3339, q.Get("end"))
	var rows []string
	for at := end.Truncate(interval); !at.Before(start); at = at.Add(-interval) {
		if traded(at, interval) {
			rows = append(rows, fmt.Sprintf("[%d,1.5,3,2,2.50,%d]", at.Unix(), at.Unix()%97))
		}
	}
	if len(rows) > 300 {
		http.Error(w, "granularity too small for the requested time range", http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "[%s]", strings.Join(rows, ","))
}

func newJob(t interface{ Fatal(...any) }, broker, rest string) (*Job, *outbox.BackfillLog) {
	venue, _ := exchanges.Find("coinbase")
	log, err := outbox.NewBackfillLog(stream.Config{Brokers: []string{broker}, ClientID: "test"}, stopped{})
	if err != nil {
		t.Fatal(err)
	}
	return &Job{
		Venue: venue, REST: rest, Producer: "coinbase",
		Markets: []adapter.Instrument{{Symbol: "BTC-USD", Base: "BTC", Quote: "USD"}, {Symbol: "ETH-EUR", Base: "ETH", Quote: "EUR"}},
		From:    now.Add(-12 * day), To: now, Fetch: fetcher{}, Pace: 5, Log: log, Clock: stopped{},
	}, log
}

func broker(t *testing.T) string {
	t.Helper()
	addr := streamtest.Kfake(t)
	client, err := stream.Config{Brokers: []string{addr}}.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	topic, _ := schemas.TopicNamed(schemas.TopicBackfillRaw)
	if _, err := kadm.NewClient(client).CreateTopics(t.Context(), topic.Partitions, 1, nil, topic.Name); err != nil {
		t.Fatal(err)
	}
	return addr
}

// holdsAllOnce compares the topic with what the venue has: each closed candle once, with its values.
func holdsAllOnce(t *testing.T, j *Job, log *outbox.BackfillLog) {
	t.Helper()
	type key struct {
		symbol   string
		interval uint32
		start    int64
	}
	seen := map[key]int{}
	err := log.Read(t.Context(), func(rec *eventsv1.BackfillRecord) error {
		if c := rec.GetCandle(); c != nil {
			seen[key{c.Symbol, c.Interval, c.Start}]++
			want := fmt.Sprintf("2 3 1.5 2.5 %d", c.Start/1e9%97)
			if got := fmt.Sprintf("%s %s %s %s %s", c.Open, c.High, c.Low, c.Close, c.Volume); got != want {
				t.Errorf("candle %v has o h l c v %s, want %s", c, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, reach := range Reaches {
		for at := time.Unix(0, ceil(j.From, reach.Interval)); !at.Add(reach.Interval + settle).After(now); at = at.Add(reach.Interval) {
			if !traded(at, reach.Interval) || reach.Back > 0 && at.Before(now.Add(-reach.Back)) {
				continue
			}
			want++
			for _, m := range j.Markets {
				if n := seen[key{m.Symbol, uint32(reach.Interval / time.Second), at.UnixNano()}]; n != 1 {
					t.Errorf("the topic holds %d candles of %s, %s at %s, want 1", n, m.Symbol, reach.Interval, at.UTC())
				}
			}
		}
	}
	if len(seen) != want*len(j.Markets) {
		t.Errorf("the topic holds %d different candles, want %d", len(seen), want*len(j.Markets))
	}
}

// TestMain lets the test binary be a back-fill that is killed.
func TestMain(m *testing.M) {
	if rest := os.Getenv("BACKFILL_CHILD_REST"); rest != "" {
		j, _ := newJob(exits{}, os.Getenv("BACKFILL_CHILD_BROKER"), rest)
		_, err := j.Run(context.Background())
		exits{}.Fatal(err) // it was to be killed
	}
	os.Exit(m.Run())
}

type exits struct{}

func (exits) Fatal(a ...any) {
	fmt.Fprintln(os.Stderr, a...)
	os.Exit(1)
}

func TestKilledBackfillGoesOnWhereItStood(t *testing.T) {
	addr := broker(t)
	venue := &coinbase{}
	server := httptest.NewServer(venue)
	defer server.Close()
	for _, n := range []int{3, 15, 40} { // of 120 calls
		reached, killed := make(chan struct{}), make(chan struct{})
		var once sync.Once
		venue.calls.Store(0)
		venue.script(func(call int, _ string) bool {
			if call >= n {
				once.Do(func() { close(reached) })
				<-killed
			}
			return true
		})
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), "BACKFILL_CHILD_REST="+server.URL, "BACKFILL_CHILD_BROKER="+addr)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		<-reached
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		close(killed)
		_ = child.Wait()
	}
	venue.script(nil)
	j, log := newJob(t, addr, server.URL)
	defer log.Close()
	left, err := j.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	venue.calls.Store(0)
	result, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := venue.calls.Load(); got != int64(len(left.Calls)) || got > 120-40 {
		t.Errorf("after three kills the venue was asked %d times, want the %d that were left, at most 80", got, len(left.Calls))
	}
	if result.Calls != venue.calls.Load() || result.Failed != 0 {
		t.Errorf("result %+v, want %d calls", result, venue.calls.Load())
	}
	holdsAllOnce(t, j, log)
	if again, err := j.Run(t.Context()); err != nil || again.Calls != 0 || again.Candles != 0 {
		t.Errorf("the same again did %+v (%v), want nothing", again, err)
	}
}

// A death between the candles of an answer and its range leaves the candles.
func TestCandlesOfABegunRangeAreNotWrittenAgain(t *testing.T) {
	addr := broker(t)
	server := httptest.NewServer(&coinbase{})
	defer server.Close()
	j, log := newJob(t, addr, server.URL)
	defer log.Close()
	j.From = now.Add(-3 * time.Hour)
	plan, err := j.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Job: j}
	last := plan.Calls[len(plan.Calls)-1]
	candles, err := r.fetch(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	var begun []*eventsv1.BackfillRecord
	for _, c := range candles[:70] {
		begun = append(begun, &eventsv1.BackfillRecord{Producer: "coinbase", Body: &eventsv1.BackfillRecord_Candle{Candle: c}})
	}
	if err := log.Append(t.Context(), "coinbase", last.Market.Base, begun); err != nil {
		t.Fatal(err)
	}
	result, err := j.Run(t.Context())
	if err != nil || result.Known != 70 {
		t.Errorf("result %+v (%v), want 70 known candles", result, err)
	}
	starts := map[string]int{}
	if err := log.Read(t.Context(), func(rec *eventsv1.BackfillRecord) error {
		if c := rec.GetCandle(); c != nil {
			starts[fmt.Sprint(c.Symbol, c.Interval, c.Start)]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for what, n := range starts {
		if n != 1 {
			t.Errorf("%s is in the log %d times", what, n)
		}
	}
	if want := int(result.Candles) + 70; len(starts) != want {
		t.Errorf("the log holds %d candles, want %d", len(starts), want)
	}
}

// A range that the venue refuses ends nothing, is reported, and is asked for the next time.
func TestRefusedRangeIsAskedForAgain(t *testing.T) {
	addr := broker(t)
	venue := &coinbase{before: func(_ int, target string) bool {
		return !strings.Contains(target, "ETH-EUR") || !strings.Contains(target, "=3600&")
	}}
	server := httptest.NewServer(venue)
	defer server.Close()
	j, log := newJob(t, addr, server.URL)
	defer log.Close()
	j.From = now.Add(-2 * day)
	result, err := j.Run(t.Context())
	if !errors.Is(err, ErrIncomplete) || result.Failed != 1 {
		t.Errorf("got %+v, %v, want one failure", result, err)
	}
	venue.script(nil)
	if result, err = j.Run(t.Context()); err != nil || result.Calls != 1 || result.Candles != 46 {
		t.Errorf("got %+v, %v, want the one call that had failed, with 47 hours less the quiet one", result, err)
	}
}

// A candle that cannot be is left out, and its range is read all the same.
func TestAbsurdCandleIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		last := now.Truncate(time.Minute).Add(-2 * time.Minute)
		fmt.Fprintf(w, "[[%d,0,3,2,2,5],[%d,1,3,2,2,5]]", last.Unix(), last.Add(-time.Minute).Unix())
	}))
	defer server.Close()
	j, log := newJob(t, broker(t), server.URL)
	defer log.Close()
	j.From, j.Markets = now.Add(-4*time.Minute), j.Markets[:1]
	for _, want := range []Result{{Source: "coinbase", Calls: 1, Candles: 1, Refused: 1}, {Source: "coinbase"}} {
		if got, err := j.Run(t.Context()); err != nil || got != want {
			t.Errorf("got %+v (%v), want %+v", got, err, want)
		}
	}
}

// A venue that answers nothing right is left alone.
func TestVenueThatIsDownEndsTheRun(t *testing.T) {
	addr := broker(t)
	venue := &coinbase{before: func(int, string) bool { return false }}
	server := httptest.NewServer(venue)
	defer server.Close()
	j, log := newJob(t, addr, server.URL)
	defer log.Close()
	if _, err := j.Run(t.Context()); err == nil || errors.Is(err, ErrIncomplete) {
		t.Errorf("got %v, want an end", err)
	}
	if n := venue.calls.Load(); n > giveUp+inFlight {
		t.Errorf("the venue was asked %d times, want %d at most", n, giveUp+inFlight)
	}
}

func TestPlan(t *testing.T) {
	addr := broker(t)
	server := httptest.NewServer(&coinbase{})
	defer server.Close()
	j, log := newJob(t, addr, server.URL)
	defer log.Close()
	j.Markets, j.From = j.Markets[:1], now.Add(-500*day)
	show := func(what, want string) {
		t.Helper()
		p, err := j.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		spell := func(r Range) string {
			return fmt.Sprintf("%s %s %s %s %d", r.Market.Symbol, adapter.Interval(r.Interval), r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), r.Candles())
		}
		for _, r := range p.Missing {
			fmt.Fprintln(&got, "missing", spell(r))
		}
		for _, a := range p.Unavailable {
			fmt.Fprintf(&got, "unavailable %s: %s\n", spell(a.Range), a.Reason)
		}
		fmt.Fprintf(&got, "%d calls, %s", len(p.Calls), p.Duration())
		if want = strings.ReplaceAll(want, "\t", ""); got.String() != want {
			t.Errorf("%s, got:\n%s\nwant:\n%s", what, &got, want)
		}
	}
	show("nothing is read yet", `missing BTC-USD 1d 2024-10-18T00:00:00Z 2026-03-01T00:00:00Z 499
		missing BTC-USD 1h 2025-03-01T13:00:00Z 2026-03-01T12:00:00Z 8759
		missing BTC-USD 1m 2026-01-30T12:35:00Z 2026-03-01T12:33:00Z 43198
		176 calls, 35.2s`)
	whole := j.From
	j.From, j.To = now.Add(-10*day), now.Add(-9*day)
	if _, err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.From, j.To = whole, now
	show("a day in the middle is read", `missing BTC-USD 1d 2024-10-18T00:00:00Z 2026-03-01T00:00:00Z 499
		missing BTC-USD 1h 2025-03-01T13:00:00Z 2026-02-19T13:00:00Z 8520
		missing BTC-USD 1h 2026-02-20T12:00:00Z 2026-03-01T12:00:00Z 216
		missing BTC-USD 1m 2026-01-30T12:35:00Z 2026-02-19T12:35:00Z 28800
		missing BTC-USD 1m 2026-02-20T12:34:00Z 2026-03-01T12:33:00Z 12959
		unavailable BTC-USD 1m 2026-02-19T12:35:00Z 2026-02-19T22:35:00Z 600: read, and the venue had nothing
		172 calls, 34.4s`)
	if _, err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	show("all is read", `unavailable BTC-USD 1d 2024-10-18T00:00:00Z 2025-08-14T00:00:00Z 300: read, and the venue had nothing
		unavailable BTC-USD 1h 2025-03-01T13:00:00Z 2026-02-19T13:00:00Z 8520: read, and the venue had nothing
		unavailable BTC-USD 1m 2026-01-30T12:35:00Z 2026-02-19T22:35:00Z 29400: read, and the venue had nothing
		0 calls, 0s`)
	j.Venue.History = &adapter.History{Query: j.Venue.History.Query, Rows: 300, Newest: 720}
	j.Producer = "another past"
	show("a venue keeps the newest 720 only", `missing BTC-USD 1d 2024-10-18T00:00:00Z 2026-03-01T00:00:00Z 499
		missing BTC-USD 1h 2026-01-30T13:00:00Z 2026-03-01T12:00:00Z 719
		missing BTC-USD 1m 2026-03-01T00:35:00Z 2026-03-01T12:33:00Z 718
		unavailable BTC-USD 1h 2025-03-01T13:00:00Z 2026-01-30T13:00:00Z 8040: the venue no longer has it
		unavailable BTC-USD 1m 2026-01-30T12:35:00Z 2026-03-01T00:35:00Z 42480: the venue no longer has it
		8 calls, 1.6s`)
}

// TestVenuesAreAskedForARange holds what each venue documents of the question.
func TestVenuesAreAskedForARange(t *testing.T) {
	from := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)
	btc := map[string]adapter.Instrument{
		"binance": {Symbol: "BTCUSDT"}, "bitstamp": {Symbol: "btcusd"}, "bybit": {Symbol: "BTCUSDT"}, "coinbase": {Symbol: "BTC-USD"},
		"gate": {Symbol: "BTC_USDT"}, "kraken": {Symbol: "BTC/USD", Aliases: []string{"XXBTZUSD"}}, "kucoin": {Symbol: "BTC-USDT"}, "okx": {Symbol: "BTC-USDT"},
	}
	want := map[string][3]string{
		"binance": {
			"/api/v3/klines?symbol=BTCUSDT&interval=1m&startTime=1772236800000&endTime=1772236979999&limit=1000",
			"/api/v3/klines?symbol=BTCUSDT&interval=1h&startTime=1772236800000&endTime=1772247599999&limit=1000",
			"/api/v3/klines?symbol=BTCUSDT&interval=1d&startTime=1772236800000&endTime=1772495999999&limit=1000",
		},
		"bitstamp": {
			"/api/v2/ohlc/btcusd/?step=60&limit=3&start=1772236800&end=1772236920",
			"/api/v2/ohlc/btcusd/?step=3600&limit=3&start=1772236800&end=1772244000",
			"/api/v2/ohlc/btcusd/?step=86400&limit=3&start=1772236800&end=1772409600",
		},
		"bybit": {
			"/v5/market/kline?category=spot&symbol=BTCUSDT&interval=1&start=1772236800000&end=1772236979999&limit=1000",
			"/v5/market/kline?category=spot&symbol=BTCUSDT&interval=60&start=1772236800000&end=1772247599999&limit=1000",
			"/v5/market/kline?category=spot&symbol=BTCUSDT&interval=D&start=1772236800000&end=1772495999999&limit=1000",
		},
		"coinbase": {
			"/products/BTC-USD/candles?granularity=60&start=2026-02-28T00:00:00Z&end=2026-02-28T00:02:00Z",
			"/products/BTC-USD/candles?granularity=3600&start=2026-02-28T00:00:00Z&end=2026-02-28T02:00:00Z",
			"/products/BTC-USD/candles?granularity=86400&start=2026-02-28T00:00:00Z&end=2026-03-02T00:00:00Z",
		},
		"gate": {
			"/api/v4/spot/candlesticks?currency_pair=BTC_USDT&interval=1m&from=1772236800&to=1772236920",
			"/api/v4/spot/candlesticks?currency_pair=BTC_USDT&interval=1h&from=1772236800&to=1772244000",
			"/api/v4/spot/candlesticks?currency_pair=BTC_USDT&interval=1d&from=1772236800&to=1772409600",
		},
		"kraken": {
			"/0/public/OHLC?pair=XXBTZUSD&interval=1&since=1772236799",
			"/0/public/OHLC?pair=XXBTZUSD&interval=60&since=1772236799",
			"/0/public/OHLC?pair=XXBTZUSD&interval=1440&since=1772236799",
		},
		"kucoin": {
			"/api/v1/market/candles?symbol=BTC-USDT&type=1min&startAt=1772236800&endAt=1772236980",
			"/api/v1/market/candles?symbol=BTC-USDT&type=1hour&startAt=1772236800&endAt=1772247600",
			"/api/v1/market/candles?symbol=BTC-USDT&type=1day&startAt=1772236800&endAt=1772496000",
		},
		"okx": {
			"/api/v5/market/history-candles?instId=BTC-USDT&bar=1m&after=1772236980000&before=1772236799999&limit=100",
			"/api/v5/market/history-candles?instId=BTC-USDT&bar=1H&after=1772247600000&before=1772236799999&limit=100",
			"/api/v5/market/history-candles?instId=BTC-USDT&bar=1Dutc&after=1772496000000&before=1772236799999&limit=100",
		},
	}
	for _, v := range exchanges.List() {
		if v.History == nil {
			continue
		}
		for i, interval := range []time.Duration{time.Minute, time.Hour, day} {
			q := v.History.Query(btc[v.Slug], interval, from, from.Add(3*interval))
			if q.Path != want[v.Slug][i] {
				t.Errorf("%s is asked for %s\nwant %s", v.Slug, q.Path, want[v.Slug][i])
			}
		}
		delete(want, v.Slug)
	}
	for slug := range want {
		t.Errorf("%s cannot be back-filled", slug)
	}
}
