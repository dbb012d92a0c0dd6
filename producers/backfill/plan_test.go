package backfill

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/producers/adapter"
)

// asked are the calls of a plan, each as market, interval and start.
func asked(p Plan) string {
	var calls []string
	for _, c := range p.Calls {
		calls = append(calls, fmt.Sprintf("%s %s %s", c.Market.Symbol, adapter.Interval(c.Interval), c.From.Format("01-02T15:04")))
	}
	return strings.Join(calls, "\n")
}

// What must be over soon reads whole markets, the first ones first, and goes on with the others another time.
func TestMarketsBeyondTheCallsAreLeftForAnotherTime(t *testing.T) {
	venue := &coinbase{}
	server := httptest.NewServer(venue)
	defer server.Close()
	j, log := newJob(t, broker(t), server.URL)
	defer log.Close()
	j.Markets = append(j.Markets, adapter.Instrument{Symbol: "SOL-USD", Base: "SOL", Quote: "USD"})
	j.Reaches = []Reach{{day, 0}, {time.Hour, 4 * time.Hour}, {time.Minute, 301 * time.Minute}}
	for _, want := range []string{
		`BTC-USD 1d 02-18T00:00
		BTC-USD 1h 03-01T09:00
		BTC-USD 1m 03-01T07:34
		ETH-EUR 1d 02-18T00:00
		ETH-EUR 1h 03-01T09:00
		ETH-EUR 1m 03-01T07:34`,
		`SOL-USD 1d 02-18T00:00
		SOL-USD 1h 03-01T09:00
		SOL-USD 1m 03-01T07:34`,
		``,
	} {
		j.MaxCalls = 8 // two markets need six, and the third three more
		plan, err := j.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want = strings.ReplaceAll(want, "\t", ""); asked(plan) != want {
			t.Fatalf("within 8 calls, got:\n%s\nwant:\n%s", asked(plan), want)
		}
		venue.calls.Store(0)
		if _, err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := int(venue.calls.Load()); got != len(plan.Calls) {
			t.Errorf("the venue was asked %d times, want %d", got, len(plan.Calls))
		}
	}
}

// Hours and days of a short absence fold from its minutes; those of a longer one do not.
func TestShortAbsenceIsReadInMinutesOnly(t *testing.T) {
	server := httptest.NewServer(&coinbase{})
	defer server.Close()
	for _, test := range []struct{ away, want string }{
		{"20h", "BTC-USD 1m 02-28T16:34\nBTC-USD 1m 02-28T21:34\nBTC-USD 1m 03-01T02:34\nBTC-USD 1m 03-01T07:34"},
		{"50h", "BTC-USD 1d 02-27T00:00\nBTC-USD 1h 02-27T10:00\n" +
			"BTC-USD 1m 02-28T12:35\nBTC-USD 1m 02-28T17:35\nBTC-USD 1m 02-28T22:35\nBTC-USD 1m 03-01T03:35\nBTC-USD 1m 03-01T08:35"},
	} {
		j, log := newJob(t, broker(t), server.URL)
		defer log.Close()
		away, err := time.ParseDuration(test.away)
		if err != nil {
			t.Fatal(err)
		}
		j.Markets = j.Markets[:1]
		j.Reaches, j.Folded = []Reach{{day, 0}, {time.Hour, 30 * day}, {time.Minute, day}}, true
		// What was read when the instance began that stopped so long ago: its minutes reached back from then.
		before := *j
		before.To = now.Add(-away)
		before.Reaches = []Reach{{day, 0}, {time.Hour, 30 * day}, {time.Minute, away + day}}
		if _, err := before.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		plan, err := j.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := asked(plan); got != test.want {
			t.Errorf("after %s, got:\n%s\nwant:\n%s", test.away, got, test.want)
		}
	}
}
