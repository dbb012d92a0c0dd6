package rates_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// untold are requests for series of yields that answer the past, of coins and providers of which no source tells the past; told are others.
var (
	untold = []string{
		"/api/v1/rates/history?coin=eth&country=DE&product=lending-rates&", "/api/v1/rates/history?platform=aave&country=DE&product=staking-rewards&timeframe=90d&",
		"/api/v1/rates/eth/history?days=1&limit=60&", "/api/v1/rates/btc/history?days=60&limit=100&", "/api/v1/rates/eth/history?days=400&category=lending&",
		"/api/v1/rates/eth/history?from=2026-11-19T22:30:00Z&to=2026-11-20T00:05:00Z&category=staking&limit=1000&",
		"/api/v1/charts/ethereum/rates/lending?timeframe=1h&", "/api/v1/charts/ethereum/rates/lending?timeframe=24h&", "/api/v1/charts/bitcoin/rates/staking?timeframe=30d&format=simple&",
		"/api/v1/charts/ethereum/rates/lending?timeframe=24h&provider=aave&",
	}
	told = []string{
		"/api/v1/rates/history?coin=sol&country=DE&product=lending-rates&", "/api/v1/rates/history?platform=teller&country=DE&product=lending-rates&",
		"/api/v1/rates/sol/history?days=2&limit=300&", "/api/v1/rates/sol/history?days=60&limit=900&", "/api/v1/charts/solana/rates/lending?timeframe=7d&",
	}
)

// pricedPast are requests for past prices of exchanges.
var pricedPast = []string{
	"/api/v1/rates/eth/history?category=price&days=1&limit=1000&", "/api/v1/rates/eth/history?category=price&provider=okx&days=60&limit=100&",
	"/api/v1/rates/eth/history?category=price&from=2026-11-19T23:40:00Z&to=2026-11-20T00:20:00Z&limit=300&",
}

// unavailable is since when there are prices, in an answer.
var unavailable = regexp.MustCompile(`,"availableFrom":"[^"]*"`)

// seriesFixture is a log with what folds of minutes wrote, tables that come after it at their own pace, and processes that read both.
type seriesFixture struct {
	*pastFixture
	random *rand.Rand
	charts *views.RateCharts
	// behind are the records that the tables do not have yet, by topic, in the order of the log.
	behind map[string][]written
	symbol string // of the rates of which the past is told
	// earliest and priced are the first and the last second of prices in the tables.
	earliest, priced time.Time
}

type written struct {
	place  rows.Place
	record eventsv1.Marked
}

// process begins to answer, without anything read.
func (w *seriesFixture) process() *views.ServedSteps {
	w.Yields, w.Catalog = views.NewYieldStore(), views.NewCatalog(w.Prices.Coins())
	steps, now := views.NewPriceCache(w.Prices.Coins()).Steps(), func() time.Time { return w.Now }
	w.Yields.RememberBy(now, steps)
	w.Catalog.RememberBy(now, steps)
	w.charts = views.NewRateCharts(w.Yields, w.History())
	pastYields := views.NewPastYields(w.Yields, w.log, w.History())
	w.charts.RememberBy(now, steps, w.History(), pastYields)
	w.Fixture.Serve(append(rates.New(w.Yields, w.Prices, w.Catalog, w.History(), rates.Served{Yields: pastYields, Rows: views.NewPastRows(w.Catalog, w.log, w.History()), Prices: w.History()},
		w.charts, states{}, venues).Endpoints(), charts.New(w.Prices, w.Catalog, views.NewCandles(w.Prices, w.History()), w.History(), w.Yields, w.charts).Endpoints()...))
	return steps
}

// fold writes what a fold made of a minute to the log, of which the tables are behind.
func (w *seriesFixture) fold(end time.Time, records ...minuteRecord) []views.TailRecord {
	read := w.write(schemas.TopicRates, end, records...)
	for i, rec := range records {
		w.behind[schemas.TopicRates] = append(w.behind[schemas.TopicRates], written{rows.Place{Topic: schemas.TopicRates, Offset: read[i].Offset}, rec})
	}
	return read
}

