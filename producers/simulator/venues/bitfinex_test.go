package venues

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/simulator/market"
	"github.com/marketlog/marketlog/producers/simulator/simulatortest"
)

func TestBitfinexNamesChannelsByConnection(t *testing.T) {
	x := open(t, 1, bitfinex()).exchanges[0]
	a, b := x.pretend(t), x.pretend(t)
	a.send(`{"event":"subscribe","channel":"ticker","symbol":"tBTCUSD"}`)
	a.send(`{"event":"subscribe","channel":"trades","symbol":"tBTCUSD"}`)
	b.send(`{"event":"conf","flags":98304}`)
	b.send(`{"event":"subscribe","channel":"trades","symbol":"tBTCUSD"}`)
	a.texts()
	b.texts()
	x.passing(simulatortest.Noon, simulatortest.Noon.Add(10*time.Second))
	framesA, framesB := []string{}, []string{}
	for _, text := range a.texts() {
		if trade, ok := strings.CutPrefix(text, "[2,"); ok {
			framesA = append(framesA, trade)
		} else if !strings.HasPrefix(text, "[1,[") {
			t.Errorf("got %s, want a trade on channel 2 or a ticker on channel 1", text)
		}
	}
	for i, text := range b.texts() {
		trade, ok := strings.CutPrefix(text, "[1,")
		parts := strings.Split(trade, ",")
		if !ok || len(parts) != 7 || parts[5] != fmt.Sprint(i+2) {
			t.Fatalf("got %s, want a trade on channel 1 with the sequence number %d", text, i+2)
		}
		framesB = append(framesB, strings.Join(parts[:5], ",")+"]")
	}
	if len(framesA) < 4 || strings.Join(framesA, "\n") != strings.Join(framesB, "\n") {
		t.Fatalf("one connection hears %q, the other %q", framesA, framesB)
	}
	for i := 0; i < len(framesA); i += 2 {
		if te, ok := strings.CutPrefix(framesA[i], `"te",`); !ok || framesA[i+1] != `"tu",`+te {
			t.Errorf("got %s and %s, want te and the same as tu", framesA[i], framesA[i+1])
		}
	}
}

func TestBitfinexBeatsOnQuietChannelsOnly(t *testing.T) {
	x := openWith(1, Config{Clock: simulatortest.Fixed(simulatortest.Noon), Venues: []Venue{bitfinex()}, Rate: 20}).exchanges[0]
	c := x.pretend(t)
	quiet := slices.MinFunc(x.markets, func(a, b *market.Market) int { return cmp.Compare(a.TradesPerDay(), b.TradesPerDay()) })
	c.send(`{"event":"subscribe","channel":"trades","symbol":"tBTCUSD"}`)
	c.send(`{"event":"subscribe","channel":"trades","symbol":"` + quiet.Symbol + `"}`)
	c.texts()
	last := map[string]time.Time{"1": simulatortest.Noon, "2": simulatortest.Noon}
	beats := 0
	for at := simulatortest.Noon; at.Before(simulatortest.Noon.Add(3 * time.Minute)); at = at.Add(time.Second) {
		x.passing(at, at)
		for _, text := range c.texts() {
			channel, rest, _ := strings.Cut(text[1:], ",")
			if rest == `"hb"]` {
				beats++
				if at.Sub(last[channel]) < bitfinexQuiet {
					t.Errorf("a heartbeat %s after the channel's last word", at.Sub(last[channel]))
				}
			}
			last[channel] = at
		}
		for channel, when := range last {
			if at.Sub(when) > bitfinexQuiet+6*time.Second {
				t.Fatalf("nothing on channel %s for %s", channel, at.Sub(when))
			}
		}
	}
	if beats == 0 {
		t.Error("no heartbeat in three minutes of a quiet market")
	}
}

