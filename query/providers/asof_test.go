package providers_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/providers"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// askedOf are the operations that answer the states of providers.
var askedOf = []string{
	"/api/v1/providers?", "/api/v1/providers?category=price&", "/api/v1/providers?view=tool&", "/api/v1/rates/providers?", "/api/v1/rates/providers/aave?", "/api/v1/rates/providers/okx?",
	"/api/v1/rates/providers/kraken?", "/api/v1/rates/providers/nobody?",
}

var venuesOf = []views.Provider{{Slug: "kraken", Name: "Kraken", Refuses: []string{"JP"}}, {Slug: "okx", Name: "OKX"}, {Slug: "upbit", Name: "Upbit"}}

// pastFixture draws what is known of providers, and writes it to the log and to the store as it goes.
type pastFixture struct {
	*querytest.Fixture
	*rand.Rand
	client     *kgo.Client
	partitions int32
	// unwritten is what sources stated that the tables do not have yet, in the order of the log.
	unwritten []unwritten
}

// unwritten is a record that the tables have from a time on.
type unwritten struct {
	from   time.Time
	offset int64
	rec    *eventsv1.ReferenceRecord
}

// process begins to answer with views that have read nothing yet.
func (w *pastFixture) process(prices *views.PriceCache, log *views.Log) {
	w.Prices, w.Catalog, w.Yields = prices, views.NewCatalog(prices.Coins()), views.NewYieldStore()
	clock := func() time.Time { return w.Now }
	prices.ReadPastFrom(log)
	prices.RememberBy(clock)
	w.Catalog.RememberBy(clock, prices.Steps())
	w.Yields.RememberBy(clock, prices.Steps())
	served := providers.Served{Sources: views.NewPastCurrencies(w.Catalog, log, w.History()), Yields: views.NewPastYields(w.Yields, log, w.History()), Prices: w.History()}
	unit := providers.New(prices, w.Catalog, w.Yields, w.History(), served, venuesOf)
	w.Serve(append(unit.Endpoints(), rates.New(w.Yields, prices, w.Catalog, w.History(), rates.Served{Yields: served.Yields, Rows: views.NewPastRows(w.Catalog, log, w.History()), Prices: w.History()},
		views.NewRateCharts(w.Yields, w.History()), unit, venuesOf).Endpoints()...))
}

// produce writes a record to the log at a time, and returns its offset.
func (w *pastFixture) produce(topic string, partition int32, at time.Time, rec interface{ MarshalVT() ([]byte, error) }) (offset int64, value []byte) {
	w.T.Helper()
	value, err := rec.MarshalVT()
	w.Must(err)
	written := &kgo.Record{Topic: topic, Partition: partition, Key: []byte("x"), Value: value, Timestamp: at}
	w.Must(w.client.ProduceSync(w.T.Context(), written).FirstErr())
	return written.Offset, value
}

// state writes what a source states, which the tables have within a minute.
func (w *pastFixture) state(rec *eventsv1.ReferenceRecord) views.TailRecord {
	rec.Producer, rec.Epoch = "sources", 1
	offset, value := w.produce(schemas.TopicReferenceRaw, 0, w.Now, rec)
	w.unwritten = append(w.unwritten, unwritten{w.Now.Add(time.Duration(w.Int64N(int64(time.Minute)))), offset, rec})
	return views.TailRecord{Offset: offset, Value: value}
}

// write brings the tables to where they are now.
func (w *pastFixture) write() {
	var b rows.Batch
	written := 0
	for ; written < len(w.unwritten) && !w.Now.Before(w.unwritten[written].from); written++ {
		b.Add(rows.Place{Topic: schemas.TopicReferenceRaw, Offset: w.unwritten[written].offset}, w.unwritten[written].rec)
	}
	if w.unwritten = w.unwritten[written:]; written > 0 {
		w.Must(b.Insert(w.T.Context(), w.Store, ""))
	}
}

var sourcesOf = []string{"aave", "lido", "okx", "okx-earn", "defillama", "alternative"}

