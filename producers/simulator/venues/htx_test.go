package venues

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestHTXSpellsDoublesAsJavaDoes(t *testing.T) {
	for _, test := range []struct {
		d    market.Decimal
		want string
	}{
		{market.Exact(92, 8), "9.2E-7"},
		{market.Exact(158, 6), "1.58E-4"},
		{market.Exact(1000, 9), "1.0E-6"},
		{market.Exact(1, 3), "0.001"},
		{market.Exact(716, 0), "716.0"},
		{market.Exact(2099588, 2), "20995.88"},
		{market.Exact(10_245_291_601_400, 6), "1.02452916014E7"},
		{market.Exact(9_999_999, 0), "9999999.0"},
		{market.Exact(10_000_000, 0), "1.0E7"},
		{market.Exact(-92, 8), "-9.2E-7"},
		{market.Exact(0, 4), "0.0"},
	} {
		if got := string(appendDouble(nil, test.d)); got != test.want {
			t.Errorf("%v: got %s, want %s", test.d, got, test.want)
		}
	}
}

// unpacked inflates a frame of the feed with another reader than the one that wrote it.
func unpacked(t *testing.T, frame []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(frame))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHTXPacksEveryFrame(t *testing.T) {
	x := open(t, 1, htx()).exchanges[0]
	c := x.pretend(t)
	for _, test := range []struct {
		send string
		want []string
	}{
		{`{"ping":18}`, []string{`{"pong":18}`}},
		{`{"sub":"market.btcusdt.ticker","id":"a"}`, []string{`{"id":"a","status":"ok","subbed":"market.btcusdt.ticker","ts":`, `{"ch":"market.btcusdt.ticker",`}},
		{`{"sub":"market.btcusdt.trade.detail","id":1}`, []string{`{"id":1,"status":"ok","subbed":"market.btcusdt.trade.detail","ts":`, `{"ch":"market.btcusdt.trade.detail",`}},
		{`{"sub":"market.btceus.ticker","id":"a"}`, []string{`{"ts":1772627696789,"status":"error","id":"a","err-code":"bad-request","err-msg":"invalid topic market.btceus.ticker"}`}},
		{`{"unsub":"market.btcusdt.ticker","id":"a"}`, []string{`{"id":"a","status":"ok","ts":1772627696789,"unsubbed":"market.btcusdt.ticker"}`}},
		{`{"pong":18}`, nil},
	} {
		c.send(test.send)
		received := c.receivedSince()
		if len(received) != len(test.want) {
			t.Fatalf("%s: %d answers, want %d", test.send, len(received), len(test.want))
		}
		for i, m := range received {
			if got := unpacked(t, m.bytes); !m.binary || !strings.HasPrefix(got, test.want[i]) {
				t.Errorf("%s: got %s (binary %t), want %s", test.send, got, m.binary, test.want[i])
			}
		}
	}
	x.pump(simulatortest.Noon.Add(10 * time.Second))
	trades := c.receivedSince()
	for _, m := range trades {
		if got := unpacked(t, m.bytes); !m.binary || !strings.HasPrefix(got, `{"ch":"market.btcusdt.trade.detail",`) {
			t.Errorf("got %s (binary %t), want trades only", got, m.binary)
		}
	}
	if len(trades) == 0 {
		t.Error("no trade in 10 s")
	}
}

func TestHTXEndsConnectionsThatDoNotAnswerPings(t *testing.T) {
	x := open(t, 1, htx()).exchanges[0]
	mute, good := x.pretend(t), x.pretend(t)
	mute.beat, good.beat = simulatortest.Noon, simulatortest.Noon
	for i := 1; i <= 4; i++ {
		if (mute.reason != "") != (i > 3) || good.reason != "" {
			t.Fatalf("before ping %d: %q, and %q with answers", i, mute.reason, good.reason)
		}
		x.maintain(simulatortest.Noon.Add(time.Duration(i) * 5 * time.Second))
		for _, m := range good.receivedSince() {
			good.send(strings.Replace(unpacked(t, m.bytes), "ping", "pong", 1))
		}
	}
	if mute.reason != "no pong" || good.reason != "" {
		t.Errorf("after two pings without an answer: %q, and %q with answers", mute.reason, good.reason)
	}
}

func TestHTXCandlesAreTheNewestFirst(t *testing.T) {
	s := open(t, 1, htx())
	for _, test := range []struct {
		query string
		n     int
		first time.Time
		step  time.Duration
	}{
		{"period=60min", 150, simulatortest.Noon.Truncate(time.Hour), time.Hour},
		{"period=1min&size=2000", 2000, simulatortest.Noon.Truncate(time.Minute), time.Minute},
		{"period=1day&size=3", 3, simulatortest.Noon.Truncate(24 * time.Hour).Add(-8 * time.Hour), 24 * time.Hour}, // in Singapore
	} {
		var answer struct {
			Status string
			Ch     string
			Data   []struct{ ID int64 }
		}
		status := ask(t, s, "/htx/market/history/kline?symbol=btcusdt&"+test.query, &answer)
		if status != http.StatusOK || answer.Status != "ok" || !strings.HasPrefix(answer.Ch, "market.btcusdt.kline.") || len(answer.Data) != test.n {
			t.Errorf("%s: status %d, %s, %s, %d rows, want %d", test.query, status, answer.Status, answer.Ch, len(answer.Data), test.n)
			continue
		}
		for i, row := range answer.Data {
			if want := test.first.Add(-time.Duration(i) * test.step).Unix(); row.ID != want {
				t.Errorf("%s: row %d is of %d, want %d", test.query, i, row.ID, want)
				break
			}
		}
	}
	for _, query := range []string{"symbol=btceus&period=1min", "symbol=btcusdt&period=1m", "symbol=btcusdt&period=1min&size=2001"} {
		var answer struct {
			Status string
			Code   string `json:"err-code"`
		}
		if ask(t, s, "/htx/market/history/kline?"+query, &answer); answer.Status != "error" || answer.Code != "invalid-parameter" {
			t.Errorf("%s: got %+v, want a refusal", query, answer)
		}
	}
}
