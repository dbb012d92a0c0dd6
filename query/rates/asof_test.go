package rates_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// asked are the requests that answer the past.
var asked = []string{
	"/api/v1/rates/eth?limit=9&", "/api/v1/rates/SOL?category=lending&", "/api/v1/rates?category=lending&", "/api/v1/rates?category=borrowing&limit=3&offset=1&",
	"/api/v1/rates?category=lending&provider=aave&symbol=eth&", "/api/v1/rates/summary?category=staking&",
}

// pricedAsked are those whose time, of now, is how far the log of prices was read.
var pricedAsked = []string{
	"/api/v1/rates?limit=1000&", "/api/v1/rates?limit=9&offset=3&", "/api/v1/rates?category=price&", "/api/v1/rates?category=price&symbol=eth&", "/api/v1/rates?provider=okx&limit=1000&", "/api/v1/rates/summary?", "/api/v1/rates/summary?category=price&",
	"/api/v1/rates/summary?symbol=btc&",
}

// untimed is such an answer without its time, and that.
func untimed(t *testing.T, answer string) (rest, stamp string) {
	t.Helper()
	var body struct{ Data, Meta map[string]any }
	if err := json.Unmarshal([]byte(answer[4:]), &body); err != nil || !strings.HasPrefix(answer, "200 ") {
		t.Fatalf("%s: %v", answer, err)
	}
	stamp, _ = body.Data["timestamp"].(string)
	if body.Meta["lastUpdated"] != stamp {
		t.Errorf("of %s, last updated %s", stamp, body.Meta["lastUpdated"])
	}
	delete(body.Data, "timestamp")
	delete(body.Meta, "lastUpdated")
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), stamp
}

// pastFixture is a log with what folds of minutes wrote, and processes that read it as its clock goes.
type pastFixture struct {
	*querytest.Fixture
	client *kgo.Client
	log    *views.Log
	index  uint32
}

// minuteRecord is what a fold writes of a minute, by the mark that such records have.
type minuteRecord interface {
	eventsv1.Marked
	MarshalVT() ([]byte, error)
}

// write writes what a fold made of a minute to the log, and returns it as a tail hands it over.
func (w *pastFixture) write(topic string, end time.Time, records ...minuteRecord) (read []views.TailRecord) {
	w.T.Helper()
	var written []*kgo.Record
	for _, rec := range records {
		value, err := rec.MarshalVT()
		w.Must(err)
		written = append(written, &kgo.Record{Topic: topic, Key: []byte("x"), Value: value, Timestamp: end})
	}
	w.Must(w.client.ProduceSync(w.T.Context(), written...).FirstErr())
	for i, rec := range records {
		read = append(read, views.TailRecord{Offset: written[i].Offset, Marked: rec})
	}
	return read
}

func (w *pastFixture) mark(end time.Time) *eventsv1.Mark {
	w.index++
	return &eventsv1.Mark{LogicVersion: 1, Offset: end.UnixNano(), Index: w.index}
}

// process begins to answer, without anything read.
func (w *pastFixture) process() *views.ServedSteps {
	w.Yields, w.Catalog = views.NewYieldStore(), views.NewCatalog(w.Prices.Coins())
	steps, now := views.NewPriceCache(w.Prices.Coins()).Steps(), func() time.Time { return w.Now }
	w.Yields.RememberBy(now, steps)
	w.Catalog.RememberBy(now, steps)
	w.Fixture.Serve(rates.New(w.Yields, w.Prices, w.Catalog, w.History(), rates.Served{Yields: views.NewPastYields(w.Yields, w.log, w.History()),
		Rows: views.NewPastRows(w.Catalog, w.log, w.History()), Prices: w.History()}, views.NewRateCharts(w.Yields, w.History()), states{}, venues).Endpoints())
	return steps
}