// keep puts some of the records of a topic into the tables, all with most 0; the ledger says so afterwards.
func (w *seriesFixture) keep(topic string, most int, before func()) {
	w.T.Helper()
	of := w.behind[topic]
	if most > 0 && most < len(of) {
		of = of[:most]
	}
	if len(of) == 0 {
		return
	}
	var b rows.Batch
	for _, rec := range of {
		b.Add(rec.place, rec.record)
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	w.behind[topic] = w.behind[topic][len(of):]
	before()
	w.Must(w.Store.Record(w.T.Context(), []history.SinkProgress{{Sink: topic, Progress: history.Progress{Next: of[len(of)-1].place.Offset + 1, LogTime: w.Now.UnixNano()}}}))
}

// publish puts prices that were published a moment ago into the tables, of seconds of some time ago.
func (w *seriesFixture) publish() {
	var b rows.Batch
	for range 1 + w.random.IntN(3) {
		published := w.Now.Add(-time.Duration(w.random.Int64N(int64(3 * time.Second))))
		var second time.Time
		if w.random.IntN(4) == 0 { // before those that are there
			w.earliest = w.earliest.Add(-time.Second)
			second = w.earliest
		} else {
			w.priced = w.priced.Add(time.Second * time.Duration(1+w.random.IntN(3)))
			second = w.priced
		}
		offset := w.Offset()
		b.Add(rows.Place{Topic: schemas.TopicPrices, Offset: offset}, &eventsv1.PriceRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: offset}, Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{
			CoinId: "ethereum", Time: second.UnixNano(), Published: published.UnixNano(), Price: 1, Accepted: 2, Inputs: []*eventsv1.PriceInput{
				{Provider: "okx", Symbol: "ETH-USD", Accepted: true, PriceUsd: w.random.Float64()}, {Provider: "kraken", Symbol: "ETH/USD", Accepted: w.random.IntN(2) == 0, PriceUsd: w.random.Float64()}}}}})
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
}

// rolled are what a fold writes of the hour, and of the day, that ends with a minute.
func (w *seriesFixture) rolled(end time.Time) (records []minuteRecord) {
	for _, length := range []time.Duration{time.Hour, 24 * time.Hour} {
		if !end.Equal(end.Truncate(length)) {
			continue
		}
		for _, provider := range []string{"aave", "lido", "okx", "teller"} {
			for _, category := range schemas.RateCategories {
				for i, coin := range []string{"bitcoin", "ethereum", "solana"} {
					if (provider == "teller") != (coin == "solana") || provider == "teller" && category != schemas.RateLending || w.random.IntN(4) == 0 {
						continue
					}
					low := w.random.Float64() * 5
					r := &eventsv1.RateRollup{Provider: provider, Source: provider, Category: category, CoinId: coin, Symbol: "S", ProviderSymbol: "S", Pool: fmt.Sprint(coin, i%2),
						Start: end.Add(-length).UnixNano(), Interval: uint32(length / time.Second), Open: low, High: low + 1, Low: low, Close: low + w.random.Float64(), Mean: low + 0.5, N: 3}
					if w.random.IntN(2) == 0 {
						locked := 1e6 * w.random.Float64()
						r.TvlUsd = &locked
					}
					records = append(records, &eventsv1.RateRecord{Mark: w.mark(end), Body: &eventsv1.RateRecord_Rollup{Rollup: r}})
				}
			}
		}
	}
	return records
}

// offered are what a fold writes of a minute: rates that come and go, and those of which the past is told.
func (w *seriesFixture) offered(end time.Time) []minuteRecord {
	records := w.offers(w.random, end)
	var kept []minuteRecord
	for _, rec := range records[:len(records)-1] {
		if e := rec.(*eventsv1.RateRecord).GetEntry(); e.GetCoinId() != "solana" {
			kept = append(kept, rec)
		}
	}
	for i := range 2 {
		received := end.Add(-time.Duration(w.random.Int64N(int64(time.Minute)))).UnixNano()
		kept = append(kept, &eventsv1.RateRecord{Mark: w.mark(end), Body: &eventsv1.RateRecord_Entry{Entry: &eventsv1.RateEntry{
			Provider: "teller", Source: "teller", Category: schemas.RateLending, CoinId: "solana", Symbol: w.symbol, ProviderSymbol: "S", Pool: fmt.Sprint("solana", i), Apy: w.random.Float64(), Apr: 1,
			Time: end.UnixNano(), Heard: received, Said: &eventsv1.Rate{Raw: "1", RawUnit: "apy_percent", Interval: int64(time.Hour), IngestTime: received}}}})
	}
	pulse := records[len(records)-1].(*eventsv1.RateRecord)
	kept = append(kept, w.rolled(end)...)
	pulse.Mark = w.mark(end) // it is the last of its minute
	return append(kept, pulse)
}

