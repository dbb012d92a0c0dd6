package coins_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query"
	units "github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// world is what a script sets up: what was published, kept in a real store, and a server over it.
type world struct {
	t      testing.TB
	now    time.Time
	board  *query.Board
	store  *history.Store
	offset int64
	// markets are what the next price is made from, by coin.
	markets map[string][]*eventsv1.PriceInput
	base    string
}

var coins = func() *schemas.CoinTable {
	table, err := schemas.ParseCoins(strings.Join([]string{
		"id,symbol,name,rank,kind,peg,aliases",
		"bitcoin,BTC,Bitcoin,1,coin,,*:XBT",
		"ethereum,ETH,Ethereum,2,coin,,",
		"tether,USDT,Tether,3,stablecoin,USD,",
		"solana,SOL,Solana,4,coin,,",
		"sol-wormhole,SOL,SOL (Wormhole),5,wrapped,,",
		"",
	}, "\n"), "code,name,aliases\nUSD,United States Dollar,\n")
	if err != nil {
		panic(err)
	}
	return table
}()

func newWorld(t testing.TB) *world {
	w := &world{t: t, board: query.NewBoard(coins), markets: map[string][]*eventsv1.PriceInput{}}
	database, way := enginetest.Database(t)
	store, err := history.Open(t.Context(), history.Config{Database: database, Transport: way})
	w.must(err)
	t.Cleanup(func() { store.Close() })
	_, err = store.Migrate(t.Context())
	w.must(err)
	w.store = store
	w.base = querytest.Serve(t, func() time.Time { return w.now }, units.New(w.board, query.NewCandles(w.board, store)).Endpoints())
	return w
}

// run does one line of a script and returns what it answers.
func (w *world) run(line string) string {
	words := strings.Fields(line)
	switch words[0] {
	case "now":
		w.now = w.time(words[1])
		w.pulse()
	case "clock": // the query's own, without the log's
		w.now = w.time(words[1])
	case "candles": // coin, first start, number, step, first open, rise of each: a straight line
		w.candles(words[1], w.time(words[2]), w.integer(words[3]), words[4], w.number(words[5]), w.number(words[6]))
	case "market":
		w.market(words[1], words[2:])
	case "price": // coin, time, price
		w.price(words[1], w.time(words[2]), w.number(words[3]))
	case "get":
		return querytest.Get(w.t, w.base, words[1])
	default:
		w.t.Fatalf("script: unknown line %q", line)
	}
	return ""
}

func (w *world) pulse() {
	w.offset++
	w.must(w.board.Apply(stream.TailRecord{Offset: w.offset, Marked: &eventsv1.PriceRecord{
		Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: w.now.UnixNano(), Watermark: w.now.UnixNano()}}}}))
}

func (w *world) add(b *history.Batch, c *eventsv1.Candle) {
	w.offset++
	b.Add(history.Place{Topic: schemas.TopicCandles, Offset: w.offset},
		&eventsv1.CandleRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: w.offset}, Body: &eventsv1.CandleRecord_Candle{Candle: c}})
}

func (w *world) candles(coin string, start time.Time, n int, every string, price, rise float64) {
	step, err := time.ParseDuration(every)
	w.must(err)
	var b history.Batch
	for range n {
		w.add(&b, &eventsv1.Candle{CoinId: coin, Start: start.UnixNano(), Open: price, High: price + 2*max(rise, 0), Low: price - 1, Close: price + rise,
			Volume: "0.5", VolumeUsd: 0.5 * price, Trades: 2})
		price += rise
		start = start.Add(step)
	}
	w.must(w.store.Insert(w.t.Context(), &b, ""))
}

// market sets what a market says: provider, its symbol, the quote, then name=value.
func (w *world) market(coin string, words []string) {
	in := &eventsv1.PriceInput{Provider: words[0], Symbol: words[1], QuoteId: words[2], Rate: 1, LastHeard: w.now.UnixNano()}
	for _, word := range words[3:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "bid":
			in.Bid = w.number(value)
		case "ask":
			in.Ask = w.number(value)
		case "last":
			in.Last = w.number(value)
		case "rate":
			in.Rate = w.number(value)
			in.Unpriced = in.Rate == 0
		case "volume":
			in.Volume24H = w.number(value)
		default:
			w.t.Fatalf("script: unknown setting %q", word)
		}
	}
	w.markets[coin] = append(w.markets[coin], in)
}

// price publishes a price, which is in the table and on the board.
func (w *world) price(coin string, at time.Time, price float64) {
	w.offset++
	rec := &eventsv1.PriceRecord{
		Mark: &eventsv1.Mark{LogicVersion: 1, Offset: w.offset},
		Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{CoinId: coin, Time: at.UnixNano(), Price: price, Source: "kraken", Simulated: true, Inputs: w.markets[coin]}},
	}
	var b history.Batch
	b.Add(history.Place{Topic: schemas.TopicPrices, Offset: w.offset}, rec)
	w.must(w.store.Insert(w.t.Context(), &b, ""))
	w.must(w.board.Apply(stream.TailRecord{Offset: w.offset, Marked: rec}))
}

func (w *world) time(word string) time.Time { return querytest.Time(w.t, word) }

func (w *world) number(word string) float64 { return querytest.Number(w.t, word) }

func (w *world) integer(text string) int {
	n, err := strconv.Atoi(text)
	w.must(err)
	return n
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newWorld(t).run })
}