// stated is what some source states, a notice now and then, else a request that has just ended.
func (w *pastFixture) stated() *eventsv1.ReferenceRecord {
	source := sourcesOf[w.IntN(len(sourcesOf))]
	if w.IntN(3) > 0 {
		f := &eventsv1.Fetch{Source: source, Feed: "f", Url: "u", Status: 200, Duration: w.Int64N(int64(20 * time.Second)), Told: uint64(1 + w.IntN(2)), Rows: w.Int64N(2)}
		f.Started = w.Now.UnixNano() - f.Duration
		if w.IntN(4) == 0 {
			f.Status, f.Error, f.Told, f.Rows = 503, fmt.Sprint("busy ", w.IntN(9)), 0, 0
		}
		return &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fetch{Fetch: f}}
	}
	n := &eventsv1.SourceNotice{Source: source, Name: fmt.Sprint(source, " ", w.IntN(3)), Kinds: []string{"rate"}, Enabled: w.IntN(4) > 0, Interval: int64(time.Minute), Moves: int64(w.IntN(3)) * int64(time.Minute), Simulated: w.IntN(4) == 0}
	if source == "okx" {
		n.Kinds = []string{"price"}
	}
	return &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Notice{Notice: n}}
}

// price publishes a price of a coin, of what venues were heard of lately.
func (w *pastFixture) price() {
	coin := []string{"bitcoin", "bitcoin", "ethereum"}[w.IntN(3)]
	second := w.Now.Truncate(time.Second).UnixNano()
	if e := w.Prices.Entry(w.coin(coin)); e != nil && e.Latest.Time >= second {
		return
	}
	var inputs []*eventsv1.PriceInput
	for _, venue := range []string{"kraken", "okx"} {
		if w.IntN(3) > 0 {
			received := w.Now.Add(-time.Duration(w.Int64N(int64(w.IntN(5)+1) * int64(time.Minute))))
			inputs = append(inputs, &eventsv1.PriceInput{Provider: venue, Symbol: coin + "/USD", QuoteId: "USD", Rate: 1, Last: 100 + float64(w.IntN(9)), LastHeard: received.UnixNano(), EventTime: received.UnixNano()})
		}
	}
	result, inputs := schemas.Aggregate(inputs, w.Now.UnixNano())
	price := &eventsv1.Price{CoinId: coin, Time: second, Published: w.Now.UnixNano(), Price: result.Price, Accepted: uint32(result.Accepted), Inputs: inputs, Method: schemas.AggregateVersion, Simulated: w.IntN(9) == 0}
	if result.Accepted == 0 {
		price.Reason = schemas.ReasonNoFreshInputs
	}
	partition := views.PartitionOf(coin, w.partitions)
	rec := &eventsv1.PriceRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Partition: partition, Offset: w.Offset()}, Body: &eventsv1.PriceRecord_Price{Price: price}}
	w.produce(schemas.TopicPrices, partition, w.Now, rec)
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicPrices, Partition: partition, Offset: rec.Mark.Offset}, rec)
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	w.Must(querytest.ApplyPrice(w.Prices, views.TailRecord{Partition: partition, Offset: rec.Mark.Offset, Marked: rec}))
}

func (w *pastFixture) coin(id string) schemas.Coin {
	coin, _ := w.Prices.Coins().ByID(id)
	return coin
}