// tell has a source tell some of the past: of a pool whose coin and category it does not say, or does.
func (w *seriesFixture) tell() {
	for range 1 + w.random.IntN(5) {
		said := &eventsv1.Rate{Source: "teller", Project: "teller", Pool: fmt.Sprint("solana", w.random.IntN(2)), Symbol: "S", Raw: fmt.Sprint(w.random.IntN(9)), RawUnit: "apy_percent",
			Past: true, EventTime: w.Now.Add(-time.Duration(w.random.IntN(100*60)) * time.Minute).UnixNano(), IngestTime: w.Now.UnixNano()}
		if w.random.IntN(2) == 0 {
			said.Category, said.CoinId = schemas.RateLending, "solana"
		}
		rec := &eventsv1.ReferenceRecord{Producer: "backfill", Body: &eventsv1.ReferenceRecord_Rate{Rate: said}}
		value, err := rec.MarshalVT()
		w.Must(err)
		r := &kgo.Record{Topic: schemas.TopicRatesRaw, Key: []byte("x"), Value: value, Timestamp: w.Now}
		w.Must(w.client.ProduceSync(w.T.Context(), r).FirstErr())
		w.behind[schemas.TopicRatesRaw] = append(w.behind[schemas.TopicRatesRaw], written{rows.Place{Topic: schemas.TopicRatesRaw, Offset: r.Offset}, rec})
	}
}

