package ws

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// lineStream opens the stream over plain HTTP; it is read line by line.
func (w *fixture) lineStream(query string, headers map[string]string) (*bufio.Scanner, *http.Response) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.base+LinesPath+query, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return lines, answer
}

// event is one server-sent event.
type event struct{ id, kind, data string }

func nextEvent(t *testing.T, lines *bufio.Scanner) event {
	t.Helper()
	var e event
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "id":
			e.id = value
		case name == "event":
			e.kind = value
		case name == "data":
			e.data = value
		case name == "" && e.data != "":
			return e
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return e
}

func (w *fixture) untilEvent(t *testing.T, lines *bufio.Scanner, kind string) event {
	t.Helper()
	for {
		if e := nextEvent(t, lines); e.kind == kind {
			return e
		}
	}
}

func TestServerSentEventsGoOnWhereABrowserWas(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.coins = scriptCoins(t) })
	key := map[string]string{"Authorization": "Bearer " + w.key(limits.PlanPro)}
	move := func(price float64) {
		w.price(&eventsv1.Price{CoinId: "bitcoin", Price: price, Source: "kraken"})
		w.tick()
	}
	move(1)
	lines, answer := w.lineStream("?symbols=BTC&delivery=all", key)
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != contentEvents || answer.Header.Get("X-RateLimit-Limit") == "" {
		t.Fatalf("got %d %q %v", answer.StatusCode, kind, answer.Header)
	}
	w.untilEvent(t, lines, typeInitial)
	var last event
	for price := range 3 {
		move(float64(2 + price))
		last = w.untilEvent(t, lines, typeUpdate)
		if want := fmt.Sprintf(`"price":%d,`, 2+price); !strings.Contains(last.data, want) || !strings.Contains(last.data, `"cursor":"`+last.id+`"`) {
			t.Fatalf("got %+v, want %s and the cursor", last, want)
		}
	}
	answer.Body.Close()
	move(5)
	move(6)
	for _, back := range []struct {
		query  string
		header string
	}{{"?symbols=BTC&delivery=all", last.id}, {"?symbols=BTC&delivery=all&lastEventId=" + last.id, ""}, {"?symbols=BTC&delivery=all&cursor=" + last.id, ""}} {
		headers := map[string]string{"Authorization": key["Authorization"]}
		if back.header != "" {
			headers[headerLastID] = back.header
		}
		lines, _ := w.lineStream(back.query, headers)
		if e := w.untilEvent(t, lines, "resumed"); e.id != "" {
			t.Errorf("what says from where has the id %q of another place", e.id)
		}
		for _, price := range []string{`"price":5,`, `"price":6,`} {
			if e := w.untilEvent(t, lines, typeUpdate); !strings.Contains(e.data, price) {
				t.Errorf("after %+v: got %s, want %s", back, e.data, price)
			}
		}
		if e := nextEvent(t, lines); e.kind != "live" || !strings.Contains(e.data, `"prices":2`) {
			t.Errorf("got %+v, want that it is live after 2 prices", e)
		}
	}
}

func TestLinesOfJSONAreTheSameMessages(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.coins, s.auth = scriptCoins(t), query.AuthOpen })
	w.price(&eventsv1.Price{CoinId: "bitcoin", Price: 1, Source: "kraken"})
	w.tick()
	lines, answer := w.lineStream("?channels=prices", map[string]string{"Accept": "text/html;q=0.1, application/x-ndjson"})
	if kind := answer.Header.Get("Content-Type"); kind != contentLines {
		t.Fatalf("got %q", kind)
	}
	var kinds []string
	for len(kinds) < 4 && lines.Scan() {
		var m struct{ Type, Cursor string }
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatalf("%v in %q", err, lines.Text())
		}
		if kinds = append(kinds, m.Type); len(kinds) == 3 {
			w.price(&eventsv1.Price{CoinId: "bitcoin", Price: 2, Source: "kraken"})
			w.tick()
		}
		if m.Cursor == "" {
			t.Errorf("no cursor in %s", lines.Text())
		}
	}
	if got, want := strings.Join(kinds, " "), "welcome subscribed initial_prices price_update"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What refuses a client is an answer with a status, as of every other operation.
func TestThePlainStreamRefusesByStatus(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.coins = scriptCoins(t) })
	good, free := w.key(limits.PlanPro), w.key(limits.PlanFree)
	w.tick()
	held, _ := w.lineStream("", map[string]string{"Authorization": "Bearer " + free})
	nextEvent(t, held)
	for _, test := range []struct {
		query, key, origin string
		status             int
		contains           string
	}{
		{"", "", "", 401, "no API key was sent"},
		{"", good + "x", "", 401, "this API key is not known here"},
		{"", good, "https://elsewhere.example", 403, "stream.origins"},
		{"", free, "", 429, "streams"},
		{"?symbol=BTC", good, "", 400, "is not a parameter"},
		{"?symbols=nosuch", good, "", 400, "nosuch"},
		{"?cursor=x", good, "", 400, "cursor"},
		{"?delivery=x", good, "", 400, "delivery"},
		{"?snapshot=x", good, "", 400, "snapshot"},
		{"?intervalMs=x", good, "", 400, "intervalMs"},
		{"?heartbeatMs=1", good, "", 400, "heartbeatMs"},
		{"?channels=x", good, "", 400, "channels"},
	} {
		headers := map[string]string{}
		if test.key != "" {
			headers["Authorization"] = "Bearer " + test.key
		}
		if test.origin != "" {
			headers["Origin"] = test.origin
		}
		_, answer := w.lineStream(test.query, headers)
		if text := body(t, answer); answer.StatusCode != test.status || !strings.Contains(text, test.contains) {
			t.Errorf("%+v: got %d %s", test, answer.StatusCode, text)
		}
	}
}

// The document names every parameter that the stream over plain HTTP takes.
func TestTheDocumentNamesWhatTheStreamTakes(t *testing.T) {
	coins := scriptCoins(t)
	w := newFixture(t, func(s *setup) { s.coins, s.channels = coins, newCandleLog(coins).channels() })
	var named []string
	for _, p := range w.hub.Operation().Parameters {
		if p.In == "query" {
			named = append(named, p.Name)
		}
		if p.Name == "channels" {
			if got, want := len(p.Schema.Items.Enum), len(w.hub.channelNames()); got != want {
				t.Errorf("the document names %d channels, want %d", got, want)
			}
		}
	}
	slices.Sort(named)
	if want := slices.Sorted(slices.Values(append(slices.Clone(connectParams), paramLastID))); !slices.Equal(named, want) {
		t.Errorf("got %v, want %v", named, want)
	}
}