// offers are what a fold writes of the rates of a minute: some reported, some of them ended.
func (w *pastFixture) offers(random *rand.Rand, end time.Time) (records []minuteRecord) {
	for _, provider := range []string{"aave", "lido", "okx"} {
		for _, category := range []string{schemas.RateLending, schemas.RateStaking, schemas.RateBorrowing} {
			for i, coin := range []string{"bitcoin", "ethereum", "solana", "nobody-knows"} {
				if random.IntN(3) == 0 {
					continue
				}
				received := end.Add(-time.Duration(random.Int64N(int64(time.Minute)))).UnixNano()
				records = append(records, &eventsv1.RateRecord{Mark: w.mark(end), Body: &eventsv1.RateRecord_Entry{Entry: &eventsv1.RateEntry{
					Provider: provider, Source: provider, Category: category, CoinId: coin, Symbol: "S", ProviderSymbol: "S", Pool: fmt.Sprint(coin, i%2), Apy: random.Float64() * 9, Time: end.UnixNano(),
					Heard: received, Ended: random.IntN(9) == 0, Said: &eventsv1.Rate{Raw: "1", RawUnit: "apy_percent", Interval: int64(40 * time.Second), IngestTime: received}}}})
			}
		}
	}
	if random.IntN(3) == 0 {
		records = append(records, &eventsv1.RateRecord{Mark: w.mark(end), Body: &eventsv1.RateRecord_Project{Project: &eventsv1.RateProject{Slug: "aave", Name: fmt.Sprint("Aave ", end.Unix()), Time: end.UnixNano()}}})
	}
	return append(records, &eventsv1.RateRecord{Mark: w.mark(end), Body: &eventsv1.RateRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano()}}})
}

// prices has some coins priced by venues in a second.
func (w *pastFixture) prices(random *rand.Rand) {
	for _, coin := range []string{"bitcoin", "ethereum", "solana"} {
		if random.IntN(4) > 0 {
			priced(w.Fixture, coin, []string{fmt.Sprint("okx:", coin, ":USD:", 100+random.IntN(9), ":1"), fmt.Sprint("kraken:", coin, "/USDT:tether:", 100+random.IntN(9), ":1")})
		}
	}
}

// ranked are what a fold writes of the rows of a minute.
func (w *pastFixture) ranked(random *rand.Rand, end time.Time) (records []minuteRecord) {
	ranks := random.Perm(3)
	for i, coin := range []string{"bitcoin", "ethereum", "solana"} {
		records = append(records, &eventsv1.MarketRecord{Mark: w.mark(end), Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{CoinId: coin, Time: end.UnixNano(),
			Price: float64(random.IntN(5)), Rank: uint32(ranks[i] + 1)}}})
	}
	return append(records, &eventsv1.MarketRecord{Mark: w.mark(end), Body: &eventsv1.MarketRecord_Summary{Summary: &eventsv1.Summary{Time: end.UnixNano()}}},
		&eventsv1.MarketRecord{Mark: w.mark(end), Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano()}}})
}

// agedPrices are prices for which no more is kept than what was published since a time.
type agedPrices struct {
	views.PublishedPrices
	since time.Time
}

func (a agedPrices) OldestPrice(context.Context, time.Time) (int64, error) {
	return a.since.Unix(), nil
}

// An answer with yields and a price names the instant from which on both are kept, and yields alone theirs.
func TestYieldsWithAPriceAreKeptAsLongAsBoth(t *testing.T) {
	w := &pastFixture{Fixture: newFixture(t)}
	w.log, w.client = w.Log()
	w.Open(enginetest.Migrated(t))
	begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = begin.Add(time.Hour)
	aged := agedPrices{w.History(), begin.Add(30 * time.Minute)}
	w.Fixture.Serve(rates.New(w.Yields, w.Prices, w.Catalog, w.History(), rates.Served{Yields: views.NewPastYields(w.Yields, w.log, w.History()),
		Rows: views.NewPastRows(w.Catalog, w.log, w.History()), Prices: aged}, views.NewRateCharts(w.Yields, w.History()), states{}, venues).Endpoints())
	for path, want := range map[string]string{
		"/api/v1/rates/eth?asOf=" + begin.Format(time.RFC3339):                `"availableFrom":"` + aged.since.Format("2006-01-02T15:04:05.000Z"),
		"/api/v1/rates/eth?category=price&asOf=" + begin.Format(time.RFC3339): `"availableFrom":"` + aged.since.Format("2006-01-02T15:04:05.000Z"),
		"/api/v1/rates/no-such-coin?asOf=" + begin.Format(time.RFC3339):       "AGED_OUT",
	} {
		if got := w.Get(path); !strings.HasPrefix(got, "410 ") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s; want a 410 with %s", path, got, want)
		}
	}
}

