package venues

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestOKXCandlesAreNewestFirstBetweenTheirBounds(t *testing.T) {
	s := open(t, 1, okx())
	today := simulatortest.Noon.Truncate(24 * time.Hour)
	thisHour := simulatortest.Noon.Truncate(time.Hour)
	for _, test := range []struct {
		path, query   string
		n             int
		newest, least time.Time
		confirm       string
	}{
		{"candles", "bar=1H&limit=300", 300, thisHour, thisHour.Add(-299 * time.Hour), "0"},
		{"history-candles", "bar=1H&limit=300", 100, thisHour, thisHour.Add(-99 * time.Hour), "0"},
		{"history-candles", "", 100, simulatortest.Noon.Truncate(time.Minute), simulatortest.Noon.Truncate(time.Minute).Add(-99 * time.Minute), "0"},
		{"history-candles", "bar=1Dutc&limit=2", 2, today, today.AddDate(0, 0, -1), "0"},
		// Days begin in Hong Kong, at 16:00 of the day before.
		{"history-candles", "bar=1D&limit=2", 2, today.Add(-8 * time.Hour), today.Add(-32 * time.Hour), "0"},
		{
			"history-candles", fmt.Sprintf("bar=1H&after=%d&before=%d", today.UnixMilli(), today.Add(-5*time.Hour).UnixMilli()-1), 5,
			today.Add(-time.Hour), today.Add(-5 * time.Hour), "1",
		},
		{
			"history-candles", fmt.Sprintf("bar=1H&after=%d&before=%d", today.UnixMilli()+1, today.Add(-5*time.Hour).UnixMilli()), 5,
			today, today.Add(-4 * time.Hour), "1",
		},
	} {
		target := "/okx/api/v5/market/" + test.path + "?instId=BTC-USDT&" + test.query
		var answer struct {
			Code string
			Data [][]string
		}
		if status := ask(t, s, target, &answer); status != http.StatusOK || answer.Code != "0" || len(answer.Data) != test.n {
			t.Errorf("%s: status %d, code %s, %d rows, want %d", target, status, answer.Code, len(answer.Data), test.n)
			continue
		}
		start := func(row []string) time.Time {
			n, _ := strconv.ParseInt(row[0], 10, 64)
			return time.UnixMilli(n).UTC()
		}
		newest, oldest := answer.Data[0], answer.Data[test.n-1]
		if start(newest) != test.newest || start(oldest) != test.least || newest[8] != test.confirm || oldest[8] != "1" {
			t.Errorf("%s: from %s to %s, confirm %s, want %s to %s, %s", target, start(newest), start(oldest), newest[8], test.newest, test.least, test.confirm)
		}
	}
	for query, code := range map[string]string{
		"instId=BTC-EUS": "51001", "instId=BTC-USDT&bar=1h": "51000", "instId=BTC-USDT&limit=no": "51000", "instId=BTC-USDT&after=no": "51000",
	} {
		var answer struct{ Code string }
		if ask(t, s, "/okx/api/v5/market/history-candles?"+query, &answer); answer.Code != code {
			t.Errorf("%s: code %s, want %s", query, answer.Code, code)
		}
	}
}

// Every endpoint has a limit of its own.
func TestOKXEndpointsAreLimited(t *testing.T) {
	s := open(t, 1, okx())
	refused := 0
	var answer json.RawMessage
	for range 30 {
		if ask(t, s, "/okx/api/v5/market/tickers?instType=SPOT", &answer) == http.StatusTooManyRequests {
			refused++
			if !strings.Contains(string(answer), "50011") {
				t.Errorf("refused with %s", answer)
			}
		}
	}
	if refused != 9 { // 20 in two seconds, and the tolerance one more
		t.Errorf("%d of 30 requests are refused, want 9", refused)
	}
	if status := ask(t, s, "/okx/api/v5/market/ticker?instId=BTC-USDT", &answer); status != http.StatusOK {
		t.Errorf("another endpoint: status %d", status)
	}
}

func TestOKXSaysWhatItDidToEachChannel(t *testing.T) {
	x := open(t, 1, okx()).exchanges[0]
	c := x.pretend(t)
	for _, test := range []struct {
		send string
		want []string
	}{
		{"ping", []string{"pong"}},
		{
			`{"op":"subscribe","args":[{"channel":"trades","instId":"BTC-USDT"},{"channel":"tickers","instId":"ETH-USDT"}]}`,
			[]string{
				`{"event":"subscribe","arg":{"channel":"trades","instId":"BTC-USDT"},"connId":"`, `{"arg":{"channel":"trades","instId":"BTC-USDT"},"data":[{`,
				`{"event":"subscribe","arg":{"channel":"tickers","instId":"ETH-USDT"},"connId":"`, `{"arg":{"channel":"tickers","instId":"ETH-USDT"},"data":[{`,
			},
		},
		{
			`{"op":"subscribe","args":[{"channel":"trades","instId":"BTC-EUS"},{"channel":"tickers","instId":"ETH-USDC"}]}`,
			[]string{`{"event":"error","code":"60018","msg":"Wrong URL or channel:trades,instId:BTC-EUS`, `{"event":"subscribe"`, `{"arg"`},
		},
		{`{"op":"unsubscribe","args":[{"channel":"trades","instId":"BTC-USDT"}]}`, []string{`{"event":"unsubscribe","arg":{"channel":"trades"`}},
		{`{"op":"sing"}`, []string{`{"event":"error","code":"60012"`}},
	} {
		c.send(test.send)
		received := c.receivedSince()
		if len(received) != len(test.want) {
			t.Fatalf("%s: %d answers, want %d", test.send, len(received), len(test.want))
		}
		for i, m := range received {
			if !strings.HasPrefix(string(m.bytes), test.want[i]) {
				t.Errorf("%s: got %s, want %s", test.send, m.bytes, test.want[i])
			}
		}
	}
	if got := len(c.topics); got != 2 {
		t.Errorf("%d subscriptions, want 2", got)
	}
	for range 480 {
		c.send(`{"op":"unsubscribe","args":[]}`)
	}
	if c.reason != "Requests too frequent" {
		t.Errorf("after more than 480 requests in an hour: %q", c.reason)
	}
}

func TestConnectionWithoutTrafficEnds(t *testing.T) {
	x := open(t, 1, okx()).exchanges[0]
	mute, asking := x.pretend(t), x.pretend(t)
	for _, c := range []client{mute, asking} {
		c.send(`{"op":"subscribe","args":[{"channel":"tickers","instId":"BTC-USDT"}]}`)
		c.send(`{"op":"unsubscribe","args":[{"channel":"tickers","instId":"BTC-USDT"}]}`)
		c.send(`{"op":"subscribe","args":[{"channel":"trades","instId":"BTC-USDT"}]}`)
	}
	delete(x.feeds, x.Market("BTC-USDT")) // and it is not traded
	x.due = nil
	x.pump(simulatortest.Noon.Add(20 * time.Second))
	asking.send("ping")
	x.maintain(simulatortest.Noon.Add(31 * time.Second))
	if mute.reason != "nothing to say" || asking.reason != "" {
		t.Errorf("after half a minute of silence: %q, and %q with a ping, want only the first to end", mute.reason, asking.reason)
	}
}
