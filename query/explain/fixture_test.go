package explain_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/charts"
	listed "github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/earn"
	"github.com/marketlog/marketlog/query/explain"
	"github.com/marketlog/marketlog/query/fiat"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fixture is a log with what folds would have written to it, the views over it and a server. Its fold of markets is the state machine
// of schemas, minute by minute, as the processor runs it.
type fixture struct {
	*querytest.Fixture
	client *kgo.Client
	reach  stream.Config
	states map[string]*schemas.CoinState
	ranked []schemas.Standing
	rows   map[string]*eventsv1.Market
	inputs map[string][]*eventsv1.PriceInput
	// protocols are by slug.
	protocols map[string]*eventsv1.DefiProtocol
	// What else the fold of DeFi knows, and the total market cap.
	defiRates  map[string]*eventsv1.RateEntry
	defiCoins  map[string]*eventsv1.DefiCoin
	chainCoins map[string]string
	totalCap   float64
	statistics *views.PegStatistics
	// variants are the rows of earn products, by product and variant.
	variants map[string]*eventsv1.EarnVariant
	figures  *views.Figures
	candles  *views.Candles
	// listed answers lists of coins; look finds out of which candles charts, and its sparklines, are made.
	listed *listed.Unit
	look   func()
	// ended is the last minute that was closed.
	ended int64
	// outside are coins that our table does not have, with their symbols and names, by id.
	outside map[string][2]string
	// clocked means that sources have written a clock: what they report before the first one belongs to the minute after it.
	clocked bool
	// newest is the summary of DeFi that is served.
	newest *views.DefiStore
	// remembers means that it is recorded what was served: minutes end in the log then.
	remembers bool
	// fixingsEnd is the offset after the last rate of a currency that was stated.
	fixingsEnd int64
}

// american is a venue that serves one country.
var american = views.Provider{Slug: "coinbase", Name: "Coinbase", Serves: []string{"US"}}