// What is asked for as of an instant is what was answered then, byte for byte: by the process that answered and by another one, from the log,
// in which each minute lies before it is served, and those to come beside it.
func TestYieldsAsTheyWereServed(t *testing.T) {
	random := streamtest.Rand(t)
	w := &pastFixture{Fixture: newFixture(t)}
	w.log, w.client = w.Log()
	w.Open(enginetest.Migrated(t))
	begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = begin.Add(time.Second)
	w.Prices.RememberBy(func() time.Time { return w.Now })
	steps := w.process()
	steps.Begin(func() time.Time { return w.Now })
	var answers, priced []querytest.Answered
	ask := func() {
		answers, priced = append(answers, w.Ask(w.Now, false, asked)), append(priced, w.Ask(w.Now, false, pricedAsked))
	}
	for i := range 81 { // more than what holds without being repeated
		end := begin.Add(time.Duration(i) * time.Minute)
		offers, ranks := w.write(schemas.TopicRates, end, w.offers(random, end)...), w.write(schemas.TopicMarkets, end, w.ranked(random, end)...)
		asks := i%25 == 4 // of the first the log has all that ever was, of the last only what is repeated
		if asks {
			w.Now = end
			w.prices(random)
			w.Now = end.Add(time.Duration(random.IntN(2000)) * time.Millisecond) // it is written, and not served yet
			ask()
		}
		w.Now = end.Add(time.Duration(3000+random.IntN(10_000)) * time.Millisecond)
		for _, rec := range offers {
			w.Must(w.Yields.Apply(rec))
		}
		for _, rec := range ranks {
			w.Must(w.Catalog.ApplyMarkets(rec))
		}
		if asks {
			ask()
			w.Now = w.Now.Add(time.Duration(random.IntN(40_000)) * time.Millisecond) // some prices are stale by then
			ask()
			w.Now = w.Now.Add(time.Second).Truncate(time.Second)
			w.prices(random)
			w.Now = w.Now.Add(time.Millisecond)
		}
	}
	ask()
	check := func(process string) {
		t.Helper()
		for _, was := range answers {
			for i, body := range w.Ask(was.At, true, asked).Bodies {
				if body != was.Bodies[i] {
					t.Fatalf("%s: %s as of %s:\n%s\nwhat was answered then:\n%s", process, asked[i], was.At, body, was.Bodies[i])
				}
				if !strings.HasPrefix(body, "200 ") {
					t.Fatalf("%s: %s as of %s: %s", process, asked[i], was.At, body)
				}
			}
		}
		rows := 0
		for _, was := range priced {
			for i, body := range w.Ask(was.At, true, pricedAsked).Bodies {
				got, stamp := untimed(t, body)
				if want, latest := untimed(t, was.Bodies[i]); got != want || stamp > latest {
					t.Fatalf("%s: %s as of %s, of %s:\n%s\nwhat was answered then, of %s:\n%s", process, pricedAsked[i], was.At, stamp, got, latest, want)
				}
				rows += strings.Count(body, `"category":"price"`)
			}
		}
		if rows < 20 {
			t.Errorf("%s: %d rows of prices, want many", process, rows)
		}
	}
	w.Now = w.Now.Add(time.Hour)
	check("the process that answered")
	// Of all coins: a minute without lending of one coin is drawn now and then.
	first, last := answers[0].Bodies[2], answers[len(answers)-1].Bodies[2]
	if first == last || !strings.Contains(last, `"category":"lending"`) {
		t.Errorf("nothing moved: %s and %s", first, last)
	}

	// Another process, which knows only what the first one recorded; before that nobody answered.
	w.RecordServed(steps, "first")
	w.process()
	check("another process")
	before := begin.Add(-time.Hour).Format(time.RFC3339)
	for path, want := range map[string]string{
		"/api/v1/rates/eth?asOf=" + before:                                                                 "410 AGED_OUT availableFrom",
		"/api/v1/rates?category=lending&asOf=" + before:                                                    "410 AGED_OUT availableFrom",
		"/api/v1/rates/eth?asOf=" + w.Now.Add(time.Minute).Format(time.RFC3339Nano):                        "400 VALIDATION_ERROR asOf",
		"/api/v1/rates?category=lending&provider=nobody&asOf=" + answers[0].At.Format(time.RFC3339Nano):    "404 nobody",
		"/api/v1/rates/" + "no-such-coin" + "?asOf=" + answers[len(answers)-1].At.Format(time.RFC3339Nano): "404 no-such-coin",
	} {
		got := w.Get(path)
		if words := strings.Fields(want); slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(got, word) }) {
			t.Errorf("%s: got %s; want %s", path, got, want)
		}
	}
}