// minute writes what the folds of yields and of rows make of a minute.
func (w *pastFixture) minute(end time.Time) (yields, ranks []views.TailRecord) {
	index := uint32(0)
	mark := func() *eventsv1.Mark {
		index++
		return &eventsv1.Mark{LogicVersion: 1, Offset: end.UnixNano(), Index: index}
	}
	pulse := &eventsv1.Pulse{Now: end.UnixNano(), Watermark: end.UnixNano()}
	var offered []*eventsv1.RateRecord
	for _, provider := range []string{"aave", "lido", "okx"} {
		for _, category := range schemas.RateCategories {
			if w.IntN(3) > 0 {
				continue
			}
			received := end.Add(-time.Duration(w.Int64N(int64(time.Minute)))).UnixNano()
			source := []string{provider, "defillama", cmp.Or(map[string]string{"okx": "okx-earn"}[provider], provider)}[w.IntN(3)]
			offered = append(offered, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: &eventsv1.RateEntry{Provider: provider, Source: source, Category: category, CoinId: []string{"bitcoin", "ethereum"}[w.IntN(2)],
				Symbol: "S", ProviderSymbol: "S", Pool: fmt.Sprint(w.IntN(2)), Apy: w.Float64() * 9, Time: end.UnixNano(), Heard: received, Ended: w.IntN(9) == 0, Simulated: w.IntN(20) == 0,
				Said: &eventsv1.Rate{Raw: "1", RawUnit: "apy_percent", Interval: int64(40 * time.Second), IngestTime: received}}}})
		}
	}
	if w.IntN(6) == 0 {
		offered = append(offered, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Project{Project: &eventsv1.RateProject{Slug: "aave", Name: fmt.Sprint("Aave ", end.Minute()), Time: end.UnixNano()}}})
	}
	for _, rec := range append(offered, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Pulse{Pulse: pulse}}) {
		rec.Mark = mark()
		offset, _ := w.produce(schemas.TopicRates, 0, end, rec)
		yields = append(yields, views.TailRecord{Offset: offset, Marked: rec})
	}
	ranked := []*eventsv1.MarketRecord{}
	for rank, coin := range w.Perm(2) {
		ranked = append(ranked, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{CoinId: []string{"bitcoin", "ethereum"}[coin], Time: end.UnixNano(), Price: 1, Rank: uint32(rank + 1)}}})
	}
	ranked = append(ranked, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{Summary: &eventsv1.Summary{Time: end.UnixNano()}}}, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{Pulse: pulse}})
	for _, rec := range ranked {
		rec.Mark = mark()
		offset, _ := w.produce(schemas.TopicMarkets, 0, end, rec)
		ranks = append(ranks, views.TailRecord{Offset: offset, Marked: rec})
	}
	return yields, ranks
}

var (
	requestID = regexp.MustCompile(`,"requestId":"[^"]*"`)
)

// untimed is an answer without the time that it is complete up to, which of now is how far the log was read, and that.
func untimed(t *testing.T, answer string) (rest, stamp string) {
	t.Helper()
	if !strings.HasPrefix(answer, "200 ") {
		return requestID.ReplaceAllString(answer, ""), ""
	}
	var body struct {
		Data *struct{ Timestamp string }
		Meta struct{ LastUpdated string }
	}
	if err := json.Unmarshal([]byte(answer[4:]), &body); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	stamp = body.Meta.LastUpdated
	if body.Data != nil && body.Data.Timestamp != stamp {
		t.Errorf("of %s, last updated %s", body.Data.Timestamp, stamp)
	}
	return strings.NewReplacer(`"timestamp":"`+stamp+`"},"meta"`, "", `"lastUpdated":"`+stamp+`","dataAge"`, "", `"lastUpdated":"`+stamp+`"}}`, "").Replace(answer), stamp
}

