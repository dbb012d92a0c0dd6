package coins_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// rowsOf are the operations that answer rows of coins of the past.
var rowsOf = []string{
	"/api/v1/coins/markets?", "/api/v1/coins/markets?order=price_change_percentage_24h&order_dir=desc&per_page=2&page=2&", "/api/v1/coins/markets?order=total_volume&",
	"/api/v1/coins/markets?sparkline=true&", "/api/v1/coins/markets?sparkline=true&order=total_volume&per_page=2&page=2&",
	"/api/v1/coins/top?limit=3&", "/api/v1/coins/trending?", "/api/v1/coins/bitcoin/market-data?", "/api/v1/coins/ethereum/market-data?", "/api/v1/coins/pepe/market-data?",
	"/api/v1/coins/featured?", "/api/v1/coins/featured?limit=2&", "/api/v1/coins/with-rates?category=lending&", "/api/v1/coins/with-rates?category=staking&limit=2&",
	"/api/v1/coins/with-rates?category=borrowing&limit=50&",
}

// randomCandles are candles that differ whenever they are read.
type randomCandles struct {
	*rand.Rand
	closed func() time.Time
}

func (h randomCandles) AllIntervals(_ context.Context, interval time.Duration, from, to time.Time) (map[string][]schemas.Candle, error) {
	all := map[string][]schemas.Candle{}
	for _, coin := range []string{"bitcoin", "ethereum", "solana"} {
		for at := from; at.Before(to) && h.IntN(5) > 0; at = at.Add(interval) {
			price := 100 + 900*h.Float64()
			all[coin] = append(all[coin], schemas.Candle{Start: at, Newest: at.Add(interval - time.Minute), Open: price, High: price + 5, Low: price - 5, Close: price})
		}
	}
	return all, nil
}

func (h randomCandles) BackfilledExtremes(context.Context) (map[string]schemas.Extremes, error) {
	return map[string]schemas.Extremes{"bitcoin": {High: 2000, Low: 1, HighAt: h.closed().AddDate(-1, 0, 0), LowAt: h.closed().AddDate(-2, 0, 0)}}, nil
}

func (h randomCandles) ClosedUntil(context.Context) (time.Time, error) { return h.closed(), nil }
func (h randomCandles) BackfillNext(context.Context) (int64, error)    { return 1, nil }

// randomRow is a row of a coin; some have no price.
func randomRow(random *rand.Rand, coin string, rank uint32, end time.Time) *eventsv1.Market {
	known := func() *float64 {
		if random.IntN(4) == 0 {
			return nil
		}
		n := 1e6 * random.Float64()
		return &n
	}
	row := &eventsv1.Market{CoinId: coin, Symbol: strings.ToUpper(coin[:3]), Name: fmt.Sprint(coin, random.IntN(2)), Time: end.UnixNano(), Rank: rank}
	if random.IntN(6) == 0 {
		return row
	}
	row.Price, row.PriceTime, row.PriceSource = 100+900*random.Float64(), end.UnixNano(), []string{schemas.PriceSourceMedian, schemas.PriceSourceMedian, "coingecko"}[random.IntN(3)]
	row.MarketCap, row.Volume24H, row.High24H, row.Low24H, row.Change1H, row.Change24H, row.Change7D, row.Change30D, row.Ath, row.Atl = known(), known(), known(), known(), known(), known(), known(), known(), known(), known()
	if row.CirculatingSupply = known(); row.CirculatingSupply != nil {
		row.SupplySource, row.MaxSupply = "coingecko", known()
	}
	return row
}

