package stablecoins_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// asked are the requests that answer the past.
var asked = []string{"/api/v1/stablecoins/index?", "/api/v1/stablecoins/index?limit=2&"}

// pastFixture is a log with what pegs are made of, and processes that read it as its clock goes.
type pastFixture struct {
	*querytest.Fixture
	random *rand.Rand
	log    *views.Log
	client *kgo.Client
	unit   *stablecoins.Unit
	index  uint32
}

// write writes a record to the log, and returns it as a tail hands it over.
func (w *pastFixture) write(topic string, at time.Time, rec interface{ MarshalVT() ([]byte, error) }) views.TailRecord {
	w.T.Helper()
	value, err := rec.MarshalVT()
	w.Must(err)
	r := &kgo.Record{Topic: topic, Key: []byte("x"), Value: value, Timestamp: at}
	w.Must(w.client.ProduceSync(w.T.Context(), r).FirstErr())
	read := views.TailRecord{Offset: r.Offset, Value: value}
	read.Marked, _ = rec.(eventsv1.Marked)
	return read
}

// process begins to answer, with nothing read.
func (w *pastFixture) process() *views.ServedSteps {
	now := func() time.Time { return w.Now }
	w.Prices, w.Catalog = views.NewPriceCache(w.Prices.Coins()), views.NewCatalog(w.Prices.Coins())
	steps := w.Prices.Steps()
	w.Prices.RememberBy(now)
	w.Catalog.RememberBy(now, steps)
	w.unit = stablecoins.New(w.Prices, w.Catalog, w.History(), stablecoins.Served{Sources: views.NewPastCurrencies(w.Catalog, w.log, w.History()),
		Rows: views.NewPastRows(w.Catalog, w.log, w.History()), Prices: w.History()})
	w.unit.Statistics().RememberBy(now, steps)
	w.Serve(w.unit.Endpoints())
	return steps
}

// near is a number about 1.
func (w *pastFixture) near() float64 { return 0.98 + 0.04*w.random.Float64() }

// stated is something that a source states at random.
func (w *pastFixture) stated(kind int) *eventsv1.ReferenceRecord {
	now := w.Now.UnixNano()
	rec := &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1}
	switch kind {
	case 0:
		rec.Body = &eventsv1.ReferenceRecord_Notice{Notice: &eventsv1.SourceNotice{Source: "defillama", Name: "DefiLlama", Interval: int64(time.Hour),
			Attribution: fmt.Sprint("by ", w.random.IntN(3)), Simulated: w.random.IntN(2) == 0, IngestTime: now}}
	case 1:
		rec.Body = &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{Source: "ecb", Base: "EUR", Quote: "USD", Rate: fmt.Sprint(1.2 * w.near()), Date: w.Now.Format(time.DateOnly), IngestTime: now}}
	case 2:
		rec.Body = &eventsv1.ReferenceRecord_Fetch{Fetch: &eventsv1.Fetch{Source: "ecb", Started: now - int64(time.Second)}}
	default:
		coin := []string{"tether TUSD USDT", "euro-coin EURC EURC", "far-dollar FAR USDD", "near-yen NEAR JPYC"}[w.random.IntN(4)]
		var id, sourceID, symbol string
		_, err := fmt.Sscan(coin, &id, &sourceID, &symbol)
		w.Must(err)
		peg := map[string]string{"euro-coin": "peggedEUR", "near-yen": "peggedJPY"}[id]
		if peg == "" {
			peg = "peggedUSD"
		}
		rec.Body = &eventsv1.ReferenceRecord_Stablecoin{Stablecoin: &eventsv1.Stablecoin{Source: "defillama", SourceId: sourceID, CoinId: id, Symbol: symbol, Name: id, PegType: peg,
			PegMechanism: "fiat-backed", Price: fmt.Sprint(w.near()), Circulating: fmt.Sprint(w.random.IntN(9_000_000)), Dead: w.random.IntN(9) == 0, IngestTime: now}}
	}
	return rec
}

// price publishes a price: it is in the table before it is read.
func (w *pastFixture) price(coin string, before func()) {
	offset := w.Offset()
	rec := &eventsv1.PriceRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: offset}, Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{
		CoinId: coin, Time: w.Now.Truncate(time.Second).UnixNano(), Price: w.near(), Accepted: 1, Simulated: true, Published: w.Now.UnixNano()}}}
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicPrices, Offset: offset}, rec)
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	before()
	w.Must(querytest.ApplyPrice(w.Prices, views.TailRecord{Offset: offset, Marked: rec}))
}

// minute is what the fold of markets writes of a minute; before is called when it is written, and not read yet.
func (w *pastFixture) minute(end time.Time, before func()) {
	mark := func() *eventsv1.Mark {
		w.index++
		return &eventsv1.Mark{LogicVersion: 1, Offset: end.UnixNano(), Index: w.index}
	}
	var records []views.TailRecord
	for rank, coin := range []string{"tether", "usd-coin", "euro-coin", "far-dollar"} {
		row := &eventsv1.Market{CoinId: coin, Rank: uint32(rank + 1), Time: end.UnixNano(), Price: w.near(), PriceSource: "coingecko", PriceTime: end.Add(-time.Minute).UnixNano()}
		switch w.random.IntN(5) {
		case 0:
			row.Price = 0
		case 1:
		default:
			marketCap := 2e6 * w.near()
			row.MarketCap = &marketCap
		}
		records = append(records, w.write(schemas.TopicMarkets, end, &eventsv1.MarketRecord{Mark: mark(), Body: &eventsv1.MarketRecord_Market{Market: row}}))
	}
	records = append(records, w.write(schemas.TopicMarkets, end, &eventsv1.MarketRecord{Mark: mark(), Body: &eventsv1.MarketRecord_Summary{Summary: &eventsv1.Summary{Time: end.UnixNano()}}}),
		w.write(schemas.TopicMarkets, end, &eventsv1.MarketRecord{Mark: mark(), Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano()}}}))
	before()
	for _, rec := range records {
		w.Must(w.Catalog.ApplyMarkets(rec))
	}
}

