package prices_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// fixture is what a script sets up: markets, what was published of them, and a server over it.
type fixture struct {
	t          testing.TB
	now        time.Time
	priceCache *views.PriceCache
	catalog    *views.Catalog
	markets    map[string][]*eventsv1.PriceInput
	past       map[string][]*eventsv1.PriceRecord
	offset     int64
	base       string
	// oldest is the second from which on all is kept, written up to when, by partition.
	oldest  int64
	written map[int32]time.Time
	// restated is when a replay last changed what was published of a coin.
	restated map[string]time.Time
	// steps are what processes recorded of what they had served, recorded up to when.
	steps    []*eventsv1.ServedStep
	recorded time.Time
	// method is the version of the aggregation that prices are made by.
	method uint32
}

var coins = func() *schemas.CoinTable {
	table, err := schemas.ParseCoins(strings.Join([]string{
		"id,symbol,name,rank,kind,peg,aliases",
		"bitcoin,BTC,Bitcoin,1,coin,,*:XBT",
		"ethereum,ETH,Ethereum,2,coin,,",
		"solana,SOL,Solana,3,coin,,",
		"sol-wormhole,SOL,SOL (Wormhole),4,wrapped,,",
		"",
	}, "\n"), strings.Join([]string{"code,name,aliases", "EUR,Euro,", "JPY,Japanese Yen,", "USD,United States Dollar,", ""}, "\n"))
	if err != nil {
		panic(err)
	}
	return table
}()

var providers = []views.Provider{
	{Slug: "kraken", Name: "Kraken", Refuses: []string{"JP"}, Terms: "https://kraken.example/terms"},
	{Slug: "coinbase", Name: "Coinbase", Serves: []string{"US", "GB"}, Terms: "https://coinbase.example/terms",
		Quoted: []string{"https://reader.example/terms.md"}},
}

func newFixture(t testing.TB) *fixture {
	w := &fixture{t: t, method: schemas.AggregateVersion, priceCache: views.NewPriceCache(coins), catalog: views.NewCatalog(coins),
		markets: map[string][]*eventsv1.PriceInput{}, past: map[string][]*eventsv1.PriceRecord{}, restated: map[string]time.Time{}}
	w.serve()
	return w
}

// serve begins to answer from the price cache.
func (w *fixture) serve() {
	w.base = querytest.Serve(w.t, func() time.Time { return w.now }, prices.New(w.priceCache, w.catalog, views.NewConverter(w.priceCache, w.catalog, nil), w, providers).Endpoints())
}

// PricesOfSeconds implements prices.History over what the script published.
func (w *fixture) PricesOfSeconds(_ context.Context, seconds []views.PriceSecond) (found []*eventsv1.PriceRecord, err error) {
	for _, s := range seconds {
		for _, rec := range w.past[s.CoinID] {
			if rec.GetPrice().Time == s.Second*int64(time.Second) {
				found = append(found, rec)
			}
		}
	}
	return found, nil
}

// PricesPublishedAt implements prices.History over what the script published.
func (w *fixture) PricesPublishedAt(_ context.Context, coins []string, at time.Time, served views.ServedPrices) (found []*eventsv1.PriceRecord, err error) {
	for _, id := range coins {
		for i, kept := len(w.past[id])-1, w.past[id]; i >= 0; i-- {
			p := kept[i].GetPrice()
			if mark := kept[i].Mark; max(p.Time, p.Published) > at.UnixNano() || served != nil && served[mark.Partition] < mark.Offset {
				continue
			}
			if p.Reason == "" || len(found) == 0 || found[len(found)-1].GetPrice().CoinId != id {
				found = append(found, kept[i])
			}
			if p.Reason == "" {
				break
			}
		}
	}
	return found, nil
}

// PricesServed implements prices.History over what was recorded.
func (w *fixture) PricesServed(_ context.Context, at time.Time) (served views.ServedPrices, err error) {
	for _, s := range w.steps {
		if p := s.GetPrices(); p != nil && s.Time <= at.UnixNano() {
			if served == nil {
				served = views.ServedPrices{}
			}
			served[p.Partition] = max(served[p.Partition], p.Offset)
		}
	}
	return served, nil
}

// WriteServed implements views.ServedLog.
func (w *fixture) WriteServed(_ context.Context, record *eventsv1.ServedRecord) error {
	w.steps, w.recorded = append(w.steps, record.Steps...), time.Unix(0, record.Time)
	return nil
}

// ServedWritten implements prices.History.
func (w *fixture) ServedWritten(context.Context) (time.Time, error) { return w.recorded, nil }

// OldestPrice implements prices.History.
func (w *fixture) OldestPrice(context.Context, time.Time) (int64, error) { return w.oldest, nil }

// Restated implements prices.History over what a script says was.
func (w *fixture) Restated(_ context.Context, _, coins []string, _, _, after time.Time) (last time.Time, err error) {
	for _, coin := range coins {
		if at := w.restated[coin]; at.After(after) && at.After(last) {
			last = at
		}
	}
	return last, nil
}

// PricesWritten implements prices.History.
func (w *fixture) PricesWritten(context.Context) (map[int32]time.Time, error) { return w.written, nil }

