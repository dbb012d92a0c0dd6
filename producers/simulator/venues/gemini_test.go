package venues

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestGeminiDoesARequestWholeOrNotAtAll(t *testing.T) {
	x := open(t, 1, gemini()).exchanges[0]
	c := x.pretend(t)
	for _, test := range []struct{ message, want string }{
		{`{"id":"a","method":"SUBSCRIBE","params":["btcusd@trade","btcusd@depth"]}`, `{"id":"a","status":400,"error":{"code":-1013,"msg":"Invalid stream"}}`},
		{`{"id":2,"method":"SUBSCRIBE","params":["nosuch@trade"]}`, `{"id":2,"status":400,"error":{"code":-1013,"msg":"Invalid stream"}}`},
		{`{"method":"dance"}`, `{"id":null,"status":400,"error":{"code":-1013,"msg":"Invalid method"}}`},
		{`{`, `{"id":null,"status":400,"error":{"code":-1013,"msg":"Invalid request"}}`},
		{`{"id":"p","method":"ping"}`, `{"id":"p","status":200,"result":{}}`},
		{`{"id":"t","method":"time"}`, `{"id":"t","status":200,"result":{"serverTime":1772627696789}}`},
	} {
		c.send(test.message)
		if got := c.texts(); len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: got %q, want %s", test.message, got, test.want)
		}
	}
	x.passing(simulatortest.Noon, simulatortest.Noon.Add(10*time.Second))
	if got := c.texts(); len(got) > 0 {
		t.Errorf("after refusals: got %q, want nothing", got)
	}
	c.send(`{"id":3,"method":"SUBSCRIBE","params":["BTCUSD@trade","btcusd@bookTicker"]}`)
	x.passing(simulatortest.Noon.Add(11*time.Second), simulatortest.Noon.Add(30*time.Second))
	trades, quotes := 0, 0
	for i, text := range c.texts() {
		switch {
		case i == 0 && text == `{"id":3,"status":200}`:
		case strings.HasPrefix(text, `{"E":`) && strings.Contains(text, `,"s":"btcusd","t":`):
			trades++
		case strings.HasPrefix(text, `{"u":`) && strings.Contains(text, `,"s":"btcusd","b":`):
			quotes++
		default:
			t.Errorf("got %s", text)
		}
	}
	if trades == 0 || quotes == 0 {
		t.Errorf("%d trades and %d quotes in 20 s, want some of each", trades, quotes)
	}
	c.send(`{"id":4,"method":"UNSUBSCRIBE","params":["btcusd@trade","btcusd@bookTicker"]}`)
	x.passing(simulatortest.Noon.Add(31*time.Second), simulatortest.Noon.Add(60*time.Second))
	if got := c.texts(); len(got) != 1 || got[0] != `{"id":4,"status":200}` {
		t.Errorf("after unsubscribing: got %q", got)
	}
}

// Names without a separator identify base and quote only if no other pair reads the same.
func TestGeminiListsNoNameThatReadsAsTwoPairs(t *testing.T) {
	x := open(t, 1, gemini()).exchanges[0]
	for _, m := range x.Markets() {
		longest := ""
		for _, q := range x.venue.Quotes {
			if base, ok := strings.CutSuffix(strings.ToUpper(m.Symbol), q.Asset); ok && base != "" && len(q.Asset) > len(longest) {
				longest = q.Asset
			}
		}
		if longest != m.Quote && m.Symbol != "paxgusd" { // well known: gold, in dollars
			t.Errorf("%s is %s in %s, and reads as one in %s", m.Symbol, m.Base, m.Quote, longest)
		}
	}
}

func TestGeminiCandlesAreNewestFirst(t *testing.T) {
	s := open(t, 1, gemini())
	for interval, want := range map[string]struct {
		n      int
		newest time.Time
	}{
		"1m": {1440, simulatortest.Noon.Truncate(time.Minute)}, "1hr": {1440, simulatortest.Noon.Truncate(time.Hour)}, "1day": {365, simulatortest.Noon.Truncate(24 * time.Hour)},
	} {
		var rows [][]float64
		status := ask(t, s, "/gemini/v2/candles/BTCUSD/"+interval, &rows)
		first, last := oldestAndNewest(rows, func(r []float64) int64 { return int64(r[0]) })
		if status != http.StatusOK || len(rows) != want.n || !first.Equal(want.newest) || !last.Before(first) {
			t.Errorf("%s: status %d, %d rows from %s to %s, want %d from %s on", interval, status, len(rows), first, last, want.n, want.newest)
		}
	}
	var refusal struct{ Result, Reason string }
	for path, reason := range map[string]string{"btcusd/9h": "InvalidTimeFrame", "nosuch/1m": "InvalidSymbol"} {
		if status := ask(t, s, "/gemini/v2/candles/"+path, &refusal); status != http.StatusBadRequest || refusal.Result != "error" || refusal.Reason != reason {
			t.Errorf("%s: status %d, %+v, want %s", path, status, refusal, reason)
		}
	}
}
