package symbols_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// snapshots are those of the instants at which something was asked.
type snapshots map[int64]*views.Snapshot

func (s snapshots) At(_ context.Context, at time.Time) (*views.Snapshot, error) {
	return s[at.UnixNano()], nil
}

var resolved = []string{"/api/v1/symbols/resolve?symbol=HOT&", "/api/v1/symbols/resolve?symbol=HOT&price=2&", "/api/v1/symbols/resolve?symbol=HOT&price=40&view=tool&", "/api/v1/symbols/resolve?symbol=XBT&source=kraken&",
	"/api/v1/symbols/resolve?symbol=nothing&", "/api/v1/symbols/resolve?symbol=HOT&source=gate&"}

// Which coin a symbol means follows ranks, prices and overrides, each of which changes at any time. As of an instant it is the one of that instant, byte for byte.
func TestSymbolsAsTheyWereResolved(t *testing.T) {
	w, random := newFixture(t), streamtest.Rand(t)
	clock := func() time.Time { return w.Now }
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Prices.RememberBy(clock)
	w.Prices.Steps().Begin(clock)
	served := snapshots{}
	w.Serve(symbols.New(w.Catalog, w.Prices, w.Rates, served, w.History(), schemas.NewSymbolOverrides()).Endpoints())
	for _, coin := range []string{"bitcoin", "ethereum", "tether", "shiba-inu", "holotoken"} {
		w.Price(coin, w.Now, 10)
	}
	var answers []querytest.Answered
	different := map[string]bool{}
	for range 40 {
		w.Now = w.Now.Add(time.Duration(1000+random.IntN(20_000)) * time.Millisecond) // of a second there is one price
		switch random.IntN(4) {
		case 0, 1:
			w.Price([]string{"holotoken", "shiba-inu"}[random.IntN(2)], w.Now.Truncate(time.Second), float64(1+random.IntN(50)))
		case 2:
			for rank, coin := range []string{"holotoken", "hot-cross"} {
				marketCap := 1e6 * random.Float64()
				w.Folded(w.Now, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{CoinId: coin, Symbol: "HOT", Name: coin, Time: w.Now.UnixNano(),
					Price: float64(1 + random.IntN(50)), PriceTime: w.Now.UnixNano(), PriceSource: "coingecko", MarketCap: &marketCap, Rank: uint32(rank + 5)}}})
			}
			w.Minute(w.Now)
		case 3:
			w.Said(&eventsv1.ReferenceRecord{Producer: "override", Epoch: 1, Body: &eventsv1.ReferenceRecord_Override{Override: &eventsv1.SymbolOverride{Source: "gate", Symbol: "HOT",
				CoinId: []string{"", "holotoken", "shiba-inu", schemas.NoCoin}[random.IntN(4)], Time: w.Now.UnixNano()}}})
			w.Minute(w.Now)
		}
		w.Now = w.Now.Add(time.Duration(1+random.IntN(3000)) * time.Millisecond)
		served[w.Now.UnixNano()] = w.Catalog.Snapshot()
		was := w.Ask(w.Now, false, resolved)
		answers = append(answers, was)
		different[strings.Join(was.Bodies, "\n")] = true
	}
	if len(different) < 10 {
		t.Fatalf("only %d answers differ", len(different))
	}
	w.Now = w.Now.Add(time.Minute)
	for _, was := range answers {
		for i, body := range w.Ask(was.At, true, resolved).Bodies {
			if clean(body) != clean(was.Bodies[i]) {
				t.Errorf("%s as of %s:\n%s\nwhat was answered then:\n%s", resolved[i], was.At.Format(time.RFC3339Nano), body, was.Bodies[i])
			}
		}
	}
	at := answers[5].At.Format(time.RFC3339Nano)
	for path, want := range map[string]string{
		fmt.Sprintf("/api/v1/symbols/resolve?symbol=HOT&price=2&context[quote]=EUR&asOf=%s", at): "400",
		fmt.Sprintf("/api/v1/symbols/resolve?symbol=HOT&price=2&context[quote]=USD&asOf=%s", at): "200",
		fmt.Sprintf("/api/v1/symbols/resolve?symbol=HOT&price=2&context=eur&asOf=%s", at):        "400",
		fmt.Sprintf("/api/v1/symbols/resolve?symbol=HOT&context=eur&asOf=%s", at):                "200",
		"/api/v1/symbols/resolve?symbol=HOT&asOf=2100-01-01":                                     "400",
	} {
		if got := w.Get(path); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// clean is an answer without the id of its request.
func clean(body string) string {
	before, after, found := strings.Cut(body, `"requestId":"`)
	if !found {
		return body
	}
	_, after, _ = strings.Cut(after, `"`)
	return before + after
}
