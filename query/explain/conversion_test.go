package explain_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// What prices are converted by is what a currency costs, turned round, or the price of a coin.
func TestConversionsFollowFromRatesAndPrices(t *testing.T) {
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.fixing(&eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: "1.0837", Date: "2026-11-20", IngestTime: w.Now.UnixNano()})
	w.Minute(w.Now)
	w.Pulse()
	w.tick("bitcoin", "kraken", "BTC/USD", 97_000, "USD", 1)
	w.publish("bitcoin")
	for vs, input := range map[string]string{"eur": "fiat/EUR", "btc": "price/bitcoin"} {
		var body prices.PriceBody
		w.read("/api/v1/prices/BTC?vs="+vs, &body)
		n := w.reproduced("vs/"+vs, "", true)
		if body.Meta.Rate == nil || *n.Value != body.Meta.Rate.USD || n.Unit != "USD" || len(n.Inputs) != 1 || n.Inputs[0].Number != input || n.Inputs[0].Inputs != nil {
			t.Errorf("got %+v, want %+v, of %s", n, body.Meta.Rate, input)
		}
		if deep := w.reproduced("vs/"+vs, "?depth=2", true); len(deep.Inputs[0].Inputs) != 1 {
			t.Errorf("got %+v, want the inputs of %s", deep, input)
		}
	}
	w.reproduced("vs/USD", "", true)
	// What is known of the currency without the log says otherwise.
	w.Said(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Fixing{
		Fixing: &eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: "2", Date: "2026-11-20", IngestTime: w.Now.UnixNano()}}})
	w.Now = w.Now.Add(time.Minute)
	w.Minute(w.Now)
	w.reproduced("vs/eur", "", false)
	w.answered(map[string]int{"vs/xyz": http.StatusBadRequest, "vs/eth": http.StatusNotFound, "vs/eur/now": http.StatusNotFound})
}

// publishingLog has a price published while the log is read.
type publishingLog struct {
	explain.Log
	publish func()
}

func (l publishingLog) Scan(ctx context.Context, span views.LogSpan, visit func(*kgo.Record) bool) (int64, error) {
	l.publish()
	return l.Log.Scan(ctx, span, visit)
}

// A price that is published while a conversion is explained is not compared with the one before.
func TestConversionsAreOfTheMomentOfTheirInput(t *testing.T) {
	w := newFixture(t)
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.tick("bitcoin", "kraken", "BTC/USD", 97_000, "USD", 1)
	w.publish("bitcoin")
	price := 97_000.0
	log := publishingLog{views.NewLog(w.reach, nil), func() {
		price++
		w.Now = w.Now.Add(time.Second)
		w.tick("bitcoin", "kraken", "BTC/USD", price, "USD", 1)
		w.publish("bitcoin")
	}}
	w.Serve(explain.New(explain.Deps{Prices: w.Prices, Catalog: w.Catalog, Yields: w.Yields, History: w.History(), Log: log,
		Currencies: views.NewPastCurrencies(w.Catalog, log.Log.(*views.Log), w.History())}).Endpoints())
	if n := w.reproduced("vs/btc", "", true); *n.Value != 97_000 || price == 97_000 {
		t.Errorf("got %v while the price became %v, want the one whose record was read", *n.Value, price)
	}
}
