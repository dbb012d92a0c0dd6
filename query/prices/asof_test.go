package prices_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/prices"
)

func (w *world) decode(path string, into any) int {
	w.t.Helper()
	response, err := http.Get(w.base + path)
	w.must(err)
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		w.must(json.NewDecoder(response.Body).Decode(into))
	}
	return response.StatusCode
}

type answer struct {
	at    time.Time
	price float64
	stamp string
}

// answer is what is served of bitcoin at an instant.
func (w *world) answer(at time.Time) answer {
	w.t.Helper()
	var got struct {
		Data struct{ Aggregated prices.Aggregated }
	}
	w.decode("/api/v1/prices/btc", &got)
	return answer{at, got.Data.Aggregated.Price, got.Data.Aggregated.Timestamp}
}

// A price comes through the log later than its second, by a time that differs. Whoever asks what an instant's answer was
// made from must be given for that answer, and not of a price that was not known yet; also when it is asked for later.
func TestAsOfNeverLooksAhead(t *testing.T) {
	w := newWorld(t)
	w.priceCache.RememberBy(func() time.Time { return w.now })
	random := rand.New(rand.NewPCG(3, 4))
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var answers []answer
	w.now = start
	for second := range 60 {
		at := start.Add(time.Duration(second) * time.Second)
		w.now = at
		w.market("bitcoin", []string{"kraken", "BTC/USD", "USD", fmt.Sprint("last=", 100_000+second)})
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
	for _, a := range answers {
		var got prices.ExplainBody
		if status := w.decode("/api/v1/prices/btc/explain?asOf="+a.at.Format(time.RFC3339Nano), &got); status != http.StatusOK {
			t.Fatalf("as of %s: %d", a.at, status)
		}
		if got.Data.Price != a.price || got.Data.Timestamp != a.stamp || !got.Data.Reproduced {
			t.Errorf("as of %s the price of %s, %g, is explained; the answer was that of %s, %g", a.at, got.Data.Timestamp, got.Data.Price, a.stamp, a.price)
		}
	}
}

// arrive publishes what the markets of a coin sent in a second, when its record comes.
func (w *world) arrive(coin string, second, arrives time.Time) {
	w.now = second
	rec := w.record(coin, false)
	rec.GetPrice().Published = second.UnixNano()
	w.now = arrives
	w.publish(rec)
}

// Who was not there when a price was given goes by when it was written.
func TestAsOfWithoutMemoryGoesByWhenAPriceWasWritten(t *testing.T) {
	w := newWorld(t)
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
	}
}

// A price that an earlier version made is explained by that version, whatever the current one gives.
func TestAPriceIsExplainedByTheMethodThatMadeIt(t *testing.T) {
	for _, method := range []uint32{0, 1, 2, 3} {
		w := newWorld(t)
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
