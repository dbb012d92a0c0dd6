package venues

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestCryptocomEndsAConnectionThatDoesNotAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		answers bool
		id      string // instead of the heartbeat's own
		want    string
	}{
		"answers":             {true, "", ""},
		"says nothing":        {false, "", "no answer to a heartbeat"},
		"answers another one": {true, "17", "no answer to a heartbeat"},
		"answers with no id":  {true, "0", "no answer to a heartbeat"},
	} {
		x := open(t, 1, cryptocom()).exchanges[0]
		c := x.pretend(t)
		c.beat = simulatortest.Noon
		asked := 0
		for at := simulatortest.Noon; at.Before(simulatortest.Noon.Add(2 * time.Minute)); at = at.Add(time.Second) {
			x.passing(at, at)
			for _, text := range c.texts() {
				var beat struct {
					ID     json.Number
					Method string
				}
				if err := json.Unmarshal([]byte(text), &beat); err != nil {
					t.Fatal(err)
				}
				if beat.Method != "public/heartbeat" {
					continue
				}
				asked++
				if id := string(beat.ID); test.answers {
					if test.id != "" {
						id = test.id
					}
					c.send(`{"id":` + id + `,"method":"public/respond-heartbeat"}`)
				}
			}
			if c.reason != "" && at.Sub(simulatortest.Noon) < 35*time.Second {
				t.Errorf("%s: closed %s after the beginning", name, at.Sub(simulatortest.Noon))
			}
		}
		if c.reason != test.want || asked < 1 || test.want == "" && asked != 3 {
			t.Errorf("%s: closed for %q after %d heartbeats, want %q", name, c.reason, asked, test.want)
		}
	}
}

func TestCryptocomAnswersASubscriptionWithItsHistory(t *testing.T) {
	x := open(t, 1, cryptocom()).exchanges[0]
	c := x.pretend(t)
	c.send(`{"id":7,"method":"subscribe","params":{"channels":["trade.BTC_USD","ticker.ETH_USD"]}}`)
	texts := c.texts()
	for i, want := range []string{
		`{"id":7,"method":"subscribe","code":0}`,
		`{"id":7,"method":"subscribe","code":0,"result":{"instrument_name":"BTC_USD","subscription":"trade.BTC_USD","channel":"trade","data":[{"d":"`,
		`{"id":7,"method":"subscribe","code":0,"result":{"instrument_name":"ETH_USD","subscription":"ticker.ETH_USD","channel":"ticker","data":[{"h":"`,
	} {
		if i >= len(texts) || !strings.HasPrefix(texts[i], want) {
			t.Fatalf("answer %d of %q, want %s", i, texts, want)
		}
	}
	x.passing(simulatortest.Noon, simulatortest.Noon.Add(5*time.Second))
	for _, text := range c.texts() {
		if !strings.HasPrefix(text, `{"id":-1,`) {
			t.Errorf("got %s, want the id -1 of what was not asked for", text)
		}
	}
	c.send(`{"id":8,"method":"unsubscribe","params":{"channels":["trade.BTC_USD","ticker.ETH_USD"]}}`)
	c.send(`{"id":9,"method":"subscribe","params":{"channels":["trade.BTC_USD","book.BTC_USD.10"]}}`)
	c.send(`{"id":10,"method":"public/auth"}`)
	c.send(`nothing`)
	x.passing(simulatortest.Noon.Add(6*time.Second), simulatortest.Noon.Add(9*time.Second))
	want := []string{
		`{"id":8,"method":"unsubscribe","code":0}`,
		`{"code":40003,"id":9,"message":"Unknown channel book.BTC_USD.10","method":"subscribe"}`,
		`{"code":40002,"id":10,"message":"METHOD_NOT_FOUND","method":"public/auth"}`,
		`{"code":40001,"id":-1,"message":"BAD_REQUEST","method":""}`,
	}
	if got := c.texts(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q: a request is done whole or not at all", got, want)
	}
}

func TestCryptocomCandlesAreBoundedAndOldestFirst(t *testing.T) {
	s := open(t, 1, cryptocom())
	hour := simulatortest.Noon.Truncate(time.Hour)
	for query, want := range map[string]struct {
		n           int
		first, last time.Time
	}{
		"timeframe=1h":            {25, hour.Add(-24 * time.Hour), hour},
		"timeframe=H1&count=1000": {300, hour.Add(-299 * time.Hour), hour},
		"timeframe=1D&count=2":    {2, hour.Truncate(24*time.Hour).AddDate(0, 0, -1), hour.Truncate(24 * time.Hour)},
		"timeframe=1h&start_ts=1772582400000&end_ts=1772589600000": {2, time.UnixMilli(1772582400000), time.UnixMilli(1772586000000)},
	} {
		var answer struct {
			Result struct{ Data []struct{ T int64 } }
		}
		status := ask(t, s, "/cryptocom/public/get-candlestick?instrument_name=BTC_USD&"+query, &answer)
		rows := answer.Result.Data
		first, last := oldestAndNewest(rows, func(r struct{ T int64 }) int64 { return r.T })
		if status != http.StatusOK || len(rows) != want.n || !first.Equal(want.first) || !last.Equal(want.last) {
			t.Errorf("%s: status %d, %d rows from %s to %s, want %d from %s to %s", query, status, len(rows), first, last, want.n, want.first, want.last)
		}
	}
	var refusal struct{ Code int }
	for query, code := range map[string]int{"instrument_name=BTC_USD&timeframe=9h": 40003, "instrument_name=NO_USD": 40004} {
		if status := ask(t, s, "/cryptocom/public/get-candlestick?"+query, &refusal); status != http.StatusBadRequest || refusal.Code != code {
			t.Errorf("%s: status %d, code %d, want %d", query, status, refusal.Code, code)
		}
	}
}
