package charts_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fixture is a querytest.Fixture with a store, whose readings of candles are counted.
type fixture struct {
	*querytest.Fixture
	reads atomic.Int32
}

// counted counts the readings of candles.
type counted struct {
	read.Reader
	reads *atomic.Int32
}

func (c counted) Intervals(ctx context.Context, coinID string, interval time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	c.reads.Add(1)
	return c.Reader.Intervals(ctx, coinID, interval, from, to)
}

func newFixture(t testing.TB) *fixture {
	w := &fixture{Fixture: querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,*:XBT", "ethereum,ETH,Ethereum,2,coin,,", "solana,SOL,Solana,3,coin,,"))}
	w.Open(enginetest.Migrated(t))
	w.Lines["past"] = w.past // seconds, venue, base, quote, first start, number, open, high, low, close, volume: as the venue reports
	w.Serve(charts.New(w.Prices, w.Catalog, views.NewCandles(w.Prices, counted{w.History(), &w.reads}), w.History(), w.Yields, views.NewRateCharts(w.Yields, w.History())).Endpoints())
	return w
}

// past adds equal candles of a venue, one after the other.
func (w *fixture) past(words []string) {
	words = words[1:]
	seconds, start := w.Integer(words[0]), w.Time(words[4])
	var b rows.Batch
	for i := range w.Integer(words[5]) {
		b.Add(rows.Place{Topic: schemas.TopicBackfillRaw, Offset: w.Offset()}, &eventsv1.BackfillRecord{Producer: words[1], Body: &eventsv1.BackfillRecord_Candle{
			Candle: &eventsv1.BackfillCandle{
				Venue: words[1], Symbol: words[2] + words[3], Base: words[2], Quote: words[3], Interval: uint32(seconds), Start: start.Add(time.Duration(i*seconds) * time.Second).UnixNano(),
				Open: words[6], High: words[7], Low: words[8], Close: words[9], Volume: words[10],
			}}})
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
	_, err := past.NewFold(w.Store).Pass(w.T.Context())
	w.Must(err)
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}

// Of five years of back-filled days a thousand points are answered; the stats are over all of them.
func TestFiveYearsOfDaysAreThinnedOutAndCounted(t *testing.T) {
	w := newFixture(t)
	w.Run("now 2026-11-20T10:00:30Z")
	w.Run("past 86400 kraken BTC USD 2021-11-20T00:00:00Z 1000 10 12 9 11 1")
	w.Run("past 86400 kraken BTC USD 2024-08-16T00:00:00Z 1 11 99 1 10 1")
	w.Run("past 86400 kraken BTC USD 2024-08-17T00:00:00Z 824 10 12 9 20 1")
	response, err := http.Get(w.Base() + "/api/v1/charts/bitcoin?timeframe=max")
	w.Must(err)
	defer response.Body.Close()
	var body charts.ChartBody
	w.Must(json.NewDecoder(response.Body).Decode(&body))
	points, stats := body.Data.DataPoints, body.Data.Stats
	if n := len(points); n != 1000 || points[0].Timestamp != "2021-11-20T00:00:00.000Z" || points[n-1].Timestamp != "2026-11-18T00:00:00.000Z" {
		t.Fatalf("got %d points from %s to %s, want 1000 from 2021-11-20 to 2026-11-18", n, points[0].Timestamp, points[n-1].Timestamp)
	}
	if points[0].Intervals != 0 || points[1].Intervals < 1 && points[2].Intervals < 2 {
		t.Errorf("the first points are of %d, %d and %d intervals, want one of the first and two of one behind it", points[0].Intervals, points[1].Intervals, points[2].Intervals)
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
	w := newFixture(t)
	w.Run("now 2026-11-20T10:00:30Z")
	w.Run("candles bitcoin 2026-11-20T00:00:00Z 600 1m 100 1")
	answers := make([]string, 40)
	var g errgroup.Group
	for i := range answers {
		g.Go(func() error {
			response, err := http.Get(w.Base() + "/api/v1/charts/bitcoin")
			if err != nil {
				return err
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			answers[i] = string(body)
			return err
		})
	}
	w.Must(g.Wait())
	for _, a := range answers {
		if a != answers[0] || !strings.Contains(a, `"totalPoints":10`) {
			t.Fatalf("got %s and %s", answers[0], a)
		}
	}
	const once = 1 // what has closed, and with it what is under way
	if n := w.reads.Load(); n != once {
		t.Errorf("got %d readings of the store, want %d", n, once)
	}
	// A moment later only what is under way is read again.
	w.Run("now 2026-11-20T10:00:40Z")
	w.Run("get /api/v1/charts/bitcoin")
	if n := w.reads.Load(); n != once+1 {
		t.Errorf("a moment later: got %d readings of the store, want %d", n, once+1)
	}
}