// yields writes to the log what a fold makes of the yields of a minute, some reported and some of them ended, and returns it as a tail hands it over.
func (w *replayedFixture) yields(end time.Time) (read []views.TailRecord) {
	w.T.Helper()
	var records []*eventsv1.RateRecord
	for _, provider := range []string{"aave", "lido", "okx"} {
		for _, category := range schemas.RateCategories {
			for _, coin := range []string{"bitcoin", "ethereum", "solana", "pepe", "nobody-knows"} {
				if w.IntN(3) > 0 {
					continue
				}
				received := end.Add(-time.Duration(w.Int64N(int64(time.Minute)))).UnixNano()
				records = append(records, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: &eventsv1.RateEntry{
					Provider: provider, Source: provider, Category: category, CoinId: coin, Symbol: "S", ProviderSymbol: "S", Pool: coin, Apy: float64(w.IntN(50)) / 7, Time: end.UnixNano(),
					Heard: received, Ended: w.IntN(9) == 0, Said: &eventsv1.Rate{Raw: "1", RawUnit: "apy_percent", Interval: int64(40 * time.Second), IngestTime: received}}}})
			}
		}
	}
	records = append(records, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano()}}})
	for index, rec := range records {
		rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: end.UnixNano(), Index: uint32(index)}
		value, err := rec.MarshalVT()
		w.Must(err)
		written := &kgo.Record{Topic: schemas.TopicRates, Value: value, Timestamp: end}
		w.Must(w.client.ProduceSync(w.T.Context(), written).FirstErr())
		read = append(read, views.TailRecord{Offset: written.Offset, Marked: rec})
	}
	return read
}

