package venues

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestUpbitSubscriptionReplacesTheOneBefore(t *testing.T) {
	x := open(t, 1, upbit()).exchanges[0]
	c := x.pretend(t)
	codes := func(from time.Time) map[string]bool {
		seen := map[string]bool{}
		x.passing(from, from.Add(20*time.Second))
		for _, m := range c.receivedSince() {
			var e struct{ Code string }
			if err := json.Unmarshal(m.bytes, &e); err != nil || !m.binary {
				t.Fatalf("got %s, %v, binary %v", m.bytes, err, m.binary)
			}
			seen[e.Code] = true
		}
		return seen
	}
	c.send(`[{"ticket":"a"},{"type":"ticker","codes":["KRW-BTC","KRW-ETH"]},{"type":"trade","codes":["KRW-BTC","KRW-NOSUCH"]}]`)
	if got := codes(simulatortest.Noon); !got["KRW-BTC"] || !got["KRW-ETH"] || len(got) != 2 {
		t.Errorf("got %v, want KRW-BTC and KRW-ETH", got)
	}
	c.send(`[{"ticket":"a"},{"type":"ticker","codes":["KRW-XRP"]}]`)
	if got := codes(simulatortest.Noon.Add(30 * time.Second)); !got["KRW-XRP"] || len(got) != 1 {
		t.Errorf("after the next subscription: got %v, want KRW-XRP alone", got)
	}
	c.send(`[{"ticket":"a"},{"type":"ticker","codes":["KRW-ETH"],"is_only_snapshot":true}]`)
	x.passing(simulatortest.Noon.Add(time.Minute), simulatortest.Noon.Add(2*time.Minute))
	if got := c.texts(); len(got) != 1 || !strings.Contains(got[0], `"stream_type":"SNAPSHOT"`) {
		t.Errorf("a snapshot alone: got %q", got)
	}
	c.send(`[{"ticket":"a"},{"type":"ticker","codes":["KRW-ETH"],"is_only_realtime":true}]`)
	if got := c.texts(); len(got) != 0 {
		t.Errorf("no snapshot was wanted: got %q", got)
	}
}

// All formats carry the same fields, under other names.
func TestUpbitFormatsCarryTheSameFields(t *testing.T) {
	x := open(t, 1, upbit()).exchanges[0]
	short := map[string]string{"type": "ty", "code": "cd", "trade_price": "tp", "trade_volume": "tv", "sequential_id": "sid", "stream_type": "st"}
	byFormat := map[string][]string{}
	for _, format := range upbitFormats {
		c := x.pretend(t)
		c.send(`[{"ticket":"a"},{"type":"trade","codes":["KRW-BTC"]},{"format":"` + format + `"}]`)
		for _, text := range c.texts() {
			if list := strings.HasPrefix(text, "["); list != strings.HasSuffix(format, "_LIST") {
				t.Errorf("%s: got %s", format, text)
			}
			var fields map[string]json.RawMessage
			if err := json.Unmarshal([]byte(strings.Trim(text, "[]")), &fields); err != nil {
				t.Fatalf("%s: %v in %s", format, err, text)
			}
			for long, name := range short {
				if !strings.HasPrefix(format, "SIMPLE") {
					name = long
				}
				byFormat[long] = append(byFormat[long], string(fields[name]))
			}
		}
	}
	for name, values := range byFormat {
		for _, v := range values {
			if len(values) != len(upbitFormats) || v == "" || v != values[0] {
				t.Errorf("%s is sent as %q", name, values)
			}
		}
	}
}

func TestUpbitRefusesInItsOwnFormat(t *testing.T) {
	x := open(t, 1, upbit()).exchanges[0]
	c := x.pretend(t)
	c.messages = nil // the limit of a second is another test's
	for message, want := range map[string]string{
		`[{"type":"trade","codes":["KRW-BTC"]}]`:                                 "NO_TICKET",
		`[{"ticket":"a"}]`:                                                       "NO_TYPE",
		`[{"ticket":"a"},{"type":"trade"}]`:                                      "NO_CODES",
		`[{"ticket":"a"},{"type":"trade","codes":[]}]`:                           "INVALID_PARAM",
		`[{"ticket":"a"},{"type":"dance","codes":["KRW-BTC"]}]`:                  "INVALID_PARAM",
		`[{"ticket":"a"},{"type":"trade","codes":["KRW-BTC"]},{"format":"XML"}]`: "WRONG_FORMAT",
		`{`: "WRONG_FORMAT",
	} {
		c.send(message)
		if got := c.texts(); len(got) != 1 || !strings.HasPrefix(got[0], `{"error":{`) || !strings.Contains(got[0], `"name":"`+want+`"`) {
			t.Errorf("%s: got %q, want %s", message, got, want)
		}
	}
	// The clock does not advance: all are of one minute.
	for i := range 100 {
		c.send("PING")
		if got := c.texts(); c.reason == "" && (len(got) != 1 || got[0] != `{"status":"UP"}`) {
			t.Fatalf("PING %d: got %q", i, got)
		}
	}
	if c.reason != "too many messages" {
		t.Errorf("after more than 100 messages in a minute: closed for %q", c.reason)
	}
}

func TestUpbitCandlesAreNewestFirst(t *testing.T) {
	s := open(t, 1, upbit())
	for path, want := range map[string][]string{
		"minutes/60?market=KRW-BTC&count=2":                         {"2026-03-04T12:00:00", "2026-03-04T11:00:00"},
		"minutes/240?market=KRW-BTC":                                {"2026-03-04T12:00:00"},
		"days?market=KRW-BTC&count=2":                               {"2026-03-04T00:00:00", "2026-03-03T00:00:00"},
		"minutes/1?market=KRW-BTC&count=2&to=2026-03-01T00:00:00":   {"2026-02-28T23:59:00", "2026-02-28T23:58:00"},
		"minutes/1?market=KRW-BTC&count=1&to=2026-03-01%2000:00:00": {"2026-02-28T23:59:00"},
	} {
		var rows []struct {
			Start string `json:"candle_date_time_utc"`
		}
		status := ask(t, s, "/upbit/v1/candles/"+path, &rows)
		got := []string{}
		for _, r := range rows {
			got = append(got, r.Start)
		}
		if status != http.StatusOK || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: status %d, %v, want %v", path, status, got, want)
		}
	}
	var refusal struct{ Error struct{ Name any } }
	for path, want := range map[string]int{
		"minutes/7?market=KRW-BTC": 400, "minutes/1?market=KRW-BTC&count=201": 400, "days?market=KRW-BTC&count=x": 400, "days?market=KRW-NO": 404,
	} {
		if status := ask(t, s, "/upbit/v1/candles/"+path, &refusal); status != want || refusal.Error.Name == nil {
			t.Errorf("%s: status %d, %+v, want %d and a name", path, status, refusal, want)
		}
	}
}