// Series of yields as of an instant are what was answered then, byte for byte, however far the tables were behind what was served, by the process that answered
// and by another one. Where sources told more of the past since they are refused, and name the instant from which on they are not.
func TestSeriesOfYieldsAsTheyWereServed(t *testing.T) {
	random := streamtest.Rand(t)
	begin := time.Date(2026, 11, 19, 23, 30, 0, 0, time.UTC)
	w := &seriesFixture{pastFixture: &pastFixture{Fixture: newFixture(t)}, random: random, behind: map[string][]written{}, symbol: "SOL",
		earliest: begin, priced: begin}
	w.log, w.client = w.Log()
	w.Open(enginetest.Migrated(t))
	quiet := func() {}
	for hours := 50; hours > 0; hours-- {
		end := begin.Truncate(time.Hour).Add(-time.Duration(hours) * time.Hour)
		if rolled := w.rolled(end); len(rolled) > 0 {
			w.fold(end, rolled...)
		}
	}
	w.keep(schemas.TopicRates, 0, quiet)
	w.Now = begin
	w.tell()
	w.keep(schemas.TopicRatesRaw, 0, quiet)
	w.Now = begin.Add(time.Second)
	steps := w.process()
	steps.Begin(func() time.Time { return w.Now })
	asked := slices.Concat(untold, told, pricedPast)
	var answers []querytest.Answered
	ask := func() {
		if n := len(answers); n == 0 || answers[n-1].At.Before(w.Now) {
			answers = append(answers, w.Ask(w.Now, false, asked))
		}
	}
	advance := func(most time.Duration) {
		w.Now = w.Now.Add(time.Millisecond * time.Duration(1+random.IntN(int(most/time.Millisecond))))
	}
	lastTold := begin
	// Sources may tell more of the past while it goes on, or what they told of may become another's.
	tells, changes, refused := random.IntN(3) == 0, random.IntN(120), time.Duration(0)
	for i := range 65 {
		end := begin.Add(time.Duration(i) * time.Minute)
		if w.Now.Before(end) {
			w.Now = end
		}
		if !tells && i == changes {
			w.symbol, lastTold, refused = "SOL2", end, 70*time.Minute
		}
		folded := w.fold(end, w.offered(end)...)
		asks := i%22 == 4 || end.Minute() == 0
		var events []func()
		events = append(events, func() {
			for _, rec := range folded {
				w.Must(w.Yields.Apply(rec))
			}
		}, func() { w.Must(w.charts.Look(t.Context())) })
		before := quiet
		if asks {
			events = append(events, ask, ask)
			before = func() { advance(time.Second); ask() }
		}
		events = append(events, w.publish, w.publish)
		if random.IntN(4) > 0 {
			events = append(events, func() { w.keep(schemas.TopicRates, random.IntN(3)*random.IntN(60), before) }, func() { w.Must(w.charts.Look(t.Context())) })
		}
		if tells && random.IntN(9) == 0 {
			events = append(events, w.tell, func() { w.keep(schemas.TopicRatesRaw, 0, quiet); lastTold, refused = w.Now, 3*time.Minute })
		}
		random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		for _, event := range events {
			advance(7 * time.Second)
			event()
		}
		if i == 0 { // before the tables have a whole minute nothing is known of then
			w.keep(schemas.TopicRates, 0, quiet)
			w.Must(w.charts.Look(t.Context()))
		}
	}
	advance(time.Second)
	ask()
	w.keep(schemas.TopicRates, 0, quiet)
	w.Now = w.Now.Add(2 * time.Minute)
	w.Must(w.charts.Look(t.Context()))
	w.RecordServed(steps, "first")
	w.Must(w.Store.Record(t.Context(), []history.SinkProgress{{Sink: schemas.TopicServed, Progress: history.Progress{Next: w.Offset(), LogTime: w.Now.UnixNano()}}}))

	check := func(process string) {
		t.Helper()
		same, aged, began := 0, 0, time.Now()
		for _, was := range answers {
			if strings.HasPrefix(was.Bodies[0], "503 ") { // no minute was served yet
				continue
			}
			for i, body := range w.Ask(was.At, true, asked).Bodies {
				// The tables may have had prices of a day before.
				dropped := i >= len(untold)+len(told) && was.At.Day() != w.Now.Day()
				switch {
				case body == was.Bodies[i], dropped && body == unavailable.ReplaceAllString(was.Bodies[i], ""):
					same++
				case dropped && !strings.Contains(asked[i], "from=") && strings.HasPrefix(body, "410 ") && strings.Contains(body, "every price is kept"):
					aged++
				case strings.HasPrefix(body, "410 ") && strings.Contains(body, "AGED_OUT") && i >= len(untold) && i < len(untold)+len(told) && was.At.Before(lastTold.Add(refused)):
					aged++
					_, since, _ := strings.Cut(body, `"availableFrom":"`)
					from, err := time.Parse(time.RFC3339, strings.SplitN(since, `"`, 2)[0])
					w.Must(err)
					if got := w.Get(asked[i] + "asOf=" + from.Format(time.RFC3339Nano)); from.Before(w.Now) && !strings.HasPrefix(got, "200 ") {
						t.Fatalf("%s: %s as of %s, from which on it is available: %s", process, asked[i], from, got)
					}
				default:
					t.Fatalf("%s: %s as of %s:\n%s\nwhat was answered then:\n%s", process, asked[i], was.At.Format(time.RFC3339Nano), body, was.Bodies[i])
				}
			}
		}
		if same < len(answers)*len(untold)/2 {
			t.Errorf("%s: %d answers are the same, %d were refused", process, same, aged)
		}
		t.Logf("%s: of %d times %d paths %d are the same, %d refused, in %s", process, len(answers), len(asked), same, aged, time.Since(began))
	}
	w.Now = w.Now.Add(time.Minute)
	check("the process that answered")
	first, last := answers[1].Bodies, answers[len(answers)-1].Bodies
	for i := range asked {
		if strings.HasPrefix(last[i], "200 ") && first[i] == last[i] {
			t.Errorf("%s did not move: %s", asked[i], last[i])
		}
	}
	w.process()
	check("another process")
	before, at := begin.Add(-time.Hour).Format(time.RFC3339), answers[len(answers)-1].At.Format(time.RFC3339Nano)
	for path, want := range map[string]string{
		"/api/v1/rates/eth/history?asOf=" + before:                                                "410 AGED_OUT availableFrom",
		"/api/v1/rates/history?coin=eth&country=DE&product=lending-rates&asOf=" + before:          "410 AGED_OUT availableFrom",
		"/api/v1/charts/ethereum/rates/lending?asOf=" + before:                                    "410 AGED_OUT availableFrom",
		"/api/v1/rates/eth/history?category=price&asOf=" + before:                                 "410 AGED_OUT availableFrom",
		"/api/v1/charts/ethereum/rates/lending?asOf=" + w.Now.Add(time.Hour).Format(time.RFC3339): "400 VALIDATION_ERROR asOf",
		"/api/v1/charts/ethereum/rates/lending?provider=nobody&asOf=" + at:                        "404 nobody",
		"/api/v1/rates/history?platform=nobody&country=DE&product=lending-rates&asOf=" + at:       "404 nobody",
		"/api/v1/rates/no-such-coin/history?asOf=" + at:                                           "404 no-such-coin",
	} {
		got := w.Get(path)
		for _, word := range strings.Fields(want) {
			if !strings.Contains(got, word) {
				t.Errorf("%s: got %.400s; want %s", path, got, want)
			}
		}
	}
}