// Rows of coins are served some seconds after their minute, with figures of candles that each process reads at its own pace. As of an instant
// the answer is the one of that instant, byte for byte: of the process that answered, and of another that knows what was recorded.
func TestCoinsAsTheyWereServed(t *testing.T) {
	w := &replayedFixture{Fixture: newFixture(t), Rand: streamtest.Rand(t)}
	w.Open(enginetest.Migrated(t))
	topic, err := schemas.TopicNamed(schemas.TopicPrices)
	w.Must(err)
	w.partitions = topic.Partitions
	log, client := w.Log()
	w.client = client
	begin := time.Date(2026, 11, 20, 9, 53, 0, 0, time.UTC)
	w.Now = begin
	clock := func() time.Time { return w.Now }
	steps := w.Prices.Steps()
	refresh := func() {}
	lined := &linedFixture{replayedFixture: w, fold: past.NewFold(w.Store), closed: begin.Add(-59 * time.Minute)}
	serve := func(prices *views.PriceCache, catalog *views.Catalog, yields *views.YieldStore) {
		w.Catalog, w.Yields = catalog, yields
		past := views.NewPastCoins(catalog, views.NewPastRows(catalog, log, w.History()), log, w.History())
		lined.candles = views.NewCandles(prices, stored{w.Fixture})
		lined.candles.RememberBy(clock, prices.Steps(), w.History())
		unit := coins.New(prices, catalog, yields, lined.candles,
			coins.Served{Coins: past, Yields: views.NewPastYields(yields, log, w.History())}, stored{w.Fixture})
		refresh = func() { w.Must(unit.Refresh(t.Context())) }
		refresh()
		w.Serve(append(unit.Endpoints(), explain.New(explain.Deps{Prices: prices, Catalog: catalog, Yields: yields, History: w.History(), Log: log, Coins: past}).Endpoints()...))
	}
	for _, coin := range []string{"bitcoin", "ethereum", "tether"} {
		w.Candles(coin, begin.Add(-time.Hour), 1, "1m", 5, 1)
	}
	first := views.NewCatalog(w.Prices.Coins())
	w.Prices.RememberBy(clock)
	w.Prices.ReadPastFrom(log)
	first.RememberBy(clock, steps)
	figures := views.NewFigures(w.Prices, randomCandles{w.Rand, clock}, first.Measure)
	w.Yields.RememberBy(clock, steps)
	serve(w.Prices, first, w.Yields)

	asked := slices.Concat(rowsOf, statedOf)
	type asking struct {
		querytest.Answered
		paths []string
	}
	var answers []asking
	var stated []views.TailRecord // what sources stated, from where the process begins to read
	state := func(times int) {
		for range times {
			stated = append(stated, w.write(w.stated()))
			if w.IntN(6) > 0 {
				stated = append(stated, w.clocked())
			}
		}
	}
	var unread []views.TailRecord // yields
	ask := func(after int) {
		w.Now = w.Now.Add(time.Duration(1+w.IntN(after)) * time.Millisecond)
		w.Shuffle(len(asked), func(a, b int) { asked[a], asked[b] = asked[b], asked[a] })
		paths := slices.Clone(asked[:len(asked)/3])
		answers = append(answers, asking{w.Ask(w.Now, false, paths), paths})
	}
	ranked := []string{"bitcoin", "ethereum", "tether", "solana", "pepe", "dust"} // the last two are none of the table's
	state(3)
	stated = nil // of before the process began to read
	state(4)
	read := 0
	silent := 3 + w.IntN(6) // from this minute on candles cannot be read for a while
	for i := range 15 {
		end := begin.Add(time.Duration(i) * time.Minute)
		w.Now = end
		if i == 1 {
			if w.IntN(2) == 0 {
				lined.look()
			}
			steps.Begin(clock)
		}
		w.publish([]string{"bitcoin", "ethereum"}[w.IntN(2)])
		lined.draw()
		if i == 8 { // its first price, and it is read when that counts as of then
			w.Candles("solana", end.Add(-2*time.Minute), 1, "1m", 5, 1)
			refresh()
		}
		if i > 1 {
			ask(1500) // what the minute is is not served yet
		}
		state(w.IntN(8))
		if i > 1 && w.IntN(3) == 0 {
			ask(1500) // it is written, and not read yet
		}
		for ; read < len(stated) && (i == 0 || w.IntN(8) > 0); read++ {
			w.Must(first.ApplyReference(stated[read]))
			if i > 0 && w.IntN(3) == 0 {
				ask(1500)
			}
		}
		w.Shuffle(len(ranked), func(a, b int) { ranked[a], ranked[b] = ranked[b], ranked[a] })
		records := []*eventsv1.MarketRecord{}
		for rank, coin := range ranked {
			if i == 0 || w.IntN(3) > 0 { // else nothing of the coin has changed
				row := randomRow(w.Rand, coin, uint32(rank+1), end)
				records = append(records, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: row}})
			}
		}
		records = append(records, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{Summary: &eventsv1.Summary{Time: end.UnixNano(), TotalMarketCap: 1}}},
			&eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano(), Watermark: end.UnixNano()}}})
		w.Now = w.Now.Add(time.Duration(1+w.IntN(10_000)) * time.Millisecond)
		for index, rec := range records {
			rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: end.UnixNano(), Index: uint32(index)}
			value, err := rec.MarshalVT()
			w.Must(err)
			w.Must(client.ProduceSync(t.Context(), &kgo.Record{Topic: schemas.TopicMarkets, Value: value, Timestamp: end}).FirstErr())
			w.Must(first.ApplyMarkets(views.TailRecord{Offset: w.Offset(), Marked: rec}))
		}
		first.Settle()
		if i > 0 {
			ask(5000)
		}
		if offered := w.yields(end); i == 0 || w.IntN(4) > 0 { // else its yields are served with those of the next one
			w.Now = w.Now.Add(time.Duration(1+w.IntN(2000)) * time.Millisecond)
			for _, rec := range append(unread, offered...) {
				w.Must(w.Yields.Apply(rec))
			}
			if unread = nil; i > 0 {
				ask(9000)
			}
		} else {
			unread = append(unread, offered...)
		}
		if (i < silent || i > silent+5) && w.IntN(4) > 0 {
			w.Now = w.Now.Add(time.Millisecond)
			w.Must(figures.Refresh(t.Context()))
			if i > 0 {
				ask(20_000)
			}
		}
	}
	w.Now = begin.Add(3 * time.Hour)
	lined.draw()
	w.RecordServed(steps, "first")
	w.Must(w.Store.Record(t.Context(), []history.SinkProgress{{Sink: schemas.TopicServed, Progress: history.Progress{Next: w.Offset(), LogTime: w.Now.UnixNano()}}}))
	requestID := regexp.MustCompile(`"requestId":"[^"]*"`)
	check := func(who string, each int) {
		t.Helper()
		for n, was := range answers {
			if n%each != 0 {
				continue
			}
			for i, body := range w.Ask(was.At, true, was.paths).Bodies {
				body, before := requestID.ReplaceAllString(body, ""), requestID.ReplaceAllString(was.Bodies[i], "")
				if strings.Contains(was.paths[i], "sparkline") && was.At.Before(lined.looked) && strings.HasPrefix(body, "410 ") {
					continue
				}
				if body != before {
					from := 0
					for from < min(len(body), len(before)) && body[from] == before[from] {
						from++
					}
					from = max(0, from-100)
					t.Fatalf("%s: %s as of %s, from byte %d on:\n%s\nwhat was answered then:\n%s", who, was.paths[i], was.At.Format(time.RFC3339Nano), from, body[from:], before[from:])
				}
			}
		}
	}
	check("the process that answered", 1)
	explained := 0
	for _, was := range answers {
		explained += w.explains(was.Answered, was.paths)
	}
	if explained == 0 {
		t.Error("nothing was explained")
	}

	other := views.NewPriceCache(w.Prices.Coins())
	other.ReadPastFrom(log)
	for p := range w.partitions {
		pulse := &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.Now.UnixNano()}}}
		w.Must(other.Apply(views.TailRecord{Partition: p, Offset: w.Offset(), Marked: pulse}))
	}
	second := views.NewCatalog(w.Prices.Coins())
	later := w.IntN(4) // it begins to read elsewhere
	second.RememberBy(clock, other.Steps())
	for _, rec := range stated[later:] {
		w.Must(second.ApplyReference(rec))
	}
	for _, coin := range []string{"pepe", "top", "clone", "dust"} { // a name means what it means now
		w.Must(second.ApplyMarkets(views.TailRecord{Offset: w.Offset(), Marked: &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{
			Market: &eventsv1.Market{CoinId: coin, Symbol: coin, Name: coin, Price: 1, Time: w.Now.UnixNano()}}}}))
	}
	w.Must(second.ApplyMarkets(views.TailRecord{Offset: w.Offset(), Marked: &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.Now.UnixNano()}}}}))
	yields := views.NewYieldStore()
	serve(other, second, yields)
	check("another process", 2)

	// One that begins to answer is asked for what the first one served.
	yields.RememberBy(clock, other.Steps())
	other.Steps().Begin(clock)
	w.RecordServed(other.Steps(), "second")
	check("another process that answers", 4)

	for path, want := range map[string]string{
		"/api/v1/coins/top?asOf=" + begin.Add(-time.Hour).Format(time.RFC3339):                         "410 AGED_OUT availableFrom",
		"/api/v1/coins/markets?sparkline=true&asOf=" + begin.Add(-time.Hour).Format(time.RFC3339):      "410 AGED_OUT availableFrom",
		"/api/v1/coins/bitcoin?asOf=" + begin.Add(-time.Hour).Format(time.RFC3339):                     "410 AGED_OUT availableFrom",
		"/api/v1/coins/categories?asOf=" + begin.Add(-time.Hour).Format(time.RFC3339):                  "410 AGED_OUT availableFrom",
		"/api/v1/coins/featured?asOf=" + begin.Add(-time.Hour).Format(time.RFC3339):                    "410 AGED_OUT availableFrom",
		"/api/v1/coins/with-rates?category=lending&asOf=" + begin.Add(-time.Hour).Format(time.RFC3339): "410 AGED_OUT availableFrom",
		"/api/v1/coins/bitcoin/market-data?asOf=" + w.Now.Add(time.Hour).Format(time.RFC3339):          "400 VALIDATION_ERROR asOf",
		"/api/v1/coins/bitcoin/market-data?asOf=" + begin.Add(-24*time.Hour).Format(time.RFC3339):      "410 AGED_OUT",
		fmt.Sprintf("/api/v1/coins/trending?asOf=%s", begin.Add(12*time.Minute).Format(time.RFC3339)):  "200 coins",
	} {
		got := w.Get(path)
		status, words, _ := strings.Cut(want, " ")
		for _, word := range strings.Split(words, " ") {
			if !strings.HasPrefix(got, status) || !strings.Contains(got, word) {
				t.Errorf("%s: got %s; want %s", path, got, want)
			}
		}
	}
}

