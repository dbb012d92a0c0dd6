package prices_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

func (w *fixture) decode(path string, into any) int {
	w.t.Helper()
	response, err := http.Get(w.base + path)
	w.must(err)
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		w.must(json.NewDecoder(response.Body).Decode(into))
	}
	return response.StatusCode
}

// asked are requests for current prices that can be asked as of an instant, whole answers.
var asked = []string{
	"/api/v1/prices/btc?", "/api/v1/prices/btc?vs=eth&region=us&explain=1", "/api/v1/prices/xbt?explain=1&vs=BTC", "/api/v1/prices?symbols=btc,nothing,eth,btc",
	"/api/v1/prices?symbols=eth,bitcoin&vs=btc&explain=1",
}

// answer is what was served at an instant: the price of bitcoin, and the bodies of what was asked.
type answer struct {
	at     time.Time
	price  float64
	stamp  string
	bodies []string
	// all is the answer with all prices.
	all string
}

// answer asks for all that can be asked as of an instant.
func (w *fixture) answer(at time.Time) answer {
	w.t.Helper()
	var got struct {
		Data struct{ Aggregated prices.Aggregated }
	}
	w.decode("/api/v1/prices/btc", &got)
	served := answer{at: at, price: got.Data.Aggregated.Price, stamp: got.Data.Aggregated.Timestamp}
	for _, path := range asked {
		served.bodies = append(served.bodies, w.body(path))
	}
	served.all, _ = w.untimed(w.body("/api/v1/prices/summary"))
	return served
}

func (w *fixture) body(path string) string {
	w.t.Helper()
	response, err := http.Get(w.base + path)
	w.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	w.must(err)
	return fmt.Sprint(response.StatusCode, " ", string(body))
}

// untimed is an answer with all prices without its own time, which is of the log where it is of now, and that.
func (w *fixture) untimed(answer string) (rest, stamp string) {
	w.t.Helper()
	var body prices.SummaryBody
	if err := json.Unmarshal([]byte(answer[4:]), &body); err != nil || !strings.HasPrefix(answer, "200 ") {
		w.t.Fatalf("%s: %v", answer, err)
	}
	stamp = body.Data.Timestamp
	if body.Meta.LastUpdated != stamp {
		w.t.Errorf("last updated %s, of the time %s", body.Meta.LastUpdated, stamp)
	}
	return strings.ReplaceAll(strings.Replace(answer, `"timestamp":"`+stamp+`"},"meta"`, "", 1), `"lastUpdated":"`+stamp+`"`, ""), stamp
}

// same reports what differs from what was served, asked for as of its instant.
func (w *fixture) same(served answer) {
	w.t.Helper()
	instant := "asOf=" + served.at.Format(time.RFC3339Nano)
	for i, path := range asked {
		if !strings.HasSuffix(path, "?") {
			path += "&"
		}
		if got := w.body(path + instant); got != served.bodies[i] {
			w.t.Errorf("%s as of %s:\n%s\nwhat was answered then:\n%s", path, served.at, got, served.bodies[i])
		}
	}
	if all, stamp := w.untimed(w.body("/api/v1/prices/summary?" + instant)); all != served.all || stamp > query.FormatTime(served.at.UnixNano()) || stamp < served.stamp {
		w.t.Errorf("all prices as of %s, of the time %s:\n%s\nwhat was answered then:\n%s", served.at, stamp, all, served.all)
	}
	var got prices.ExplainBody
	if status := w.decode("/api/v1/prices/btc/explain?"+instant, &got); status != http.StatusOK {
		w.t.Fatalf("as of %s: %d", served.at, status)
	}
	if got.Data.Price != served.price || got.Data.Timestamp != served.stamp || !got.Data.Reproduced {
		w.t.Errorf("as of %s the price of %s, %g, is explained; the answer was that of %s, %g", served.at, got.Data.Timestamp, got.Data.Price, served.stamp, served.price)
	}
}

