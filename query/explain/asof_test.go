package explain_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// remember has it remembered and recorded from now on what is served.
func (w *fixture) remember() {
	w.remembers = true
	clock := func() time.Time { return w.Now }
	w.Prices.RememberBy(clock)
	w.Catalog.RememberBy(clock, w.Prices.Steps())
	w.Prices.Steps().Begin(clock)
}

// sourced is what a source states, in the log and read from there.
func (w *fixture) sourced(rec *eventsv1.ReferenceRecord) {
	r := w.append(schemas.TopicReferenceRaw, 0, rec.GetCoin().GetSource(), w.Now.UnixNano(), rec)
	w.flush()
	w.Must(w.Catalog.ApplyReference(views.TailRecord{Offset: r.Offset, Value: r.Value}))
	w.Minute(w.Now)
}

// record writes what was served to the log and to the store.
func (w *fixture) record() {
	ended, end := context.WithCancel(w.T.Context())
	end()
	w.Must(w.Prices.Steps().Run(ended, "first", servedRecorder{w}, slog.New(slog.DiscardHandler)))
	w.Must(w.Store.Record(w.T.Context(), []history.SinkProgress{{Sink: schemas.TopicServed, Progress: history.Progress{Next: w.Offset(), LogTime: w.Now.UnixNano()}}}))
}

type servedRecorder struct{ w *fixture }

func (l servedRecorder) WriteServed(ctx context.Context, record *eventsv1.ServedRecord) error {
	r := l.w.append(schemas.TopicServed, 0, record.Replica, record.Time, record)
	l.w.flush()
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicServed, Offset: r.Offset}, record)
	return b.Insert(ctx, l.w.Store, "")
}

// servedNumber is a number as it was answered at an instant.
type servedNumber struct {
	number string
	value  float64
	at     time.Time
}

// shared has a minute in which sources report coins that share a symbol anew, and venues trade one of them.
func (w *fixture) shared(random *rand.Rand) {
	end := w.Now.Truncate(time.Minute).Add(time.Minute)
	w.Now = end.Add(-20 * time.Second)
	for i, coin := range []string{"bitcoin", "ethereum", "btc-a", "btc-b"} {
		if w.ended != 0 && random.IntN(3) == 0 {
			continue
		}
		symbol := []string{"BTC", "ETH", "BTC", "BTC"}[i]
		w.outside[coin] = [2]string{symbol, coin}
		w.observed(&eventsv1.CoinMarket{Source: "coingecko", SourceId: coin, Symbol: symbol, Name: coin, Price: plain(100 + 20*random.Float64()), CirculatingSupply: plain(1e6 * random.Float64()),
			Volume24H: "90000", Change24H: plain(random.Float64() - 0.5), IngestTime: w.Now.UnixNano()})
	}
	if random.IntN(2) == 0 {
		price := 100 + 20*random.Float64() // near enough to what sources report
		w.traded("bitcoin", end.Add(-time.Minute), price, price, price, price, 1e6)
	}
	w.close(end.UnixNano())
}

// overridden is an operator's word about a symbol.
func (w *fixture) overridden(symbol, coin string) {
	rec := &eventsv1.ReferenceRecord{Producer: "operator", Body: &eventsv1.ReferenceRecord_Override{Override: &eventsv1.SymbolOverride{Source: "gate", Symbol: symbol, CoinId: coin, Time: w.Now.UnixNano()}}}
	w.append(schemas.TopicReferenceRaw, 0, "operator", w.Now.UnixNano(), rec)
	w.flush()
	w.Said(rec)
	w.Minute(w.Now)
}

// resolved are the numbers of answers to what symbols mean.
func (w *fixture) resolved(random *rand.Rand) (numbers []servedNumber) {
	for _, asked := range []string{"symbol=BTC", "symbol=BTC&price=" + plain(100+20*random.Float64()), "symbol=ETH&price=110", "symbol=HOT&source=gate", "symbol=0x95ad61b0a150d79219dcf64e1e6cc01f0b64c4ce"} {
		var body symbols.ResolutionBody
		w.read("/api/v1/symbols/resolve?"+asked, &body)
		numbers = append(numbers, servedNumber{"symbol/" + body.Data.Question + "/confidence", float64(*body.Data.Confidence), w.Now})
		for _, c := range body.Data.Candidates {
			numbers = append(numbers, servedNumber{"symbol/" + body.Data.Question + "/score/" + c.CoinID, float64(c.Score), w.Now})
		}
	}
	return numbers
}

// Which coin a symbol means follows ranks, prices, contracts and overrides, each of which changes at any time. As of an instant it is explained by those of the instant.
func TestWhatSymbolsMeantIsReproduced(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	w.outside = map[string][2]string{}
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.remember()
	contract := func(coin string) *eventsv1.ReferenceRecord {
		return &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Coin{Coin: &eventsv1.Coin{Source: "coingecko", SourceId: coin, Part: "list", Symbol: "BTC", Name: coin,
			Platforms: []*eventsv1.Platform{{Name: "ethereum", Address: "0x95ad61b0a150d79219dcf64e1e6cc01f0b64c4ce"}}, IngestTime: w.Now.UnixNano()}}}
	}
	w.sourced(contract("btc-a"))
	w.shared(random)
	w.Must(w.figures.Refresh(t.Context()))
	var numbers []servedNumber
	for range 12 {
		w.Now = w.Now.Add(time.Duration(1+random.IntN(20_000)) * time.Millisecond)
		switch random.IntN(4) {
		case 0:
			w.shared(random)
		case 1:
			w.tick("bitcoin", "kraken", "XBT/USD", 100+20*random.Float64(), "USD", 1)
			w.publish("bitcoin")
		case 2:
			w.sourced(contract([]string{"btc-a", "btc-b"}[random.IntN(2)]))
		case 3:
			w.overridden("HOT", []string{"bitcoin", "ethereum", schemas.NoCoin}[random.IntN(3)])
		}
		w.Now = w.Now.Add(time.Duration(1+random.IntN(3000)) * time.Millisecond)
		numbers = append(numbers, w.resolved(random)...)
	}
	w.Now = w.Now.Add(5 * time.Minute)
	w.record()
	random.Shuffle(len(numbers), func(a, b int) { numbers[a], numbers[b] = numbers[b], numbers[a] })
	for _, was := range numbers[:30] {
		n := w.reproduced(was.number, "?asOf="+was.at.Format(time.RFC3339Nano), true)
		if n.Value == nil || *n.Value != was.value {
			t.Errorf("%s as of %s is explained as %v, and was %v", was.number, was.at, n.Value, was.value)
		}
	}
	then := "?asOf=" + numbers[0].at.Format(time.RFC3339Nano)
	w.answered(map[string]int{"symbol/general/BTC/price=110/quote=EUR/confidence" + then: http.StatusBadRequest, "symbol/general/BTC/price=110/quote=USD/confidence" + then: http.StatusOK,
		"symbol/general/BTC/confidence?asOf=2026-11-20T09:00:00Z": http.StatusGone})
}
