package charts_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/charts"
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
	reads  atomic.Int32 // of candles from the store
	offset int64
	base   string
}

var coins = func() *schemas.CoinTable {
	table, err := schemas.ParseCoins(strings.Join([]string{
		"id,symbol,name,rank,kind,peg,aliases",
		"bitcoin,BTC,Bitcoin,1,coin,,*:XBT",
		"ethereum,ETH,Ethereum,2,coin,,",
		"solana,SOL,Solana,3,coin,,",
		"",
	}, "\n"), "code,name,aliases\nUSD,United States Dollar,\n")
	if err != nil {
		panic(err)
	}
	return table
}()

// counted counts the readings of candles.
type counted struct {
	*history.Store
	reads *atomic.Int32
}

func (c counted) Intervals(ctx context.Context, coinID string, interval time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	c.reads.Add(1)
	return c.Store.Intervals(ctx, coinID, interval, from, to)
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, board: query.NewBoard(coins)}
	database, way := enginetest.Database(t)
	store, err := history.Open(t.Context(), history.Config{Database: database, Transport: way})
	w.must(err)
	t.Cleanup(func() { store.Close() })
	_, err = store.Migrate(t.Context())
	w.must(err)
	w.store = store
	endpoints := charts.New(w.board, query.NewCandles(w.board, counted{store, &w.reads})).Endpoints()
	w.base = querytest.Serve(t, func() time.Time { return w.now }, endpoints)
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
	case "candle": // coin, start, open, high, low, close, volume
		var b history.Batch
		w.add(&b, &eventsv1.Candle{CoinId: words[1], Start: w.time(words[2]).UnixNano(), Open: w.number(words[3]), High: w.number(words[4]),
			Low: w.number(words[5]), Close: w.number(words[6]), Volume: words[7], VolumeUsd: 1000, Trades: 1})
		w.must(w.store.Insert(w.t.Context(), &b, ""))
	case "past": // seconds, venue, base, quote, first start, number, open, high, low, close, volume: as the venue says
		w.past(words[1:])
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

// past adds equal candles of a venue, one after the other.
func (w *world) past(words []string) {
	seconds, start := w.integer(words[0]), w.time(words[4])
	var b history.Batch
	for i := range w.integer(words[5]) {
		w.offset++
		b.Add(history.Place{Topic: schemas.TopicBackfillRaw, Offset: w.offset}, &eventsv1.BackfillRecord{Producer: words[1], Body: &eventsv1.BackfillRecord_Candle{
			Candle: &eventsv1.BackfillCandle{
				Venue: words[1], Symbol: words[2] + words[3], Base: words[2], Quote: words[3], Interval: uint32(seconds), Start: start.Add(time.Duration(i*seconds) * time.Second).UnixNano(),
				Open: words[6], High: words[7], Low: words[8], Close: words[9], Volume: words[10],
			}}})
	}
	w.must(w.store.Insert(w.t.Context(), &b, ""))
}

// price publishes a price, which is in the table and on the board.
func (w *world) price(coin string, at time.Time, price float64) {
	w.offset++
	rec := &eventsv1.PriceRecord{
		Mark: &eventsv1.Mark{LogicVersion: 1, Offset: w.offset},
		Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{CoinId: coin, Time: at.UnixNano(), Price: price, Source: "kraken", Simulated: true}},
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

// Of five years of back-filled days a thousand points are answered; the stats are over all of them.
func TestFiveYearsOfDaysAreThinnedOutAndCounted(t *testing.T) {
	w := newWorld(t)
	w.run("now 2026-11-20T10:00:30Z")
	w.run("past 86400 kraken BTC USD 2021-11-20T00:00:00Z 1000 10 12 9 11 1")
	w.run("past 86400 kraken BTC USD 2024-08-16T00:00:00Z 1 11 99 1 10 1")
	w.run("past 86400 kraken BTC USD 2024-08-17T00:00:00Z 824 10 12 9 20 1")
	response, err := http.Get(w.base + "/api/v1/charts/bitcoin?timeframe=max")
	w.must(err)
	defer response.Body.Close()
	var body charts.ChartBody
	w.must(json.NewDecoder(response.Body).Decode(&body))
	points, stats := body.Data.DataPoints, body.Data.Stats
	if n := len(points); n != 1000 || points[0].Timestamp != "2021-11-20T00:00:00Z" || points[n-1].Timestamp != "2026-11-18T00:00:00Z" {
		t.Fatalf("got %d points from %s to %s, want 1000 from 2021-11-20 to 2026-11-18", n, points[0].Timestamp, points[n-1].Timestamp)
	}
	least, greatest, volume := points[0].Low, points[0].High, 0.0
	for _, p := range points {
		least, greatest, volume = min(least, p.Low), max(greatest, p.High), volume+p.Volume
		if p.Origin != "backfill" || !p.Complete {
			t.Errorf("%s: got origin %q, complete %v", p.Timestamp, p.Origin, p.Complete)
		}
	}
	if least != 1 || greatest != 99 || volume != 1825 {
		t.Errorf("the points have low %g, high %g, volume %g; want 1, 99 and 1825", least, greatest, volume)
	}
	const mean = (1000*11.0 + 10 + 824*20) / 1825
	if *stats.MinPrice != 1 || *stats.MaxPrice != 99 || *stats.AvgPrice != mean || *stats.ChangePct != 100 || stats.TotalPoints != 1000 {
		t.Errorf("got stats of %g to %g, mean %g, change %g %%, %d points; want 1, 99, %g, 100 and 1000",
			*stats.MinPrice, *stats.MaxPrice, *stats.AvgPrice, *stats.ChangePct, stats.TotalPoints, mean)
	}
}

// However many ask for a chart at a time, the store is read for one of them.
func TestReadersShareOneChart(t *testing.T) {
	w := newWorld(t)
	w.run("now 2026-11-20T10:00:30Z")
	w.run("candles bitcoin 2026-11-20T00:00:00Z 600 1m 100 1")
	answers := make([]string, 40)
	var g errgroup.Group
	for i := range answers {
		g.Go(func() error {
			response, err := http.Get(w.base + "/api/v1/charts/bitcoin")
			if err != nil {
				return err
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			answers[i] = string(body)
			return err
		})
	}
	w.must(g.Wait())
	for _, a := range answers {
		if a != answers[0] || !strings.Contains(a, `"totalPoints":10`) {
			t.Fatalf("got %s and %s", answers[0], a)
		}
	}
	const once = 2 // what has closed, and what is under way
	if n := w.reads.Load(); n != once {
		t.Errorf("got %d readings of the store, want %d", n, once)
	}
	// A moment later only what is under way is read again.
	w.run("now 2026-11-20T10:00:40Z")
	w.run("get /api/v1/charts/bitcoin")
	if n := w.reads.Load(); n != once+1 {
		t.Errorf("a moment later: got %d readings of the store, want %d", n, once+1)
	}
}
