package query_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/fiat"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/schemas"
)

// What is read from a topic is not answered before the topic was read, since that would be older than what was answered before
// a restart. What needs no other topic than prices is.
func TestNothingIsAnsweredFromATopicThatIsBeingRead(t *testing.T) {
	table := schemas.Coins()
	w := querytest.NewWorld(t, table)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Price("bitcoin", w.Now, 84_000)
	w.Run("now 2026-11-20T10:00:00Z")
	w.Run(`said fixing: {source: "ecb" base: "EUR" quote: "USD" rate: "1.1" date: "2026-11-19"}`)
	w.Run("minute 2026-11-20T10:00:00Z")
	var reading atomic.Bool
	waiting := func() string {
		if reading.Load() {
			return "reading 1 partitions of reference.raw.v1 to their end"
		}
		return ""
	}
	there := func() string { return "" }
	w.Serve(append(prices.New(w.Board, query.NewConverter(w.Board, w.Catalog).After(waiting), nil, nil).Endpoints(),
		query.After(fiat.New(table, w.Catalog, nil).Endpoints(), there, waiting)...))
	ask := func(path string) (int, string) {
		answer, err := http.Get(w.Base() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	for _, begun := range []bool{true, false} {
		reading.Store(begun)
		if status, body := ask("/api/v1/prices/BTC"); status != http.StatusOK || !strings.Contains(body, "84000") {
			t.Errorf("reading %v: a price is answered %d %s", begun, status, body)
		}
		status, body := ask("/api/v1/fiat/EUR")
		if want := map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusOK}[begun]; status != want || begun != strings.Contains(body, "reference.raw.v1") {
			t.Errorf("reading %v: a currency is answered %d %s, want %d", begun, status, body, want)
		}
		if status, body := ask("/api/v1/prices/BTC?vs=eur"); status != http.StatusOK || begun != strings.Contains(body, `"reason":"no_rate"`) {
			t.Errorf("reading %v: a price in euros is answered %d %s", begun, status, body)
		}
	}
}
