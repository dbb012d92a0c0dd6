package querytest

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// Fixture is what a script sets up: what was published, held in memory as a running server holds it and kept
// in a real store where one is open, and a server over it. Its clock does not advance until a line moves it.
type Fixture struct {
	T       testing.TB
	Now     time.Time
	Prices  *views.PriceCache
	Rates   *views.FXRates
	Catalog *views.Catalog
	Yields  *views.YieldStore
	// Store is nil until Open.
	Store *history.Store
	// Lines are those of the unit under test, by their first word; each gets all its words.
	Lines map[string]func(words []string)

	offset int64
	// inputs are what the next price is made from, by coin.
	inputs map[string][]*eventsv1.PriceInput
	base   string
	doc    *Document
}

// Coins makes a table of rows in the form of coins.csv, with EUR, JPY and USD as currencies.
func Coins(rows ...string) *schemas.CoinTable {
	table, err := schemas.ParseCoins("id,symbol,name,rank,kind,peg,aliases\n"+strings.Join(rows, "\n")+"\n",
		"code,name,aliases\nEUR,Euro,\nJPY,Japanese Yen,\nUSD,United States Dollar,\n")
	if err != nil {
		panic(err)
	}
	return table
}

// NewFixture begins with the coins of a table and nothing published.
func NewFixture(t testing.TB, coins *schemas.CoinTable) *Fixture {
	return &Fixture{T: t, Prices: views.NewPriceCache(coins), Rates: views.NewFXRates(), Catalog: views.NewCatalog(coins), Yields: views.NewYieldStore(),
		Lines: map[string]func([]string){}, inputs: map[string][]*eventsv1.PriceInput{}}
}

// Open opens a store of its own in a database that nobody has created yet: what is published from now on is
// kept there too.
func (w *Fixture) Open(database string, way http.RoundTripper) {
	store, err := history.Open(w.T.Context(), history.Config{Database: database, Transport: way})
	w.Must(err)
	w.T.Cleanup(func() { w.Must(store.Close()) })
	_, err = store.Migrate(w.T.Context())
	w.Must(err)
	w.Store = store
}

// History reads from the store.
func (w *Fixture) History() read.Reader { return read.From(w.Store) }

// Serve begins to answer with the given endpoints, until the test ends.
func (w *Fixture) Serve(endpoints []query.Endpoint) {
	w.base = Serve(w.T, func() time.Time { return w.Now }, endpoints)
	w.doc = ReadDocument(w.T, w.base)
}

// Base is where the server listens.
func (w *Fixture) Base() string { return w.base }

// Run does one line of a script and returns what it answers. Every answer is held against the server's
// own OpenAPI document.
func (w *Fixture) Run(line string) string {
	words := strings.Fields(line)
	_, rest, _ := strings.Cut(line, " ")
	switch words[0] {
	case "now": // the query's clock and the log's
		w.Now = w.Time(words[1])
		w.Pulse()
	case "clock": // the query's own, without the log's
		w.Now = w.Time(words[1])
	case "candles": // coin, first start, number, step, first open, rise of each: a straight line
		w.Candles(words[1], w.Time(words[2]), w.Integer(words[3]), words[4], w.Number(words[5]), w.Number(words[6]))
	case "candle": // coin, start, open, high, low, close, volume
		w.AddCandles(&eventsv1.Candle{CoinId: words[1], Start: w.Time(words[2]).UnixNano(), Open: w.Number(words[3]), High: w.Number(words[4]),
			Low: w.Number(words[5]), Close: w.Number(words[6]), Volume: words[7], VolumeUsd: 1000, Trades: 1})
	case "market": // coin, provider, its symbol, the quote, then name=value
		w.market(words[1], words[2:])
	case "price": // coin, time, price
		w.Price(words[1], w.Time(words[2]), w.Number(words[3]))
	case "said": // the body of a record of reference.raw.v1, as text: coin: {source: "coingecko" ...}
		w.said(rest)
	case "row": // a row of the markets fold, as text: coin_id: "bitcoin" price: 100 ...; seen from the next minute on
		w.row(rest)
	case "summary": // a summary of the markets fold, as text
		w.summary(rest)
	case "rate": // provider, category, coin, APY in percent, then name=value: a row of the apy fold, seen from the next minute of rates on
		w.rate(words[1:])
	case "rollup": // provider, category, coin, start, seconds, open, high, low, close, mean, number of answers, then name=value
		w.rollup(words[1:])
	case "project": // slug, DefiLlama's category, name
		w.RateFolded(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Project{
			Project: &eventsv1.RateProject{Slug: words[1], Category: words[2], Name: strings.Join(words[3:], " "), Time: w.Now.UnixNano()}}})
	case "rated": // the end of a minute of the apy fold: what it published before is seen
		pulse := &eventsv1.Pulse{Now: w.Time(words[1]).UnixNano(), Watermark: w.Time(words[1]).UnixNano()}
		w.RateFolded(&eventsv1.RateRecord{Body: &eventsv1.RateRecord_Pulse{Pulse: pulse}})
	case "variant": // of an earn product, as text; what is not given follows from the rest
		w.variant(rest)
	case "change": // of an earn product's terms, as text
		w.change(rest)
	case "fixing", "correction": // of the earn benchmark, as text, by the fold or by an operator
		w.fixing(words[0] == "fixing", rest)
	case "restatement": // of a replay: run, attempt, time, then the body, as text
		w.restatement(words)
	case "use": // a file of testdata whose lines set up what several scripts share
		w.use(words[1])
	case "minute": // its end: what the markets fold published before is seen
		w.Minute(w.Time(words[1]))
	case "get":
		w.doc.check(w.T, http.MethodGet, w.base, words[1], "")
		return Get(w.T, w.base, words[1])
	case "post": // path, then the body
		_, body, _ := strings.Cut(rest, " ")
		w.doc.check(w.T, http.MethodPost, w.base, words[1], body)
		return Post(w.T, w.base, words[1], body)
	default:
		if do, ok := w.Lines[words[0]]; ok {
			do(words)
			return ""
		}
		w.T.Fatalf("script: unknown line %q", line)
	}
	return ""
}