func newFixture(t testing.TB) *fixture {
	coins := querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,", "tether,USDT,Tether,3,stablecoin,USD,", "euro-coin,EURC,EURC,4,stablecoin,EUR,")
	w := &fixture{Fixture: querytest.NewFixture(t, coins), reach: stream.Config{Brokers: []string{streamtest.Kfake(t)}, ClientID: "test"},
		states: map[string]*schemas.CoinState{}, rows: map[string]*eventsv1.Market{}, inputs: map[string][]*eventsv1.PriceInput{}, protocols: map[string]*eventsv1.DefiProtocol{},
		variants: map[string]*eventsv1.EarnVariant{}, newest: views.NewDefiStore(),

		defiRates: map[string]*eventsv1.RateEntry{}, defiCoins: map[string]*eventsv1.DefiCoin{}, chainCoins: map[string]string{}}
	var err error
	w.client, err = w.reach.NewProducer()
	w.Must(err)
	t.Cleanup(w.client.Close)
	w.Must(stream.CreateTopics(t.Context(), w.client, schemas.Topics, 1, func(schemas.Topic) map[string]string { return nil }))
	w.Open(enginetest.Migrated(t))
	w.Lines["traded"] = func(words []string) { // coin, start, open, high, low, close, volume of 24 hours
		w.traded(words[1], w.Time(words[2]), w.Number(words[3]), w.Number(words[4]), w.Number(words[5]), w.Number(words[6]), w.Number(words[7]))
	}
	w.Lines["observed"] = func(words []string) { // source, id, symbol, then fields of the observation as text
		reported := &eventsv1.CoinMarket{Source: words[1], SourceId: words[2], Symbol: words[3], Name: words[3], IngestTime: w.Now.UnixNano()}
		w.merge(strings.Join(words[4:], " "), reported)
		w.observed(reported)
	}
	w.Lines["close"] = func(words []string) { w.close(w.Time(words[1]).UnixNano()) }
	w.Lines["vote"] = func(words []string) { // coin, venue, symbol, last price, its quote, rate
		w.tick(words[1], words[2], words[3], w.Number(words[4]), words[5], w.Number(words[6]))
	}
	w.Lines["publish"] = func(words []string) { w.publish(words[1]) }
	w.Lines["offered"] = func(words []string) { // provider, category, coin, raw rate, its unit
		w.offered(&eventsv1.Rate{Source: words[1], Project: words[1], Category: words[2], Pool: words[3] + "/main", Symbol: words[3], CoinId: words[3], Raw: words[4], RawUnit: words[5], Compounding: "daily",
			Interval: int64(time.Hour), IngestTime: w.Now.UnixNano()})
	}
	w.Lines["locked"] = func(words []string) { // protocol, category, USD, of which borrowed
		w.locked(&eventsv1.Protocol{Source: schemas.DefiTVLSource, Slug: words[1], Name: words[1], Category: words[2], Tvl: words[3], IngestTime: w.Now.UnixNano(),
			Chains: []*eventsv1.ChainAmount{{Chain: "borrowed", Amount: words[4]}}})
	}
	w.Lines["defi"] = func(words []string) { w.defi(w.Time(words[1]).UnixNano()) }
	w.Lines["rate-of"] = func(words []string) { // source, base, quote, rate
		w.fixing(&eventsv1.Fixing{Source: words[1], Base: words[2], Quote: words[3], Rate: words[4], Date: w.Now.Format(time.DateOnly),
			EventTime: w.Now.UnixNano(), IngestTime: w.Now.UnixNano()})
	}
	log := views.NewLog(w.reach, nil)
	past := w.History()
	pegging := stablecoins.New(w.Prices, w.Catalog, past, stablecoins.Served{})
	w.statistics = pegging.Statistics()
	currencies := views.NewPastCurrencies(w.Catalog, log, past)
	pastCoins := views.NewPastCoins(w.Catalog, views.NewPastRows(w.Catalog, log, past), log, past)
	w.candles = views.NewCandles(w.Prices, past)
	candles, rateCharts := w.candles, views.NewRateCharts(w.Yields, past)
	candles.RememberBy(func() time.Time { return w.Now }, w.Prices.Steps(), past)
	w.look = func() {
		w.CloseCandles(w.Now)
		w.Must(candles.Look(w.T.Context()))
	}
	naming := symbols.New(w.Catalog, w.Prices, w.Rates, nil, past, schemas.NewSymbolOverrides())
	u := explain.New(explain.Deps{Prices: w.Prices, Catalog: w.Catalog, Yields: w.Yields, History: past, Log: log, Pegs: w.statistics,
		Currencies: currencies, Coins: pastCoins, Defi: views.NewPastDefi(w.newest, log, past), Candles: candles, RateCharts: rateCharts, Symbols: naming, Providers: map[string]views.Provider{american.Slug: american}})
	w.listed = listed.New(w.Prices, w.Catalog, w.Yields, candles, listed.Served{Coins: pastCoins, Yields: views.NewPastYields(w.Yields, log, past)}, past)
	w.figures = views.NewFigures(w.Prices, past, w.Catalog.Measure)
	w.Serve(u.Inline(slices.Concat(u.Endpoints(), naming.Endpoints(), pegging.Endpoints(), fiat.New(coins, w.Catalog, currencies, past).Endpoints(),
		w.listed.Endpoints(), charts.New(w.Prices, w.Catalog, candles, past, w.Yields, rateCharts).Endpoints(),
		rates.New(w.Yields, w.Prices, w.Catalog, past, rates.Served{Yields: views.NewPastYields(w.Yields, log, past)}, rateCharts, nil, nil).Endpoints(), earn.New(coins, w.Catalog, past, nil).Endpoints(),
		prices.New(w.Prices, w.Catalog, views.NewConverter(w.Prices, w.Catalog, currencies), past, []views.Provider{american}).Endpoints(), globalstats.New(w.Catalog, globalstats.Served{Summaries: views.NewPastSummaries(w.Catalog, log, past), Coins: pastCoins, Sources: currencies}, past).Endpoints())))
	return w
}

func (w *fixture) merge(text string, into proto.Message) {
	message := into.ProtoReflect().New().Interface()
	w.Must(prototext.Unmarshal([]byte(text), message))
	proto.Merge(into, message)
}

// append writes a record; it is there when the minute is closed or a price is published.
func (w *fixture) append(topic string, partition int32, key string, at int64, rec eventsv1.Marked) *kgo.Record {
	w.T.Helper()
	value, err := rec.(interface{ MarshalVT() ([]byte, error) }).MarshalVT()
	w.Must(err)
	r := &kgo.Record{Topic: topic, Partition: partition, Key: []byte(key), Value: value, Timestamp: time.Unix(0, at)}
	w.client.Produce(w.T.Context(), r, func(_ *kgo.Record, err error) {
		if err != nil {
			w.T.Errorf("writing to %s: %v", topic, err)
		}
	})
	return r
}

// flush waits until what was written is in the log.
func (w *fixture) flush() { w.Must(w.client.Flush(w.T.Context())) }

