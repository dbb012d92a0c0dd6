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

func TestBitgetCandlesAreOldestFirst(t *testing.T) {
	s := open(t, 1, bitget())
	today, thisHour := simulatortest.Noon.Truncate(24*time.Hour), simulatortest.Noon.Truncate(time.Hour)
	for _, test := range []struct {
		query       string
		n           int
		first, last time.Time
	}{
		{"candles?granularity=1h", 100, thisHour.Add(-99 * time.Hour), thisHour},
		{"candles?granularity=1Dutc&limit=1200", 1000, today.AddDate(0, 0, -999), today},
		{"candles?granularity=1day&limit=2", 2, today.Add(-32 * time.Hour), today.Add(-8 * time.Hour)},
		{
			fmt.Sprintf("candles?granularity=1h&startTime=%d&endTime=%d", today.UnixMilli(), today.Add(2*time.Hour).UnixMilli()), 2,
			today, today.Add(time.Hour),
		},
		{
			fmt.Sprintf("history-candles?granularity=1min&endTime=%d&limit=1000", today.UnixMilli()), 200,
			today.Add(-200 * time.Minute), today.Add(-time.Minute),
		},
	} {
		var answer struct {
			Code string
			Data [][]string
		}
		target := "/bitget/api/v2/spot/market/" + test.query + "&symbol=BTCUSDT"
		if status := ask(t, s, target, &answer); status != http.StatusOK || answer.Code != "00000" || len(answer.Data) != test.n {
			t.Errorf("%s: status %d, code %s, %d rows, want %d", target, status, answer.Code, len(answer.Data), test.n)
			continue
		}
		start := func(row []string) time.Time {
			n, _ := strconv.ParseInt(row[0], 10, 64)
			return time.UnixMilli(n).UTC()
		}
		if first, last := start(answer.Data[0]), start(answer.Data[test.n-1]); first != test.first || last != test.last {
			t.Errorf("%s: from %s to %s, want %s to %s", target, first, last, test.first, test.last)
		}
	}
	for query, code := range map[string]string{
		"candles?symbol=BTCEUS&granularity=1h": "40034", "candles?symbol=BTCUSDT&granularity=1H": "400172", "history-candles?symbol=BTCUSDT&granularity=1h": "400172",
	} {
		var answer struct{ Code string }
		if status := ask(t, s, "/bitget/api/v2/spot/market/"+query, &answer); status != http.StatusBadRequest || answer.Code != code {
			t.Errorf("%s: status %d, code %s, want 400 and %s", query, status, answer.Code, code)
		}
	}
}

func TestBitgetAcknowledgesEachChannel(t *testing.T) {
	x := open(t, 1, bitget()).exchanges[0]
	c := x.pretend(t)
	for _, test := range []struct {
		send string
		want []string
	}{
		{"ping", []string{"pong"}},
		{
			`{"op":"subscribe","args":[{"instType":"SPOT","channel":"trade","instId":"BTCUSDT"},{"instType":"SPOT","channel":"ticker","instId":"BTCEUS"}]}`,
			[]string{
				`{"event":"subscribe","arg":{"instType":"SPOT","channel":"trade","instId":"BTCUSDT"}}`,
				`{"action":"snapshot","arg":{"instType":"SPOT","channel":"trade","instId":"BTCUSDT"},"data":[{"ts":"`,
				`{"event":"error","arg":{"instType":"SPOT","channel":"ticker","instId":"BTCEUS"},"code":30001,`,
			},
		},
		{
			`{"op":"unsubscribe","args":[{"instType":"SPOT","channel":"trade","instId":"BTCUSDT"}]}`,
			[]string{`{"event":"unsubscribe","arg":{"instType":"SPOT","channel":"trade"`},
		},
		{`{"op":"login"}`, []string{`{"event":"error","code":30003,`}},
		{`{"op":"subscribe","args":[]` + strings.Repeat(" ", 4096) + `}`, []string{`{"event":"error","code":30002,`}},
	} {
		c.send(test.send)
		received := c.receivedSince()
		if len(received) != len(test.want) {
			t.Fatalf("%.200s: %d answers, want %d", test.send, len(received), len(test.want))
		}
		for i, m := range received {
			if !strings.HasPrefix(string(m.bytes), test.want[i]) {
				t.Errorf("%.200s: got %.300s, want %s", test.send, m.bytes, test.want[i])
			}
		}
	}
	for range 245 {
		c.send(`{"op":"unsubscribe","args":[]}`)
	}
	if c.reason != "request over limit" {
		t.Errorf("after more than 240 requests in an hour: %q", c.reason)
	}
}

// A snapshot is the newest first, and the updates go on after it without a gap.
func TestBitgetUpdatesFollowTheSnapshot(t *testing.T) {
	x := open(t, 1, bitget()).exchanges[0]
	c := x.pretend(t)
	c.send(`{"op":"subscribe","args":[{"instType":"SPOT","channel":"trade","instId":"BTCUSDT"}]}`)
	x.pump(simulatortest.Noon.Add(20 * time.Second))
	next, updates := int64(0), 0
	for _, m := range c.receivedSince() {
		var frame struct {
			Action string
			Data   []struct {
				ID string `json:"tradeId"`
			}
		}
		if err := json.Unmarshal(m.bytes, &frame); err != nil {
			t.Fatal(err)
		}
		for i, row := range frame.Data {
			id, err := strconv.ParseInt(row.ID, 10, 64)
			switch {
			case err != nil:
				t.Fatal(err)
			case frame.Action == "update" && id != next:
				t.Fatalf("an update is trade %d, want %d", id, next)
			case i == 0:
				next = id + 1
			case id != next-1-int64(i):
				t.Fatalf("row %d of the snapshot is trade %d, the first %d", i, id, next-1)
			}
		}
		if frame.Action == "update" {
			updates++
		}
	}
	if updates == 0 {
		t.Error("no trade in 20 s")
	}
}