// linedFixture has live minutes close, and venues report candles of before, at a pace of their own.
type linedFixture struct {
	*replayedFixture
	candles *views.Candles
	fold    *past.Fold
	closed  time.Time
	looked  time.Time // first: sparklines of before have no closes, and are not answered as of then
}

// draw does some of what sparklines are made of.
func (w *linedFixture) draw() {
	for range w.IntN(4) {
		switch w.IntN(3) {
		case 0:
			w.close()
		case 1:
			w.backfill()
		default:
			w.look()
		}
	}
}

// look finds out of what charts are made.
func (w *linedFixture) look() {
	w.Now = w.Now.Add(time.Millisecond)
	w.Must(w.candles.Look(w.T.Context()))
	if w.looked.IsZero() {
		w.looked = w.Now
	}
}

// close closes minutes that ended, of most coins, and perhaps not of all partitions.
func (w *linedFixture) close() {
	topic, err := schemas.TopicNamed(schemas.TopicCandles)
	w.Must(err)
	var candles []*eventsv1.Candle
	var progress []history.SinkProgress
	for ; w.closed.Add(time.Minute).Before(w.Now); w.closed = w.closed.Add(time.Minute) {
		for _, coin := range []string{"bitcoin", "ethereum", "tether"} {
			if w.IntN(6) > 0 {
				price := 100 + 900*w.Float64()
				candles = append(candles, &eventsv1.Candle{CoinId: coin, Start: w.closed.UnixNano(), Open: price, High: price, Low: price, Close: price, Volume: "1"})
			}
		}
	}
	if len(candles) > 0 {
		w.AddCandles(candles...)
	}
	for partition := range topic.Partitions {
		progress = append(progress, history.SinkProgress{Sink: topic.Name, Progress: history.Progress{Partition: partition, Next: w.Offset(),
			ClosedUntil: w.closed.Add(-time.Duration(w.IntN(2)*w.IntN(90)) * time.Second).Truncate(time.Minute).UnixNano()}})
	}
	w.Must(w.Store.Record(w.T.Context(), progress))
}

// backfill has a venue report hours and minutes of before, perhaps others than before, which are folded.
func (w *linedFixture) backfill() {
	length := []time.Duration{time.Minute, time.Hour}[w.IntN(2)]
	var b rows.Batch
	for range 1 + w.IntN(9) {
		base, price := []string{"BTC", "ETH", "SOL"}[w.IntN(3)], fmt.Sprint(100+w.IntN(900))
		b.Add(rows.Place{Topic: schemas.TopicBackfillRaw, Offset: w.Offset()}, &eventsv1.BackfillRecord{Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{
			Candle: &eventsv1.BackfillCandle{Venue: "kraken", Symbol: base + "/USD", Base: base, Quote: "USD", Interval: uint32(length / time.Second),
				Start: w.Now.Truncate(length).Add(-time.Duration(1+w.IntN(200)) * length).UnixNano(), Open: price, High: price, Low: price, Close: price, Volume: "7"}}})
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	_, err := w.fold.Pass(w.T.Context())
	w.Must(err)
}