func TestBitfinexRefusesInItsOwnFormat(t *testing.T) {
	x := open(t, 1, bitfinex()).exchanges[0]
	c := x.pretend(t)
	c.texts()
	for _, test := range []struct{ message, want string }{
		{`{"event":"subscribe","channel":"ticker","symbol":"tNOSUCH"}`, `"code":10300`},
		{`{"event":"subscribe","channel":"candles","key":"trade:1m:tBTCUSD"}`, `"code":10302`},
		{`{"event":"unsubscribe","chanId":9}`, `"code":10400`},
		{`{"event":"dance"}`, `"code":10000`},
		{`{`, `"code":10000`},
		{`{"event":"ping","cid":5}`, `"cid":5,"event":"pong"`},
		{`{"event":"subscribe","channel":"ticker","symbol":"tBTCUSD"}`, `"chanId":1,"channel":"ticker","event":"subscribed"`},
		{`{"event":"subscribe","channel":"ticker","symbol":"tBTCUSD"}`, `"code":10301`},
		{`{"event":"unsubscribe","chanId":1}`, `"chanId":1,"event":"unsubscribed"`},
		{`{"event":"subscribe","channel":"ticker","symbol":"tBTCUSD"}`, `"chanId":2`},
	} {
		c.send(test.message)
		if got := c.texts(); len(got) == 0 || !strings.Contains(got[0], test.want) {
			t.Errorf("%s: got %q, want %s", test.message, got, test.want)
		}
	}
	for _, m := range x.markets[:26] {
		c.send(`{"event":"subscribe","channel":"trades","symbol":"` + m.Symbol + `"}`)
	}
	if all := strings.Join(c.texts(), "\n"); strings.Count(all, `"subscribed"`) != 24 || !strings.Contains(all, `"code":10305`) || c.reason == "" {
		t.Errorf("beyond 25 channels: closed for %q after %d more and %v", c.reason, strings.Count(all, `"subscribed"`), strings.Contains(all, "10305"))
	}
}

func TestBitfinexNumbersAreJavaScripts(t *testing.T) {
	for _, test := range []struct {
		d    market.Decimal
		want string
	}{
		{market.Exact(10645, 0), "10645"}, {market.Exact(106450, 1), "10645"}, {market.Exact(-25, 6), "-0.000025"}, {market.Exact(1, 6), "0.000001"},
		{market.Exact(2229, 10), "2.229e-7"}, {market.Exact(-50, 9), "-5e-8"}, {market.Exact(0, 8), "0"},
	} {
		if got := string(bitfinexNumber(nil, test.d)); got != test.want {
			t.Errorf("%v: got %s, want %s", test.d, got, test.want)
		}
	}
}

func TestBitfinexCandlesAreBoundedAndNewestFirst(t *testing.T) {
	s := open(t, 1, bitfinex())
	hour := simulatortest.Noon.Truncate(time.Hour)
	for path, want := range map[string]struct {
		n           int
		first, last time.Time
	}{
		"trade:1h:tBTCUSD/hist":                                                      {100, hour, hour.Add(-99 * time.Hour)},
		"trade:1h:tBTCUSD/hist?limit=3":                                              {3, hour, hour.Add(-2 * time.Hour)},
		"trade:1D:tETHUST/hist?limit=10000&sort=1":                                   {10000, hour.Truncate(24*time.Hour).AddDate(0, 0, -9999), hour.Truncate(24 * time.Hour)},
		"trade:1h:tBTCUSD/hist?start=1772582400000":                                  {13, hour, time.UnixMilli(1772582400000)},
		"trade:1h:tBTCUSD/hist?start=1772582400000&end=1772589600000&sort=1&limit=2": {2, time.UnixMilli(1772582400000), time.UnixMilli(1772586000000)},
	} {
		var rows [][]json.Number
		status := ask(t, s, "/bitfinex/v2/candles/"+path, &rows)
		first, last := oldestAndNewest(rows, func(r []json.Number) int64 { n, _ := r[0].Int64(); return n })
		if status != http.StatusOK || len(rows) != want.n || !first.Equal(want.first) || !last.Equal(want.last) {
			t.Errorf("%s: status %d, %d rows from %s to %s, want %d from %s to %s", path, status, len(rows), first, last, want.n, want.first, want.last)
		}
	}
	var newest []json.Number
	if ask(t, s, "/bitfinex/v2/candles/trade:1m:tBTCUSD/last", &newest); len(newest) != 6 || newest[0].String() != fmt.Sprint(simulatortest.Noon.Truncate(time.Minute).UnixMilli()) {
		t.Errorf("the newest minute is %v", newest)
	}
	var refusal []any
	if status := ask(t, s, "/bitfinex/v2/candles/trade:9h:tBTCUSD/hist", &refusal); status != http.StatusInternalServerError || refusal[0] != "error" {
		t.Errorf("an unknown interval: status %d, %v", status, refusal)
	}
}

// A coin whose rank is beyond that of a venue's quotes is listed where the venue names it.
func TestBitfinexListsTheStablecoinOfTheYuan(t *testing.T) {
	x := open(t, 1, bitfinex()).exchanges[0]
	m := x.Market("tCNHT:USD")
	if m == nil {
		t.Fatal("tCNHT:USD is not listed")
	}
	if mid := m.Mid(simulatortest.Noon.UnixNano()); mid < 0.13 || mid > 0.15 {
		t.Errorf("CNHT costs %g USD, want about a seventh", mid)
	}
}
