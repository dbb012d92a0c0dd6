package prices_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// TestEveryPastPriceIsReproduced explains random past prices; an altered one must be called a defect.
func TestEveryPastPriceIsReproduced(t *testing.T) {
	w := newFixture(t)
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	const published = 300
	venues := []string{"binance", "bitstamp", "coinbase", "kraken", "okx"}
	quotes := map[string]float64{"USD": 1, "tether": 0.9991, "EUR": 1.0837, "bitcoin": 97_123.45}
	for i := range published {
		w.now = start.Add(time.Duration(i) * time.Second)
		for range 2 {
			venue := venues[random.IntN(len(venues))]
			for quote, rate := range quotes {
				if random.IntN(2) == 0 {
					continue
				}
				last := 100_000 / rate * (1 + (random.Float64()-0.5)*0.01)
				if random.IntN(20) == 0 {
					last *= 3
				}
				w.market("bitcoin", []string{venue, "BTC-" + quote, quote, fmt.Sprint("last=", last), fmt.Sprint("bid=", last*0.9999), fmt.Sprint("ask=", last*1.0002),
					fmt.Sprint("rate=", rate), fmt.Sprint("volume=", random.Float64()*1e6)})
			}
		}
		w.price("bitcoin", false)
	}
	w.now = start.Add(published * time.Second)
	altered := w.past["bitcoin"][42]
	for i := range 1000 {
		at := start.Add(time.Duration(random.IntN(published*1000)) * time.Millisecond)
		if i == 999 {
			altered.GetPrice().Inputs[0].Last *= 1.5
			altered.GetPrice().Inputs[0].Bid = 0
			at = time.Unix(0, altered.GetPrice().Time).UTC()
		}
		response, err := http.Get(w.base + "/api/v1/prices/btc/explain?asOf=" + at.Format(time.RFC3339Nano))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("as of %s: %d %s %v", at, response.StatusCode, content, err)
		}
		var body prices.ExplainBody
		if err := json.Unmarshal(content, &body); err != nil {
			t.Fatal(err)
		}
		if want := i != 999; body.Data.Reproduced != want {
			t.Fatalf("as of %s: reproduced is %v, want %v: %s", at, body.Data.Reproduced, want, content)
		}
		if i != 999 && body.Data.Timestamp != query.FormatTime(at.Truncate(time.Second).UnixNano()) {
			t.Fatalf("as of %s the price of %s is explained", at, body.Data.Timestamp)
		}
	}
}

// TestRegionsAggregateByTheSameRule compares with the rule applied to the providers left over.
func TestRegionsAggregateByTheSameRule(t *testing.T) {
	w := newFixture(t)
	w.run("now 2026-11-20T10:00:00Z")
	w.run("market bitcoin kraken BTC/USD USD last=100")
	w.run("market bitcoin coinbase BTC-USD USD last=104")
	w.run("market bitcoin okx BTC-USDT tether last=101 rate=0.999")
	w.run("price bitcoin")
	for country, slugs := range map[string][]string{"us": {"coinbase", "kraken", "okx"}, "fr": {"kraken", "okx"}, "jp": {"okx"}} {
		var inputs []*eventsv1.PriceInput
		for _, in := range w.markets["bitcoin"] {
			for _, slug := range slugs {
				if in.Provider == slug {
					inputs = append(inputs, in)
				}
			}
		}
		want, _ := schemas.Aggregate(inputs, w.now.UnixNano())
		response, err := http.Get(w.base + "/api/v1/prices/btc?region=" + country)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Data struct{ Aggregated prices.Aggregated }
		}
		err = json.NewDecoder(response.Body).Decode(&body)
		response.Body.Close()
		if got := body.Data.Aggregated; err != nil || got.Price != want.Price || got.Providers != len(slugs) {
			t.Errorf("%s: got %g of %d providers (%v), want %g of %v", country, got.Price, got.Providers, err, want.Price, slugs)
		}
	}
}
