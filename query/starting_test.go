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
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// What is read from a topic is not answered before the topic was read, since that would be older than what was answered before
// a restart. What needs no other topic than prices is.
func TestNothingIsAnsweredFromATopicThatIsBeingRead(t *testing.T) {
	table := schemas.Coins()
	w := querytest.NewFixture(t, table)
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
	w.Serve(append(query.After(prices.New(w.Prices, w.Catalog, views.NewConverter(w.Prices, w.Catalog, nil), nil, nil).Endpoints(), waiting),
		query.After(fiat.New(table, w.Catalog, nil, nil).Endpoints(), there, waiting)...))
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
		for path, holds := range map[string]string{"/api/v1/prices/BTC": "84000", "/api/v1/prices/BTC?vs=eur": `"vs":"eur"`, "/api/v1/fiat/EUR": "EUR"} {
			want, part := http.StatusOK, holds
			if begun {
				want, part = http.StatusServiceUnavailable, "reference.raw.v1"
			}
			if status, body := ask(path); status != want || !strings.Contains(body, part) {
				t.Errorf("reading %v: %s is answered %d %s, want %d with %s", begun, path, status, body, want, part)
			}
		}
	}
}
