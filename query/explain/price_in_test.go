package explain_test

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/prices"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// middle is the median: of an even number, the mean of the two in the middle.
func middle(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// A price in another currency and of the venues that serve a country is explained as it is answered: by the median over these venues, and by the rate.
func TestPricesInCurrenciesAndRegionsAreReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	eur := 1 + random.Float64()
	w.fixing(&eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: plain(eur), Date: "2026-11-20", IngestTime: w.Now.UnixNano()})
	w.Minute(w.Now)
	w.Pulse()
	votes := map[string]map[string]float64{"bitcoin": {}, "ethereum": {}}
	for coin, base := range map[string]float64{"bitcoin": 97_000, "ethereum": 4_000} {
		for _, venue := range []string{"kraken", "coinbase", "okx", "bitstamp"} {
			if venue == "kraken" || venue == "coinbase" || random.IntN(2) == 0 {
				votes[coin][venue] = base * (1 + random.Float64()/100)
				w.tick(coin, venue, strings.ToUpper(coin[:3])+"/USD", votes[coin][venue], "USD", 1)
			}
		}
		w.publish(coin)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-12*want }
	for _, vs := range []string{"usd", "eur", "btc"} {
		for _, region := range []string{"", "DE", "US"} {
			params := "?vs=" + vs
			if region != "" {
				params += "&region=" + region
			}
			var body struct {
				Data struct{ Aggregated prices.Aggregated }
			}
			w.read("/api/v1/prices/ETH"+params, &body)
			got := body.Data.Aggregated
			var own, all []float64
			for venue, vote := range votes["ethereum"] {
				if venue != "coinbase" || region != "DE" {
					own = append(own, vote)
				}
			}
			for _, vote := range votes["bitcoin"] {
				all = append(all, vote)
			}
			per := map[string]float64{"usd": 1, "eur": eur, "btc": middle(all)}[vs]
			region := map[string]string{"": "all"}[region] + region
			want := map[string]float64{"": middle(own) / per, "/min": slices.Min(own) / per, "/max": slices.Max(own) / per, "/providers": float64(len(own)), "/rejected": 0}
			answered := map[string]float64{"": got.Price, "/min": got.Min, "/max": got.Max, "/providers": float64(got.Providers), "/rejected": float64(got.Rejected), "/confidence": got.Confidence, "/score": *got.Score,
				"/volume24h": *got.Volume24h}
			for field, value := range answered {
				number := "price-in/" + vs + "/" + region + "/ethereum" + field
				n := w.reproduced(number, "", true)
				if expected, known := want[field]; *n.Value != value || known && !near(value, expected) {
					t.Errorf("%s: answered %v, explained as %v, want %v", number, value, *n.Value, expected)
				}
			}
			n := w.reproduced("price-in/"+vs+"/"+region+"/ethereum", "?depth=2", true)
			price := n
			if vs != "usd" {
				if len(n.Inputs) != 2 || n.Unit != strings.ToUpper(vs) || n.Inputs[0].Unit != "USD" || n.Inputs[1].Reproduced == nil || !*n.Inputs[1].Reproduced {
					t.Fatalf("%s in %s: got %+v", region, vs, n)
				}
				price = n.Inputs[0]
			}
			out := 0
			for _, in := range price.Inputs {
				if strings.HasPrefix(in.Note, "does not count: coinbase does not serve DE") {
					out++
				}
			}
			if len(price.Inputs) != len(votes["ethereum"]) || len(price.Records) != 1 || (out == 1) != (region == "DE") {
				text, _ := json.Marshal(price)
				t.Errorf("%s in %s: got %s", region, vs, text)
			}
		}
	}
	asOf := "?asOf=" + w.Now.Add(500*time.Millisecond).Format(time.RFC3339Nano)
	w.Now = w.Now.Add(3 * time.Second)
	w.Pulse()
	w.reproduced("price-in/btc/DE/ethereum", asOf, true)
	w.reproduced("price-in/usd/US/ethereum/min", asOf, true)
	w.answered(map[string]int{"price-in/xyz/all/bitcoin": http.StatusBadRequest, "price-in/eur/Germany/bitcoin": http.StatusBadRequest, "price-in/eur/DE/bitcon": http.StatusNotFound,
		"price-in/eur/DE/bitcoin/minimum": http.StatusNotFound, "price-in/eur/DE/tether": http.StatusNotFound, "price-in/eur/all": http.StatusNotFound})
	if n := w.ask("price-in/usd/all/bitcoin", ""); n.Number != "price/bitcoin" {
		t.Errorf("got %s, want price/bitcoin", n.Number)
	}
	// What is known of the price without the log says otherwise.
	w.inputs["ethereum"] = nil
	w.tick("ethereum", "kraken", "ETH/USD", 4_100, "USD", 1)
	rec := w.publish("ethereum")
	w.reproduced("price-in/usd/DE/ethereum", "", true)
	rec.GetPrice().Inputs[0].Last++
	w.reproduced("price-in/usd/DE/ethereum", "", false)
	w.reproduced("price-in/eur/DE/ethereum", "", false)
}
