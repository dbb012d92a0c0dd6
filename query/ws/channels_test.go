package ws

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Channels come over plain HTTP as over a socket, and a browser goes on where it was.
func TestChannelsComeInAllForms(t *testing.T) {
	coins := scriptCoins(t)
	log := newCandleLog(coins)
	w := newFixture(t, func(s *setup) { s.coins, s.auth, s.channels = coins, query.AuthOpen, log.channels() })
	apply, next := w.hub.ApplyTo(schemas.TopicCandles), make([]int, 8)
	end := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	minute := func(price float64) {
		end = end.Add(time.Minute)
		bitcoin, _ := coins.ByID("bitcoin")
		log.candle(bitcoin, &eventsv1.Candle{CoinId: "bitcoin", Start: end.Add(-time.Minute).UnixNano(), Open: price, High: price, Low: price, Close: price, Volume: "1"})
		for p := range next {
			log.pulse(p, end.Add(schemas.AllowedLateness))
		}
		log.follow(t, apply, next, log.ends())
	}
	_, answer := w.lineStream("?channels=candles:1m", nil)
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("before the first minute: got %d, want 503", answer.StatusCode)
	}
	minute(1)
	lines, answer := w.lineStream("?channels=candles:1m&symbols=BTC", nil)
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK || kind != contentEvents {
		t.Fatalf("got %d %q", answer.StatusCode, kind)
	}
	w.untilEvent(t, lines, "subscribed")
	minute(2)
	first := w.untilEvent(t, lines, "candle_update")
	if first.id == "" || !strings.Contains(first.data, `"close":2,`) || !strings.Contains(first.data, `"cursor":"`+first.id+`"`) {
		t.Errorf("got %+v, want the candle of 2 and its cursor", first)
	}
	answer.Body.Close()
	minute(3)
	minute(4)
	lines, _ = w.lineStream("?channels=candles:1m&symbols=BTC", map[string]string{headerLastID: first.id})
	w.untilEvent(t, lines, "resumed")
	for _, want := range []string{`"close":3,`, `"close":4,`} {
		if e := w.untilEvent(t, lines, "candle_update"); !strings.Contains(e.data, want) {
			t.Errorf("got %s, want %s", e.data, want)
		}
	}
	lines, _ = w.lineStream("?channels=candles:1m&symbols=BTC&cursor="+first.id, map[string]string{"Accept": contentLines})
	var kinds []string
	for len(kinds) < 6 && lines.Scan() {
		var m struct{ Type string }
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		kinds = append(kinds, m.Type)
	}
	if want := []string{"welcome", "subscribed", "resumed", "candle_update", "candle_update", "live"}; !slices.Equal(kinds, want) {
		t.Errorf("lines: got %v, want %v", kinds, want)
	}
	for query, want := range map[string]string{
		"?channels=candles":                                              `"channels":["has no \"candles\": there are prices, candles:1m`,
		"?channels=Candles:1M":                                           `did you mean candles:1m?`,
		"?channels=candles:1m,nosuchthing":                               `"channels":["has no \"nosuchthing\"`,
		"?channels=candles:1m&symbols=nosuch":                            "no coin has the symbol or id nosuch",
		"?channels=candles:1m&cursor=2AAAA":                              `"cursor":["is not one that this service gave`,
		"?channels=candles:1m&cursor=" + strings.Repeat("2", mixedMax+1): `"cursor":["is not one that this service gave`,
	} {
		_, answer := w.lineStream(query, nil)
		if text := body(t, answer); answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: got %d %s, want 400 and %s", query, answer.StatusCode, text, want)
		}
	}
}

// What memory has no longer, and no store has, is a gap with both times; so is another log.
func TestChannelsWithoutAStoreHaveGaps(t *testing.T) {
	coins := scriptCoins(t)
	log := newCandleLog(coins)
	w := newFixture(t, func(s *setup) {
		s.coins, s.auth, s.channels = coins, query.AuthOpen, log.channels()
		for i := range s.channels {
			s.channels[i].Store, s.channels[i].Past = nil, nil
		}
		s.stream.ChannelBytes = 40 * priceBytes
	})
	apply, next := w.hub.ApplyTo(schemas.TopicCandles), make([]int, 8)
	end := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	minutes := func(n int) {
		for range n {
			end = end.Add(time.Minute)
			bitcoin, _ := coins.ByID("bitcoin")
			log.candle(bitcoin, &eventsv1.Candle{CoinId: "bitcoin", Start: end.Add(-time.Minute).UnixNano(), Volume: "1"})
			for p := range next {
				log.pulse(p, end.Add(schemas.AllowedLateness))
			}
		}
		log.follow(t, apply, next, log.ends())
	}
	minutes(2)
	first := cursorOfAll([]spot{{1, w.hub.channels[0].identity(), w.hub.channels[0].heads()}})
	minutes(20)
	type message struct {
		Type, Channel, Reason, Cursor string
		Since, Until, Timestamp       time.Time
	}
	read := func(c *client) (m message) {
		text, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return m
	}
	gapOf := func(c *client) message {
		for {
			if m := read(c); m.Type == "gap" {
				return m
			}
		}
	}
	c := w.open(dialing{query: "?channels=candles:1m&cursor=" + first})
	floor := time.Unix(w.hub.channels[0].floors().newest(), 0).UTC()
	if gap := gapOf(c); gap.Channel != "candles:1m" || gap.Reason != gapTooOld || !gap.Since.Equal(end.Add(-20*time.Minute)) || !gap.Until.Equal(floor) || gap.Cursor == "" {
		t.Errorf("got %+v, want a gap of candles:1m from %v to %v", gap, end.Add(-20*time.Minute), floor)
	}
	if m := read(c); m.Type != "candle_update" || !m.Timestamp.Equal(floor.Add(time.Minute)) {
		t.Errorf("got %s of %v, want the candle after the gap", m.Type, m.Timestamp)
	}
	other := cursorOfAll([]spot{{1, identityOf("another log"), w.hub.channels[0].heads()}})
	c = w.open(dialing{query: "?channels=candles:1m&cursor=" + other})
	if gap := gapOf(c); gap.Channel != "candles:1m" || gap.Reason != gapOtherLog || !gap.Since.Equal(end) || !gap.Until.Equal(end) || gap.Cursor == "" {
		t.Errorf("got %+v, want a gap of another log up to %v", gap, end)
	}
}
