package globalstats_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// asked are the operations that answer the past.
var asked = []string{"/api/v1/global-stats/metrics?", "/api/v1/global-stats/sentiment?", "/api/v1/global-stats/sentiment/51-100?", "/api/v1/global-stats/sentiment/all?"}

// randomSummary is one of a minute with everything that is kept of it.
func randomSummary(random *rand.Rand, end time.Time) *eventsv1.Summary {
	change := random.Float64() - 0.5
	s := &eventsv1.Summary{Time: end.UnixNano(), TotalMarketCap: 1e12 * random.Float64(), TotalVolume24H: 1e10 * random.Float64(), BtcDominance: 60 * random.Float64(),
		EthDominance: 20 * random.Float64(), Dominance: []*eventsv1.Share{{CoinId: "bitcoin", Symbol: "BTC", Percent: 60 * random.Float64()}},
		ActiveCoins: random.Uint32N(1000), ActiveMarkets: random.Uint32N(9000), StablecoinMarketCap: 1e11 * random.Float64(), StablecoinDominance: 9 * random.Float64()}
	if random.IntN(2) == 0 {
		s.MarketCapChange24H, s.VolumeChange24H = &change, &change
	}
	for _, ranks := range append(append([]schemas.RankRange{}, schemas.RankRanges...), schemas.AllRanks) {
		s.Sentiment = append(s.Sentiment, &eventsv1.Sentiment{Range: ranks.String(), Positive: random.Uint32N(50), Negative: random.Uint32N(50), Total: random.Uint32N(2) * 100,
			Ratio: random.Float64(), Classification: "neutral", AverageChange24H: change, MedianChange24H: 2 * change})
	}
	return s
}

// A minute of the whole market is served some seconds after it ended. As of an instant the answer is the one of that instant, byte for
// byte; of a process that was not there it is never one of a minute that had not been published.
func TestTheMarketAsItWasServed(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	w.Open(enginetest.Database(t))
	w.serve()
	steps := views.NewPriceCache(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,")).Steps()
	w.Catalog.RememberBy(func() time.Time { return w.Now }, steps)
	begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = begin
	steps.Begin(func() time.Time { return w.Now })
	var answers []querytest.Answered
	served := map[time.Time]time.Time{}
	for i := range 12 {
		end := begin.Add(time.Duration(i) * time.Minute)
		if i%5 == 4 {
			continue // a minute of silence is never closed
		}
		if i > 0 {
			w.Now = end.Add(time.Duration(random.IntN(4000)) * time.Millisecond) // it has ended, and is not served yet
			answers = append(answers, w.Ask(w.Now, false, asked))
		}
		w.Now = end.Add(time.Duration(5000+random.IntN(10_000)) * time.Millisecond)
		summary := randomSummary(random, end)
		records := []*eventsv1.MarketRecord{{Body: &eventsv1.MarketRecord_Summary{Summary: summary}},
			{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano(), Watermark: end.UnixNano()}}}}
		var b rows.Batch
		for _, rec := range records {
			rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: end.UnixNano()}
			offset := w.Offset()
			b.Add(rows.Place{Topic: schemas.TopicMarkets, Offset: offset}, rec)
			w.Must(w.Catalog.ApplyMarkets(views.TailRecord{Offset: offset, Marked: rec}))
		}
		w.Must(b.Insert(t.Context(), w.Store, ""))
		served[w.Now] = end
		answers = append(answers, w.Ask(w.Now, false, asked))
		w.Now = w.Now.Add(time.Duration(random.IntN(40_000)) * time.Millisecond)
		answers = append(answers, w.Ask(w.Now, false, asked))
	}
	w.Now = w.Now.Add(time.Hour)
	for _, was := range answers {
		again := w.Ask(was.At, true, asked)
		for i, body := range again.Bodies {
			if body != was.Bodies[i] {
				t.Errorf("%s as of %s:\n%s\nwhat was answered then:\n%s", asked[i], was.At, body, was.Bodies[i])
			}
		}
	}

	// Another process over the same tables.
	w.Catalog = views.NewCatalog(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))
	w.serve()
	for _, was := range answers {
		status, seconds := timestamp(t, w.Ask(was.At, true, asked).Bodies[0])
		then, newest := was.At.Add(-time.Minute), int64(0)
		for at, end := range served {
			if at.After(was.At) && seconds == end.Unix() {
				t.Errorf("as of %s the minute %s is answered, which was served at %s first", was.At, end, at)
			}
			if !end.After(then) {
				newest = max(newest, end.Unix())
			}
		}
		if want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[newest > 0]; status != want || seconds != newest {
			t.Errorf("as of %s: %d, the minute of %d; want %d, %d", was.At, status, seconds, want, newest)
		}
	}

	// One that reads what the first recorded.
	w.RecordServed(steps, "first")
	before, err := w.History().MinutesServed(t.Context(), views.MinutesServedSince(w.Now))
	w.Must(err)
	w.Catalog.Recall(before)
	for _, was := range answers {
		for i, body := range w.Ask(was.At, true, asked).Bodies {
			if body != was.Bodies[i] {
				t.Errorf("%s as of %s, of another process:\n%s\nwhat was answered then:\n%s", asked[i], was.At, body, was.Bodies[i])
			}
		}
	}
}

// timestamp reads the status and the time of an answer of metrics.
func timestamp(t *testing.T, answer string) (status int, seconds int64) {
	t.Helper()
	var body string
	var said struct{ Data struct{ Timestamp int64 } }
	if _, err := fmt.Sscanf(answer, "%d ", &status); err != nil {
		t.Fatal(err)
	}
	body = answer[4:]
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return status, said.Data.Timestamp
}

// serve begins to answer of the catalog and the store as they are.
func (w *fixture) serve() { w.Serve(globalstats.New(w.Catalog, w.History()).Endpoints()) }
