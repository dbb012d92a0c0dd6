package fiat_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/fiat"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// asked are the requests that answer the past.
var asked = []string{"/api/v1/fiat?", "/api/v1/fiat/eur?", "/api/v1/fiat/rates/usd?", "/api/v1/fiat/stats?", "/api/v1/fiat/status?", "/api/v1/explain/fiat/eur?depth=2&",
	"/api/v1/prices/btc?vs=jpy&"}

// pastFixture is a log with what sources stated, and processes that read it as its clock goes.
type pastFixture struct {
	*querytest.Fixture
	log    *views.Log
	client *kgo.Client
}

// write writes what a source stated to the log, and returns it as a tail hands it over.
func (w *pastFixture) write(rec *eventsv1.ReferenceRecord) views.TailRecord {
	w.T.Helper()
	value, err := rec.MarshalVT()
	w.Must(err)
	r := &kgo.Record{Topic: schemas.TopicReferenceRaw, Key: []byte(rec.GetFixing().GetSource()), Value: value, Timestamp: w.Now}
	w.Must(w.client.ProduceSync(w.T.Context(), r).FirstErr())
	return views.TailRecord{Offset: r.Offset, Value: value}
}

// process begins to answer, without anything read of currencies.
func (w *pastFixture) process() *views.ServedSteps {
	w.Catalog = views.NewCatalog(w.Prices.Coins())
	steps := w.Prices.Steps()
	w.Catalog.RememberBy(func() time.Time { return w.Now }, steps)
	past := views.NewPastCurrencies(w.Catalog, w.log, w.History())
	explained := explain.New(explain.Deps{Prices: w.Prices, Catalog: w.Catalog, Yields: w.Yields, History: w.History(), Log: w.log, Currencies: past}).Endpoints()
	w.Serve(append(append(explained, fiat.New(w.Prices.Coins(), w.Catalog, past, w.History()).Endpoints()...),
		prices.New(w.Prices, w.Catalog, views.NewConverter(w.Prices, w.Catalog, past), w.History(), nil).Endpoints()...))
	return steps
}

// stated is something that a source states at random.
func (w *pastFixture) stated(random *rand.Rand) *eventsv1.ReferenceRecord {
	source, now := []string{"ecb", "open-rates", "spot", "coins"}[random.IntN(4)], w.Now.UnixNano()
	rec := &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1}
	switch kind := random.IntN(6); {
	case kind == 0:
		rec.Body = &eventsv1.ReferenceRecord_Notice{Notice: &eventsv1.SourceNotice{Source: source, Name: source, Interval: int64(time.Duration(1+random.IntN(3)) * time.Minute),
			Attribution: fmt.Sprint("by ", source, random.IntN(3)), IngestTime: now}}
	case kind == 1:
		rec.Body = &eventsv1.ReferenceRecord_Fetch{Fetch: &eventsv1.Fetch{Source: source, Started: now - int64(time.Second), Error: strings.Repeat("x", random.IntN(2))}}
	case kind == 2 || source == "coins":
		rec.Body = &eventsv1.ReferenceRecord_Coin{Coin: &eventsv1.Coin{Source: "coingecko", SourceId: "bitcoin", Symbol: "btc", Name: "Bitcoin", Part: "list", IngestTime: now}}
	default:
		f := &eventsv1.Fixing{Source: source, Base: []string{"EUR", "USD"}[random.IntN(2)], Quote: []string{"USD", "JPY", "EUR"}[random.IntN(3)], Rate: fmt.Sprint(0.5 + random.Float64()),
			Date: w.Now.AddDate(0, 0, -random.IntN(2)).Format(time.DateOnly), IngestTime: now}
		if source == "spot" {
			f.EventTime = now - random.Int64N(int64(4*time.Minute))
		}
		rec.Body = &eventsv1.ReferenceRecord_Fixing{Fixing: f}
	}
	return rec
}