const minute = int64(time.Minute)

// clocksUntilNow is how many clocks a producer writes until the time is known.
const clocksUntilNow = 3

func (w *fixture) traded(coin string, start time.Time, open, high, low, closed, volume24h float64) {
	c := &eventsv1.Candle{CoinId: coin, Start: start.UnixNano(), Open: open, High: high, Low: low, Close: closed, Volume: "1.5", VolumeUsd: 1.5 * closed,
		Trades: 3, Volume24H: volume24h, Accepted: 2}
	w.append(schemas.TopicCandles, views.PartitionOf(coin, 8), coin, c.Start, &eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 2, Offset: w.Offset()},
		Body: &eventsv1.CandleRecord_Candle{Candle: c}})
	if w.Store != nil {
		w.AddCandles(c)
	}
	w.state(coin).AddCandle(c)
}

func (w *fixture) observed(reported *eventsv1.CoinMarket) {
	if !w.clocked {
		for range clocksUntilNow {
			w.clock(reported.IngestTime)
		}
	}
	w.append(schemas.TopicCoinMarketsRaw, 0, reported.Source, reported.IngestTime, &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1,
		Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: reported}})
	id, ok := schemas.CanonicalCoin(reported.Source, reported.SourceId, reported.Symbol, reported.Name)
	if !ok {
		w.T.Fatalf("%s of %s is no coin", reported.SourceId, reported.Source)
	}
	w.state(id).Observe(reported)
}

func (w *fixture) state(coin string) *schemas.CoinState {
	s := w.states[coin]
	if s == nil {
		s = &schemas.CoinState{}
		w.states[coin] = s
	}
	return s
}

// close ends a minute: clocks of sources and of candles come to its end, and the fold of markets writes what it does of one.
func (w *fixture) close(at int64) {
	w.Now = time.Unix(0, at).UTC()
	w.clock(at)
	closes := at + int64(schemas.AllowedLateness)
	for coin := range w.states {
		w.append(schemas.TopicCandles, views.PartitionOf(coin, 8), "", closes, &eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 2, Offset: w.Offset()},
			Body: &eventsv1.CandleRecord_Pulse{Pulse: &eventsv1.Pulse{Now: closes, Watermark: closes}}})
	}
	coins := make([]string, 0, len(w.states))
	for coin := range w.states {
		coins = append(coins, coin)
	}
	slices.Sort(coins)
	w.ranked = w.ranked[:0]
	due := map[string]bool{}
	for _, coin := range coins {
		due[coin] = schemas.MarketStateDue(coin, at) == at
		s := w.states[coin]
		s.Forget(at)
		row := s.Row(at)
		if row == nil {
			continue
		}
		row.CoinId = coin
		if named, ok := w.Prices.Coins().ByID(coin); ok {
			row.Symbol, row.Name = named.Symbol, named.Name
			w.ranked = append(w.ranked, schemas.NewStanding(row, &named))
		} else if named, ok := w.outside[coin]; ok {
			row.Symbol, row.Name = named[0], named[1]
			w.ranked = append(w.ranked, schemas.NewStanding(row, nil))
		}
	}
	slices.SortFunc(w.ranked, func(a, b schemas.Standing) int { // NaN, of those without a market cap, comes last
		return cmp.Or(cmp.Compare(b.MarketCap, a.MarketCap), strings.Compare(a.Row.CoinId, b.Row.CoinId))
	})
	unranked := slices.IndexFunc(w.ranked, func(s schemas.Standing) bool { return !s.Ranked() })
	index := uint32(0)
	emit := func(key string, rec *eventsv1.MarketRecord) {
		rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: at, Index: index}
		index++
		w.append(schemas.TopicMarkets, 0, key, at, rec)
		w.Folded(time.Unix(0, at), rec)
	}
	for i := range w.ranked {
		row := w.ranked[i].Row
		if unranked < 0 || i < unranked {
			row.Rank = uint32(i + 1)
		}
		coin := row.CoinId
		before := w.rows[coin]
		same := before != nil && proto.Equal(withoutTime(before), withoutTime(row))
		if same && !due[coin] {
			w.ranked[i].Row = before
			continue
		}
		rec := &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: row}}
		if due[coin] {
			rec.State = w.states[coin].Remembered(at)
		}
		w.rows[coin] = row
		emit(coin, rec)
	}
	if unranked >= 0 {
		w.ranked = w.ranked[:unranked]
	}
	summary := schemas.NewSummary(at, w.ranked, 0)
	w.totalCap = summary.TotalMarketCap
	for coin, s := range w.states {
		if row := w.rows[coin]; row != nil && at-row.PriceTime <= int64(24*time.Hour) {
			summary.ActiveCoins++
		}
		summary.ActiveMarkets += s.Markets(at)
	}
	emit("", &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{Summary: summary}})
	if w.remembers {
		w.append(schemas.TopicMarkets, 0, "", at, &eventsv1.MarketRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: at, Index: index},
			Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: at, Watermark: at}}})
	}
	w.flush()
	w.Minute(time.Unix(0, at).UTC())
	w.Pulse()
	w.ended = at
}