// run does one line of a script and returns what it answers.
func (w *fixture) run(line string) string {
	words := strings.Fields(line)
	switch words[0] {
	case "now":
		w.now = querytest.Time(w.t, words[1])
		w.pulse()
	case "remember": // from which instant on each price is served
		w.priceCache.RememberBy(func() time.Time { return w.now })
	case "oldest": // the instant from which on history keeps all prices
		w.oldest = querytest.Time(w.t, words[1]).Unix()
	case "written": // the log time up to which it does
		w.written = map[int32]time.Time{}
		for p := range int32(64) {
			w.written[p] = querytest.Time(w.t, words[1])
		}
	case "restated": // a coin, of which a replay changes what was published, and when
		w.restated[words[1]] = querytest.Time(w.t, words[2])
	case "clock": // the query's own, without the log's
		w.now = querytest.Time(w.t, words[1])
	case "rate": // a currency, and what one US dollar costs in it
		w.offset++
		value, err := (&eventsv1.ReferenceRecord{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{
			Source: "coinbasefiat", Base: "USD", Quote: words[1], Rate: words[2], Date: w.now.Format(time.DateOnly), EventTime: w.now.UnixNano(), IngestTime: w.now.UnixNano()}}}).MarshalVT()
		w.must(err)
		w.must(w.catalog.ApplyReference(stream.TailRecord{Offset: w.offset, Value: value}))
		w.must(w.catalog.ApplyMarkets(stream.TailRecord{Offset: w.offset, Marked: &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.now.UnixNano()}}}}))
	case "market":
		w.market(words[1], words[2:])
	case "price":
		w.price(words[1], len(words) > 2)
	case "get":
		return querytest.Get(w.t, w.base, words[1])
	default:
		w.t.Fatalf("script: unknown line %q", line)
	}
	return ""
}

func (w *fixture) pulse() {
	w.offset++
	pulse := &eventsv1.Pulse{Now: w.now.UnixNano(), Watermark: w.now.UnixNano()}
	w.must(w.priceCache.Apply(stream.TailRecord{Offset: w.offset, Marked: &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}}))
}

// market sets what a market sends: provider, its symbol, the quote, then name=value.
func (w *fixture) market(coin string, words []string) {
	w.offset++
	in := &eventsv1.PriceInput{Provider: words[0], Symbol: words[1], QuoteId: words[2], Rate: 1, Offset: w.offset}
	received := w.now.UnixNano()
	for _, word := range words[3:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "bid":
			in.Bid, in.QuoteHeard = w.number(value), received
		case "ask":
			in.Ask = w.number(value)
		case "last":
			in.Last, in.LastHeard, in.EventTime = w.number(value), received, received-int64(40*time.Millisecond)
		case "rate":
			in.Rate = w.number(value)
			in.Unpriced = in.Rate == 0
		case "volume":
			in.Volume24H = w.number(value)
		default:
			w.t.Fatalf("script: unknown setting %q", word)
		}
	}
	kept := w.markets[coin][:0]
	for _, old := range w.markets[coin] {
		if old.Provider != in.Provider || old.Symbol != in.Symbol {
			kept = append(kept, old)
		}
	}
	w.markets[coin] = append(kept, in)
}

// price publishes what the markets of a coin send now, as the fold does.
func (w *fixture) price(coin string, simulated bool) { w.publish(w.record(coin, simulated)) }

func (w *fixture) publish(rec *eventsv1.PriceRecord) {
	coin := rec.GetPrice().CoinId
	w.past[coin] = append(w.past[coin], rec)
	w.must(querytest.ApplyPrice(w.priceCache, stream.TailRecord{Offset: rec.Mark.Offset, Marked: rec}))
}

// record is the price that the markets of a coin give now.
func (w *fixture) record(coin string, simulated bool) *eventsv1.PriceRecord {
	var inputs []*eventsv1.PriceInput
	for _, in := range w.markets[coin] {
		copied := &eventsv1.PriceInput{}
		value, err := in.MarshalVT()
		w.must(err)
		w.must(copied.UnmarshalVT(value))
		inputs = append(inputs, copied)
	}
	second := w.now.Truncate(time.Second).UnixNano()
	result, considered, known := schemas.AggregateBy(w.method, inputs, second)
	if !known {
		result, considered = schemas.Aggregate(inputs, second)
	}
	w.offset++
	return &eventsv1.PriceRecord{
		Mark: &eventsv1.Mark{LogicVersion: 1, Offset: w.offset},
		Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{
			CoinId: coin, Time: second, Price: result.Price, Median0: result.Median0, Min: result.Min, Max: result.Max,
			Confidence: result.Confidence, Score: result.Score, Accepted: uint32(result.Accepted), Rejected: uint32(result.Rejected),
			Volume24H: result.Volume24h, Source: result.Source, Reason: result.Reason, Simulated: simulated, Inputs: considered,
			Method: w.method,
		}},
	}
}

func (w *fixture) number(word string) float64 { return querytest.Number(w.t, word) }

func (w *fixture) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).run })
}