// closes keeps closes of minutes, also of before: as a replay, or late records, replace them.
func (w *pastFixture) closes() {
	for _, coin := range []string{"tether", "usd-coin", "euro-coin"} {
		price := w.near()
		w.AddCandles(&eventsv1.Candle{CoinId: coin, Start: w.Now.Truncate(time.Minute).Add(-time.Duration(1+w.random.IntN(5)) * time.Minute).UnixNano(),
			Open: price, High: price, Low: price, Close: price, Volume: "1"})
	}
}

// What is asked for of stablecoins as of an instant is what was answered then, byte for byte: by the process that answered and by another one, though
// what comes next lies in the log and in the tables before it is served, and minutes of the past are replaced afterwards.
func TestPegsAsTheyWereServed(t *testing.T) {
	w := &pastFixture{Fixture: newFixture(t), random: streamtest.Rand(t)}
	w.log, w.client = w.Log()
	w.Now = time.Date(2026, 11, 20, 10, 0, 1, 0, time.UTC)
	began := w.Now
	steps := w.process()
	var answers []querytest.Answered
	ask := func() { answers = append(answers, w.Ask(w.Now, false, asked)) }
	state := func(kind int, before func()) {
		rec := w.write(schemas.TopicReferenceRaw, w.Now, w.stated(kind))
		before()
		w.Must(w.Catalog.ApplyReference(rec))
	}
	clock := func() {
		w.Must(w.Catalog.ApplyReference(w.write(schemas.TopicReferenceRaw, w.Now, &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: w.Now.UnixNano()}}})))
		w.Catalog.Snapshot() // someone reads it
	}
	quiet := func() {}
	for kind := range 3 {
		state(kind, quiet)
	}
	for range 9 {
		state(3, quiet)
	}
	clock()
	w.closes()
	for _, coin := range []string{"tether", "usd-coin", "euro-coin", "cnh-tether"} { // what this process does not remember, it waits for until its steps are in a table
		w.price(coin, quiet)
	}
	w.minute(w.Now.Truncate(time.Minute), quiet)
	w.Catalog.Settle()
	steps.Begin(func() time.Time { return w.Now })
	ask()
	for i := range 60 {
		minute := w.Now.Truncate(time.Minute)
		w.Now = w.Now.Add(time.Duration(1000+w.random.IntN(20_000)) * time.Millisecond)
		before := quiet
		if i%4 == 1 { // what comes is written, and not served yet; the next instant is another one
			before = func() {
				ask()
				w.Now = w.Now.Add(time.Millisecond)
			}
		}
		if next := w.Now.Truncate(time.Minute); next.After(minute) {
			w.minute(next, before)
			continue
		}
		switch w.random.IntN(5) {
		case 0:
			state(w.random.IntN(9), before)
			if w.random.IntN(2) == 0 {
				clock()
			}
		case 1, 2:
			w.price([]string{"tether", "usd-coin", "euro-coin"}[w.random.IntN(3)], before)
		default:
			w.closes()
			before()
			w.Must(w.unit.Statistics().Refresh(t.Context()))
		}
		if i%4 == 1 {
			ask()
		}
	}
	w.closes()
	check := func(process string) {
		t.Helper()
		for _, was := range answers {
			for i, body := range w.Ask(was.At, true, asked).Bodies {
				if body != was.Bodies[i] || !strings.HasPrefix(body, "200 ") {
					t.Fatalf("%s: %s as of %s:\n%s\nwhat was answered then:\n%s", process, asked[i], was.At, body, was.Bodies[i])
				}
			}
		}
	}
	w.Now = w.Now.Add(5 * time.Minute)
	check("the process that answered")
	different := map[string]bool{}
	for _, was := range answers {
		different[was.Bodies[0]] = true
	}
	scored := slices.ContainsFunc(answers, func(was querytest.Answered) bool { return strings.Contains(was.Bodies[0], `"stabilityScore"`) })
	if len(different) < len(answers)/2 || !scored {
		t.Errorf("of %d answers %d are different, and one with a score is among them: %t", len(answers), len(different), scored)
	}

	// Another process, which knows only what the first one recorded; before that nobody answered.
	w.RecordServed(steps, "first")
	w.process()
	check("another process")
	for path, want := range map[string]string{
		"/api/v1/stablecoins/index?asOf=" + began.Add(-time.Minute).Format(time.RFC3339):    "410 AGED_OUT availableFrom",
		"/api/v1/stablecoins/index?asOf=" + w.Now.Add(time.Second).Format(time.RFC3339Nano): "400 VALIDATION_ERROR asOf",
	} {
		got := w.Get(path)
		for _, word := range strings.Fields(want) {
			if !strings.Contains(got, word) {
				t.Errorf("%s: got %s; want %s", path, got, want)
			}
		}
	}
	// What is refused names an instant as of which it is answered.
	_, from, _ := strings.Cut(w.Get("/api/v1/stablecoins/index?asOf="+began.Add(-time.Minute).Format(time.RFC3339)), `"availableFrom":"`)
	from, _, _ = strings.Cut(from, `"`)
	if got := w.Get("/api/v1/stablecoins/index?asOf=" + from); !strings.HasPrefix(got, "200 ") {
		t.Errorf("as of %s, from which on it is available: %.300s", from, got)
	}
}