// A price comes through the log later than its second, by a time that differs. Whoever asks for an instant's answer, or what it
// was made from, must get that answer byte for byte, and nothing of a price that was not known yet; also when they ask later, and of a process that was not
// there.
func TestAsOfNeverLooksAhead(t *testing.T) {
	w := newFixture(t)
	w.priceCache.RememberBy(func() time.Time { return w.now })
	random := streamtest.Rand(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var answers []answer
	w.now, w.recorded = start, start // nobody answered before
	w.priceCache.Steps().Begin(func() time.Time { return w.now })
	w.market("ethereum", []string{"coinbase", "ETH-USD", "USD", "last=4000"})
	w.arrive("ethereum", start, start)
	for second := range 60 {
		at := start.Add(time.Duration(second) * time.Second)
		w.now = at
		if second%10 == 9 { // nobody trades it: the last price is kept, and goes stale
			w.markets["bitcoin"] = nil
		} else {
			w.market("bitcoin", []string{"kraken", "BTC/USD", "USD", fmt.Sprint("last=", 100_000+second)})
			w.market("bitcoin", []string{"coinbase", "BTC-USD", "USD", fmt.Sprint("last=", 100_010+second)})
		}
		// The price of this second arrives within the next 900 ms; before and after somebody asks.
		arrives := at.Add(time.Duration(random.IntN(900)) * time.Millisecond)
		for range 2 {
			if asked := at.Add(time.Duration(random.IntN(1000)) * time.Millisecond); second > 0 && asked.Before(arrives) && !asked.Before(w.now) {
				w.now = asked
				answers = append(answers, w.answer(asked))
			}
		}
		w.arrive("bitcoin", at, arrives)
		w.now = arrives.Add(time.Duration(random.IntN(50)) * time.Millisecond)
		answers = append(answers, w.answer(w.now))
	}
	if len(answers) < 60 {
		t.Fatalf("only %d answers were given", len(answers))
	}
	w.now = w.now.Add(time.Minute)
	for _, served := range answers {
		w.same(served)
	}
	w.restart()
	for _, served := range answers {
		w.same(served)
	}
}

// restart ends the process in good order, and begins another one, which remembers nothing.
func (w *fixture) restart() {
	ended, end := context.WithCancel(w.t.Context())
	end()
	w.must(w.priceCache.Steps().Run(ended, fmt.Sprint("process ", len(w.steps)), w, slog.New(slog.DiscardHandler)))
	w.priceCache = views.NewPriceCache(coins)
	for _, records := range w.past {
		for _, rec := range records {
			w.must(querytest.ApplyPrice(w.priceCache, views.TailRecord{Offset: rec.Mark.Offset, Marked: rec}))
		}
	}
	w.priceCache.Steps().Begin(func() time.Time { return w.now })
	w.serve()
}

// arrive publishes what the markets of a coin sent in a second, when its record comes.
func (w *fixture) arrive(coin string, second, arrives time.Time) {
	w.now = second
	rec := w.record(coin, false)
	rec.GetPrice().Published = second.UnixNano()
	w.now = arrives
	w.publish(rec)
}

// Who was not there when a price was given goes by when it was written.
func TestAsOfWithoutMemoryGoesByWhenAPriceWasWritten(t *testing.T) {
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.now = start
	w.market("bitcoin", []string{"kraken", "BTC/USD", "USD", "last=1"})
	w.arrive("bitcoin", start, start)
	rec := w.record("bitcoin", false)
	rec.GetPrice().Time, rec.GetPrice().Published = start.Add(time.Second).UnixNano(), start.Add(1700*time.Millisecond).UnixNano()
	w.publish(rec)
	w.now = start.Add(time.Minute)
	for after, want := range map[time.Duration]time.Time{1500 * time.Millisecond: start, 1700 * time.Millisecond: start.Add(time.Second)} {
		var got prices.ExplainBody
		status := w.decode("/api/v1/prices/btc/explain?asOf="+start.Add(after).Format(time.RFC3339Nano), &got)
		if status != http.StatusOK || got.Data.Timestamp != query.FormatTime(want.UnixNano()) {
			t.Errorf("%s after: %d, the price of %v, want that of %s", after, status, got.Data, want.Format(time.RFC3339))
		}
		var priced struct {
			Data struct{ Aggregated prices.Aggregated }
		}
		status = w.decode("/api/v1/prices/btc?asOf="+start.Add(after).Format(time.RFC3339Nano), &priced)
		if a := priced.Data.Aggregated; status != http.StatusOK || a.Timestamp != query.FormatTime(want.UnixNano()) || a.IsStale {
			t.Errorf("%s after: %d, the price of %s (stale: %t), want the fresh one of %s", after, status, a.Timestamp, a.IsStale, want.Format(time.RFC3339))
		}
	}
}

// Where the log has ended, what the tables have is all: records have their time in milliseconds, and now is finer.
func TestAsOfBehindTheEndOfTheLog(t *testing.T) {
	w := newFixture(t)
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.now = start
	w.market("bitcoin", []string{"kraken", "BTC/USD", "USD", "last=1"})
	w.arrive("bitcoin", start, start)
	end := start.Add(500*time.Millisecond + 999*time.Microsecond)
	partition := views.PartitionOf("bitcoin", 8)
	w.must(w.priceCache.Apply(views.TailRecord{Partition: partition, Marked: &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano()}}}}))
	w.now = start.Add(time.Minute)
	for lag, want := range map[time.Duration]int{0: http.StatusOK, time.Millisecond: http.StatusServiceUnavailable} {
		w.written = map[int32]time.Time{partition: end.Truncate(time.Millisecond).Add(-lag)}
		var got prices.ExplainBody
		if status := w.decode("/api/v1/prices/btc/explain?asOf="+start.Add(30*time.Second).Format(time.RFC3339Nano), &got); status != want {
			t.Errorf("tables that are %s behind answer %d, want %d", lag, status, want)
		}
	}
}

// A price that an earlier version made is explained by that version, whatever the current one gives.
func TestAPriceIsExplainedByTheMethodThatMadeIt(t *testing.T) {
	for _, method := range []uint32{0, 1, 2, 3} {
		w := newFixture(t)
		w.run("now 2026-11-20T10:00:00Z")
		for i, venue := range []string{"coinbase", "kraken", "okx"} {
			w.market("bitcoin", []string{venue, "BTC-USD", "USD", fmt.Sprint("last=", 100+i), fmt.Sprint("bid=", 99+i), fmt.Sprint("ask=", 101+i)})
		}
		w.run("now 2026-11-20T10:01:00Z") // all are a minute old by now, and score less by version 2
		w.method = method
		w.price("bitcoin", false)
		var got prices.ExplainBody
		if status := w.decode("/api/v1/prices/btc/explain", &got); status != http.StatusOK {
			t.Fatal(status)
		}
		if got.Data.Reproduced != (method < 3) || got.Data.MethodVersion != max(int(method), 1) {
			t.Errorf("method %d: version %d, reproduced: %v", method, got.Data.MethodVersion, got.Data.Reproduced)
		}
	}
}