// The states of providers are made of notices, requests, yields and prices, each of which comes at its own pace. As of an instant they are those that were
// answered then: of the process that answered, and of another that has nothing but the log and the tables.
func TestProvidersAsTheyWereServed(t *testing.T) {
	w := &pastFixture{Fixture: querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,")), Rand: streamtest.Rand(t)}
	w.Open(enginetest.Migrated(t))
	topic, err := schemas.TopicNamed(schemas.TopicPrices)
	w.Must(err)
	w.partitions = topic.Partitions
	var log *views.Log
	log, w.client = w.Log()
	begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = begin
	clock := func() time.Time { return w.Now }
	for range 9 { // of before the process began to read
		w.state(w.stated())
	}
	w.process(w.Prices, log)
	steps := w.Prices.Steps()
	type asking struct {
		querytest.Answered
		paths []string
	}
	var answers []asking
	ask := func() {
		var paths []string
		for _, n := range w.Perm(len(askedOf))[:3] {
			paths = append(paths, askedOf[n])
		}
		w.write()
		answers = append(answers, asking{w.Ask(w.Now, false, paths), paths})
	}
	var unread, stated []views.TailRecord // what sources state, of which the first is not applied yet
	next := begin.Add(time.Minute)
	for i := range 100 {
		w.Now = w.Now.Add(time.Duration(1 + w.Int64N(int64(16*time.Second))))
		for !w.Now.Before(next) {
			yields, ranks := w.minute(next)
			if i > 20 && w.IntN(2) == 0 {
				ask() // the minute is not served yet
				w.Now = w.Now.Add(time.Millisecond)
			}
			for _, rec := range yields {
				w.Must(w.Yields.Apply(rec))
			}
			for _, rec := range ranks {
				w.Must(w.Catalog.ApplyMarkets(rec))
			}
			w.Yields.Settle()
			w.Catalog.Settle()
			next = next.Add(time.Minute)
		}
		switch w.IntN(4) {
		case 0:
			w.price()
		case 1:
			unread = append(unread, w.state(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: w.Now.UnixNano()}}}))
		default:
			unread = append(unread, w.state(w.stated()))
		}
		for len(unread) > 0 && w.IntN(5) > 0 {
			w.Must(w.Catalog.ApplyReference(unread[0]))
			stated, unread = append(stated, unread[0]), unread[1:]
			w.Catalog.Settle()
		}
		if i == 20 {
			steps.Begin(clock)
		}
		if i > 20 && w.IntN(3) == 0 {
			w.Now = w.Now.Add(time.Duration(w.Int64N(int64(time.Second))))
			ask()
		}
	}
	w.Now = w.Now.Add(time.Hour)
	w.write()
	w.RecordServed(steps, "first")
	w.Must(w.Store.Record(t.Context(), []history.SinkProgress{{Sink: schemas.TopicServed, Progress: history.Progress{Next: w.Offset(), LogTime: w.Now.UnixNano()}}}))
	check := func(who string) {
		t.Helper()
		for _, was := range answers {
			for i, body := range w.Ask(was.At, true, was.paths).Bodies {
				got, stamp := untimed(t, body)
				if want, latest := untimed(t, was.Bodies[i]); got != want || stamp > latest {
					t.Fatalf("%s: %s as of %s, of %s:\n%s\nwhat was answered then, of %s:\n%s", who, was.paths[i], was.At.Format(time.RFC3339Nano), stamp, got, latest, want)
				}
			}
		}
	}
	check("the process that answered")
	said := fmt.Sprint(answers)
	for _, word := range []string{`"healthy"`, `"degraded"`, `"down"`, `"standstill"`, `"category":"lending"`, "busy", "404 "} {
		if !strings.Contains(said, word) {
			t.Errorf("none of %d answers has %s", len(answers), word)
		}
	}

	w.process(views.NewPriceCache(w.Prices.Coins()), log)
	for p := range w.partitions {
		pulse := &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.Now.UnixNano()}}}
		w.Must(w.Prices.Apply(views.TailRecord{Partition: p, Offset: w.Offset(), Marked: pulse}))
	}
	for _, rec := range stated {
		w.Must(w.Catalog.ApplyReference(rec))
	}
	check("another process")
	for path, want := range map[string]string{
		"/api/v1/providers?asOf=" + begin.Add(-time.Hour).Format(time.RFC3339):            "410 AGED_OUT availableFrom",
		"/api/v1/rates/providers?asOf=" + begin.Add(-time.Hour).Format(time.RFC3339):      "410 AGED_OUT availableFrom",
		"/api/v1/rates/providers/aave?asOf=" + begin.Add(-time.Hour).Format(time.RFC3339): "410 AGED_OUT availableFrom",
		"/api/v1/providers?asOf=" + w.Now.Add(time.Minute).Format(time.RFC3339):           "400 VALIDATION_ERROR asOf",
	} {
		got := w.Get(path)
		for word := range strings.FieldsSeq(want) {
			if !strings.Contains(got, word) {
				t.Errorf("%s: got %s; want %s", path, got, want)
			}
		}
	}
}