// What is asked for of currencies as of an instant is what was answered then, byte for byte, prices in currencies too: by the process that
// answered and by another one, from the log, in which what is stated lies before it is read, and all that follows beside it.
func TestCurrenciesAsTheyWereServed(t *testing.T) {
	random := streamtest.Rand(t)
	w := &pastFixture{Fixture: querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))}
	w.log, w.client = w.Log()
	w.Open(enginetest.Migrated(t))
	w.Now = time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC)
	w.Prices.RememberBy(func() time.Time { return w.Now })
	for range 5 { // of before the process began to read
		w.write(w.stated(random))
	}
	steps := w.process()
	steps.Begin(func() time.Time { return w.Now })
	price := func() {
		mark := &eventsv1.Mark{LogicVersion: 1, Offset: w.Offset()}
		w.Must(querytest.ApplyPrice(w.Prices, views.TailRecord{Offset: mark.Offset, Marked: &eventsv1.PriceRecord{Mark: mark, Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{
			CoinId: "bitcoin", Time: w.Now.UnixNano(), Price: 100 * random.Float64(), Accepted: 1}}}}))
	}
	w.Now = w.Now.Add(time.Millisecond) // of a pair a source reports one rate in an instant, by which its record is found
	price()
	began := w.Now
	for _, quote := range []string{"JPY", "EUR"} {
		w.Must(w.Catalog.ApplyReference(w.write(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{
			Source: "ecb", Base: "USD", Quote: quote, Rate: "1.5", Date: w.Now.Format(time.DateOnly), IngestTime: w.Now.UnixNano()}}})))
	}
	w.Catalog.Settle()
	var answers []querytest.Answered
	for i := range 60 {
		w.Now = w.Now.Add(time.Duration(1+random.IntN(9000)) * time.Millisecond)
		rec := w.write(w.stated(random))
		if i%15 == 7 {
			answers = append(answers, w.Ask(w.Now, false, asked)) // it is written, and not read yet
			w.Now = w.Now.Add(time.Millisecond)
		}
		w.Must(w.Catalog.ApplyReference(rec))
		if i == 0 || random.IntN(3) == 0 { // before the first clock nothing of a currency is answered
			w.Must(w.Catalog.ApplyReference(w.write(&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: w.Now.UnixNano()}}})))
			w.Catalog.Snapshot() // someone reads it
		}
		if i%15 == 7 {
			answers = append(answers, w.Ask(w.Now, false, asked))
			w.Now = w.Now.Add(time.Millisecond)
			price()
		}
	}
	answers = append(answers, w.Ask(w.Now, false, asked))
	check := func(process string, asked []string, all []querytest.Answered) {
		t.Helper()
		for _, was := range all {
			got := w.Ask(was.At, true, asked)
			for i := range asked {
				if got.Bodies[i] != was.Bodies[i] || !strings.HasPrefix(got.Bodies[i], "200 ") {
					t.Fatalf("%s: %s as of %s:\n%s\nwhat was answered then:\n%s", process, asked[i], was.At, got.Bodies[i], was.Bodies[i])
				}
			}
		}
	}
	w.Now = w.Now.Add(5 * time.Minute)
	check("the process that answered", asked, answers)
	if explained := answers[len(answers)-1].Bodies[5]; !strings.Contains(explained, `"reproduced":true`) || !strings.Contains(explained, `"topic":"reference.raw.v1"`) {
		t.Errorf("not explained: %s", explained)
	}
	if answers[0].Bodies[2] == answers[len(answers)-1].Bodies[2] {
		t.Errorf("nothing moved: %s", answers[0].Bodies[2])
	}

	// Another process, which knows only what the first one recorded; before that nobody answered.
	w.RecordServed(steps, "first")
	w.Prices = views.NewPriceCache(w.Prices.Coins())
	w.process()
	check("another process", asked[:len(asked)-1], answers) // no table has the price
	for path, want := range map[string]string{
		"/api/v1/fiat?asOf=" + began.Add(-time.Minute).Format(time.RFC3339):      "410 AGED_OUT availableFrom",
		"/api/v1/fiat/zzz?asOf=" + answers[0].At.Format(time.RFC3339Nano):        "404 ZZZ",
		"/api/v1/fiat/stats?asOf=" + w.Now.Add(time.Second).Format(time.RFC3339): "400 VALIDATION_ERROR asOf",
	} {
		got := w.Get(path)
		for _, word := range strings.Fields(want) {
			if !strings.Contains(got, word) {
				t.Errorf("%s: got %s; want %s", path, got, want)
			}
		}
	}
}