// clock writes the time of the sources.
func (w *fixture) clock(at int64) {
	w.clocked = true
	w.append(schemas.TopicCoinMarketsRaw, 0, "sources", at, &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1,
		Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: at}}})
}

func withoutTime(row *eventsv1.Market) *eventsv1.Market {
	c := proto.CloneOf(row)
	c.Time = 0
	return c
}

func (w *fixture) tick(coin, venue, symbol string, last float64, quote string, rate float64) {
	r := w.append(schemas.TopicTicksRaw, 0, venue+"|"+coin, w.Now.UnixNano(), &eventsv1.RawRecord{Producer: venue, Epoch: 1,
		Body: &eventsv1.RawRecord_Tick{Tick: &eventsv1.Tick{Venue: venue, Symbol: symbol, Kind: eventsv1.TickKind_TICK_KIND_TICKER, Last: fmt.Sprint(last), IngestTime: w.Now.UnixNano()}}})
	w.flush()
	in := &eventsv1.PriceInput{Provider: venue, Symbol: symbol, QuoteId: quote, Last: last, LastHeard: w.Now.UnixNano(), EventTime: w.Now.UnixNano() - 4e7, Rate: rate, Offset: r.Offset}
	w.inputs[coin] = append(slices.DeleteFunc(w.inputs[coin], func(old *eventsv1.PriceInput) bool { return old.Provider == venue }), in)
}

// publish makes the price of a coin of its ticks, as the fold does.
func (w *fixture) publish(coin string) *eventsv1.PriceRecord {
	second := w.Now.Truncate(time.Second).UnixNano()
	var inputs []*eventsv1.PriceInput
	for _, in := range w.inputs[coin] {
		inputs = append(inputs, proto.CloneOf(in))
	}
	result, considered := schemas.Aggregate(inputs, second)
	named, _ := w.Prices.Coins().ByID(coin)
	p := views.PartitionOf(coin, 8)
	rec := &eventsv1.PriceRecord{
		Mark: &eventsv1.Mark{LogicVersion: 2, Partition: p, Offset: w.Offset()},
		Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{
			CoinId: coin, Symbol: named.Symbol, Time: second, Price: result.Price, Median0: result.Median0, Min: result.Min, Max: result.Max,
			Confidence: result.Confidence, Score: result.Score, Accepted: uint32(result.Accepted), Rejected: uint32(result.Rejected),
			Volume24H: result.Volume24h, Source: result.Source, Reason: result.Reason, Inputs: considered, Method: schemas.AggregateVersion, Published: second + 2e8,
		}},
	}
	w.priced(rec)
	return rec
}

// priced has a published price in the log, in the tables and in the price cache.
func (w *fixture) priced(rec *eventsv1.PriceRecord) {
	price := rec.GetPrice()
	p := views.PartitionOf(price.CoinId, 8)
	r := w.append(schemas.TopicPrices, p, price.CoinId, price.Time, rec)
	w.flush()
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicPrices, Partition: p, Offset: r.Offset}, rec)
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	w.Must(w.Prices.Apply(views.TailRecord{Offset: r.Offset, Marked: rec}))
}

func (w *fixture) fixing(f *eventsv1.Fixing) {
	rec := &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Fixing{Fixing: f}}
	r := w.append(schemas.TopicReferenceRaw, 0, f.Source, f.IngestTime, rec)
	w.flush()
	w.SaidAt(r.Offset, rec)
	w.fixingsEnd = r.Offset + 1
}

