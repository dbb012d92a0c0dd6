package explain_test

import (
	"net/http"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// quoted has the fold of quotes write what a quote costs, and the newest market of a coin converted by it.
func (w *fixture) quoted(coin, quote string, rate float64) {
	rec := &eventsv1.QuoteRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: w.Now.UnixNano()}, Body: &eventsv1.QuoteRecord_Rate{Rate: &eventsv1.QuoteRate{
		QuoteId: quote, Rate: rate, Time: w.Now.UnixNano(), Method: "market"}}}
	r := w.append(schemas.TopicQuotes, 0, quote, w.Now.UnixNano(), rec)
	w.flush()
	markets := w.inputs[coin]
	last := markets[len(markets)-1]
	last.QuoteId, last.Rate, last.RateTime, last.RateOffset = quote, rate, w.Now.UnixNano(), r.Offset
}

// A market's own price, what its quote costs and how far it lies from the peg follow from its tick and from the record of quotes.v1.
func TestNumbersOfMarketsAreReproduced(t *testing.T) {
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.fixing(&eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: "1.0837", Date: "2026-11-20", IngestTime: w.Now.UnixNano()})
	w.Minute(w.Now)
	w.said("defillama", "2", "euro-coin", "EURC", "peggedEUR", "4000000")
	w.Pulse()
	w.tick("bitcoin", "okx", "BTC-USDT", 97_000, "USDT", 1)
	w.quoted("bitcoin", "tether", 0.9991)
	w.publish("bitcoin")
	w.tick("euro-coin", "kraken", "EURC/EUR", 0.9995, "EUR", 1)
	w.quoted("euro-coin", "EUR", 1.0839)
	w.tick("euro-coin", "okx", "EURC-USDT", 1.0845, "USDT", 1)
	w.quoted("euro-coin", "tether", 0.9991)
	w.tick("euro-coin", "coinbase", "EURC-USD", 1.082, "USD", 1)
	w.publish("euro-coin")
	w.Now = w.Now.Add(2 * time.Second)

	if n := w.reproduced("venue-price/rateUsed/okx/BTC-USDT", "", true); *n.Value != 0.9991 || len(n.Records) != 1 || n.Records[0].Topic != schemas.TopicQuotes {
		t.Errorf("got %+v, want 0.9991 and its record", n)
	}
	var body stablecoins.StabilityBody
	w.read("/api/v1/stablecoins/EURC/peg-stability", &body)
	if len(body.NativeQuotes) != 3 {
		t.Fatalf("got %+v, want three markets", body.NativeQuotes)
	}
	for _, market := range body.NativeQuotes {
		name := market.Exchange + "/" + market.VenueSymbol
		price, deviation := w.reproduced("venue-price/price/"+name, "", true), w.reproduced("venue-price/deviationBps/"+name, "?depth=2", true)
		if *price.Value != market.Price || len(price.Records) == 0 || *deviation.Value != *market.DeviationBps {
			t.Errorf("%s: got %+v and %+v, want %+v", name, price, deviation, market)
		}
		want := 3
		if market.Native {
			want = 1
		}
		if len(deviation.Inputs) != want {
			t.Errorf("%s: got %d inputs, want %d", name, len(deviation.Inputs), want)
		}
	}
	w.reproduced("venue-price/rateUsed/coinbase/EURC-USD", "", true) // by definition
	// A price that was made with another exchange rate than quotes.v1 has, and with a value that does not follow from the tick.
	markets := w.inputs["bitcoin"]
	markets[0].Rate = 0.5
	w.Now = w.Now.Add(time.Second)
	published := proto.CloneOf(w.publish("bitcoin"))
	if n := w.reproduced("venue-price/rateUsed/okx/BTC-USDT", "", false); n.Recomputed == nil || *n.Recomputed != 0.9991 {
		t.Errorf("got %+v, want 0.9991 of quotes.v1", n)
	}
	w.Now = w.Now.Add(time.Second)
	price := published.GetPrice()
	price.Time, price.Inputs[0].Value = w.Now.UnixNano(), 5
	w.priced(published)
	if n := w.reproduced("venue-price/price/okx/BTC-USDT", "", false); n.Recomputed == nil || *n.Recomputed != 97_000 {
		t.Errorf("got %+v, want the 97000 of the tick", n)
	}
	w.answered(map[string]int{
		"venue-price/spread/okx/BTC-USDT":       http.StatusNotFound,
		"venue-price/price/okx/BTC-EUR":         http.StatusNotFound,
		"venue-price/price/nobody/BTC-USDT":     http.StatusNotFound,
		"venue-price/deviationBps/okx/BTC-USDT": http.StatusNotFound,
		"venue-price/price/okx":                 http.StatusNotFound,
	})
}