func (w *Fixture) restatement(words []string) {
	rec := &eventsv1.RestatementRecord{}
	w.read(strings.Join(words[4:], " "), rec)
	rec.Run, rec.Attempt, rec.Time = words[1], uint32(w.Integer(words[2])), w.Time(words[3]).UnixNano()
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicRestatements, Offset: w.Offset()}, rec)
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
}

func (w *Fixture) use(name string) {
	content, err := os.ReadFile(filepath.Join("testdata", name))
	w.Must(err)
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			w.Run(line)
		}
	}
}

// Pulse moves the log's now to the query's clock.
func (w *Fixture) Pulse() {
	pulse := &eventsv1.Pulse{Now: w.Now.UnixNano(), Watermark: w.Now.UnixNano()}
	w.Must(w.Prices.Apply(views.TailRecord{Offset: w.Offset(), Marked: &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: pulse}}}))
	w.Must(w.Rates.Apply(views.TailRecord{Marked: &eventsv1.QuoteRecord{Body: &eventsv1.QuoteRecord_Pulse{Pulse: pulse}}}))
}

// Offset is the next one of whatever topic.
func (w *Fixture) Offset() int64 {
	w.offset++
	return w.offset
}

// AddCandles keeps closed minutes.
func (w *Fixture) AddCandles(candles ...*eventsv1.Candle) {
	var b rows.Batch
	for _, c := range candles {
		offset := w.Offset()
		b.Add(rows.Place{Topic: schemas.TopicCandles, Offset: offset},
			&eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: offset}, Body: &eventsv1.CandleRecord_Candle{Candle: c}})
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
}

// Candles keeps n minutes, one each step, whose prices rise evenly.
func (w *Fixture) Candles(coin string, start time.Time, n int, every string, price, rise float64) {
	step, err := time.ParseDuration(every)
	w.Must(err)
	candles := make([]*eventsv1.Candle, n)
	for i := range candles {
		candles[i] = &eventsv1.Candle{CoinId: coin, Start: start.UnixNano(), Open: price, High: price + 2*max(rise, 0), Low: price - 1, Close: price + rise,
			Volume: "0.5", VolumeUsd: 0.5 * price, Trades: 2}
		price += rise
		start = start.Add(step)
	}
	w.AddCandles(candles...)
}

// market sets what a market sends.
func (w *Fixture) market(coin string, words []string) {
	in := &eventsv1.PriceInput{Provider: words[0], Symbol: words[1], QuoteId: words[2], Rate: 1, LastHeard: w.Now.UnixNano()}
	for _, word := range words[3:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "bid":
			in.Bid = w.Number(value)
		case "ask":
			in.Ask = w.Number(value)
		case "last":
			in.Last = w.Number(value)
		case "rate":
			in.Rate = w.Number(value)
			in.Unpriced = in.Rate == 0
		case "volume":
			in.Volume24H = w.Number(value)
		default:
			w.T.Fatalf("script: unknown setting %q", word)
		}
	}
	w.inputs[coin] = append(w.inputs[coin], in)
}

// Price publishes a price, which is in the price cache and in the store.
func (w *Fixture) Price(coin string, at time.Time, price float64) {
	w.Publish(&eventsv1.Price{CoinId: coin, Time: at.UnixNano(), Price: price, Source: "kraken", Simulated: true, Inputs: w.inputs[coin], Accepted: uint32(len(w.inputs[coin]))})
}

// Publish publishes what a fold says of a price.
func (w *Fixture) Publish(price *eventsv1.Price) {
	offset := w.Offset()
	rec := &eventsv1.PriceRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: offset}, Body: &eventsv1.PriceRecord_Price{Price: price}}
	if w.Store != nil {
		var b rows.Batch
		b.Add(rows.Place{Topic: schemas.TopicPrices, Offset: offset}, rec)
		w.Must(b.Insert(w.T.Context(), w.Store, ""))
	}
	w.Must(ApplyPrice(w.Prices, views.TailRecord{Offset: offset, Marked: rec}))
}

// ApplyPrice has a price cache read a price, and the pulse that is the last record of its cause.
func ApplyPrice(priceCache *views.PriceCache, price views.TailRecord) error {
	rec := price.Marked.(*eventsv1.PriceRecord)
	pulse := price
	pulse.Marked = &eventsv1.PriceRecord{Mark: rec.Mark, Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: rec.GetPrice().Time}}}
	return errors.Join(priceCache.Apply(price), priceCache.Apply(pulse))
}

// Time reads a word of a script, RFC 3339.
func (w *Fixture) Time(word string) time.Time { return Time(w.T, word) }

// Number reads a word of a script.
func (w *Fixture) Number(word string) float64 { return Number(w.T, word) }

// Integer reads a word of a script.
func (w *Fixture) Integer(word string) int {
	n, err := strconv.Atoi(word)
	w.Must(err)
	return n
}

// Must ends the test with an error.
func (w *Fixture) Must(err error) {
	w.T.Helper()
	must(w.T, err)
}