// offered is what a source pays, and the entry that the fold makes of it, with what the fold of earn products makes of that.
func (w *fixture) offered(reported *eventsv1.Rate) *eventsv1.RateEntry {
	offset := w.append(schemas.TopicRatesRaw, 0, reported.Source, reported.IngestTime, &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1,
		Body: &eventsv1.ReferenceRecord_Rate{Rate: reported}})
	w.flush()
	apr, apy, err := schemas.Yearly(reported.Raw, reported.RawUnit, reported.Compounding)
	w.Must(err)
	named, _ := w.Prices.Coins().ByID(reported.CoinId)
	entry := &eventsv1.RateEntry{Provider: reported.Project, Source: reported.Source, Category: reported.Category, CoinId: reported.CoinId, Symbol: named.Symbol, Pool: reported.Pool,
		Apr: apr, Apy: apy, Said: reported, Time: w.Now.UnixNano(), Heard: reported.IngestTime, Offset: offset.Offset, Method: schemas.RateVersion, Term: reported.Term, Chain: reported.Chain}
	if reported.TvlUsd != "" {
		entry.TvlUsd = proto.Float64(w.Number(reported.TvlUsd))
	}
	w.defiRates[entry.Source+"\x00"+entry.Category+"\x00"+entry.Pool] = entry
	rec := &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: entry}}
	w.RateFolded(rec)
	rec.Mark = &eventsv1.Mark{LogicVersion: 2, Offset: schemas.Minute(entry.Time)}
	w.append(schemas.TopicRates, 0, "rate", entry.Time, rec)
	if schemas.EarnOffered(entry) {
		w.earned(schemas.NewEarnVariant(entry, schemas.Minute(entry.Time+minute-1)))
	}
	w.flush()
	return entry
}

// earned is a row of a variant of an earn product.
func (w *fixture) earned(row *eventsv1.EarnVariant) {
	w.variants[row.ProductId+" "+row.VariantId] = row
	w.earnRecord(row.ProductId, row.Time, &eventsv1.EarnRecord{Mark: &eventsv1.Mark{LogicVersion: 3, Offset: row.Time, Index: uint32(w.Offset())},
		Body: &eventsv1.EarnRecord_Variant{Variant: row}})
}

func (w *fixture) earnRecord(key string, at int64, rec *eventsv1.EarnRecord) {
	r := w.append(schemas.TopicEarn, 0, key, at, rec)
	w.flush()
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicEarn, Offset: r.Offset}, rec)
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
}

// locked is what is locked in a protocol, and borrowed from it.
func (w *fixture) locked(reported *eventsv1.Protocol) {
	if len(w.protocols) == 0 {
		for range clocksUntilNow {
			w.sourcesClock(reported.IngestTime)
		}
	}
	w.append(schemas.TopicReferenceRaw, 0, reported.Source, reported.IngestTime, &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1,
		Body: &eventsv1.ReferenceRecord_Protocol{Protocol: reported}})
	w.protocols[reported.Slug] = schemas.NewDefiProtocol(reported)
}

func (w *fixture) sourcesClock(at int64) {
	w.append(schemas.TopicReferenceRaw, 0, "sources", at, &eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1,
		Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: at}}})
}

// defi ends a minute of the fold of DeFi.
func (w *fixture) defi(at int64) {
	w.sourcesClock(at)
	in := schemas.DefiInputs{ChainCoins: w.chainCoins, Caps: map[string]float64{}, TotalMarketCap: w.totalCap}
	for id, row := range w.rows {
		if row.MarketCap != nil {
			in.Caps[id] = *row.MarketCap
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.defiCoins)) {
		if schemas.DefiCoinCounts(w.defiCoins[id]) {
			in.Coins = append(in.Coins, id)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.defiRates)) {
		if counted, ok := schemas.NewDefiRate(w.defiRates[key]); ok && at <= schemas.DefiRateUntil(w.defiRates[key]) {
			in.Rates = append(in.Rates, counted)
		}
	}
	for _, slug := range slices.Sorted(maps.Keys(w.protocols)) {
		in.Protocols = append(in.Protocols, w.protocols[slug])
	}
	summary := schemas.NewDefiSummary(at, in)
	summary.Read = at
	rec := &eventsv1.DefiRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: at}, Body: &eventsv1.DefiRecord_Summary{Summary: summary}}
	r := w.append(schemas.TopicDefi, 0, "summary", at, rec)
	if w.remembers {
		w.append(schemas.TopicDefi, 0, "", at, &eventsv1.DefiRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: at, Index: 1}, Body: &eventsv1.DefiRecord_Pulse{Pulse: &eventsv1.Pulse{Now: at, Watermark: at}}})
	}
	w.flush()
	w.Must(w.newest.Apply(views.TailRecord{Offset: r.Offset, Marked: rec}))
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicDefi, Offset: r.Offset}, rec)
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
}
