package globalstats_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

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
	w.Open(enginetest.Migrated(t))
	var client *kgo.Client
	w.log, client = w.Log()
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
		for i, rec := range records {
			rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: end.UnixNano(), Index: uint32(i)}
			offset := w.Offset()
			value, err := rec.MarshalVT()
			w.Must(err)
			w.Must(client.ProduceSync(t.Context(), &kgo.Record{Topic: schemas.TopicMarkets, Value: value, Timestamp: end}).FirstErr())
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

	// After a replay the log has what it changed and removed.
	w.replaySummaries(random, served)
	w.Now = w.Now.Add(time.Minute)
	for _, was := range answers {
		for i, body := range w.Ask(was.At, true, asked).Bodies {
			if body != was.Bodies[i] {
				t.Errorf("%s as of %s, after a replay:\n%s\nwhat was answered then:\n%s", asked[i], was.At, body, was.Bodies[i])
			}
		}
	}
}

// replaySummaries changes and removes some of the summaries that history has, as a replay does.
func (w *fixture) replaySummaries(random *rand.Rand, served map[time.Time]time.Time) {
	changed := 0
	for _, end := range served {
		kind := []string{"", "changed", "removed"}[random.IntN(3)]
		switch kind {
		case "":
			continue
		case "changed":
			var b rows.Batch
			b.Add(rows.Place{Topic: schemas.TopicMarkets, Offset: w.Offset()}, &eventsv1.MarketRecord{Mark: &eventsv1.Mark{LogicVersion: 2, Offset: end.UnixNano()},
				Body: &eventsv1.MarketRecord_Summary{Summary: randomSummary(random, end)}})
			w.Must(b.Insert(w.T.Context(), w.Store, ""))
		case "removed":
			for _, table := range []string{"summaries", "sentiment"} {
				w.Must(w.Store.Conn().Exec(w.T.Context(), "ALTER TABLE "+table+" DELETE WHERE time = ? SETTINGS mutations_sync = 2", end))
			}
		}
		w.Run(fmt.Sprintf(`restatement replay-1 1 %s restatement { table: "summaries" view: %q kind: %q cause: "replay" event_time: %d key { name: "time" value: %q } }`,
			w.Now.Format(time.RFC3339Nano), schemas.ViewMarkets, kind, end.UnixNano(), end.Format(time.DateTime)))
		changed++
	}
	w.Run(fmt.Sprintf("restatement replay-1 1 %s table { table: %q view: %q changed: %d listed: %d }", w.Now.Format(time.RFC3339Nano), "summaries", schemas.ViewMarkets, changed, changed))
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
func (w *fixture) serve() {
	w.Serve(globalstats.New(w.Catalog, w.served(w.History()), w.History()).Endpoints())
}

// defiAsked are the operations about DeFi that answer the past.
var defiAsked = []string{"/api/v1/global-stats/defi?", "/api/v1/global-stats/defi/lending?", "/api/v1/global-stats/defi/staking?", "/api/v1/global-stats/defi/borrowing?"}

// A summary of DeFi is served some seconds after its minute, and as long as nothing changes. As of an instant the answer is the one of that instant, byte for byte,
// of the process that answered and of another that knows what was recorded.
func TestDefiAsItWasServed(t *testing.T) {
	random := streamtest.Rand(t)
	w := newFixture(t)
	w.Open(enginetest.Migrated(t))
	var client *kgo.Client
	w.log, client = w.Log()
	steps := views.NewPriceCache(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,")).Steps()
	clock := func() time.Time { return w.Now }
	process := func() *views.DefiStore {
		w.newest = views.NewDefiStore()
		w.serveDefi()
		return w.newest
	}
	process().RememberBy(clock, steps)
	begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	w.Now = begin
	steps.Begin(clock)
	var answers []querytest.Answered
	for i := range 40 {
		end := begin.Add(time.Duration(i) * time.Minute)
		records := []*eventsv1.DefiRecord{{Body: &eventsv1.DefiRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano(), Watermark: end.UnixNano()}}}}
		if i == 0 || random.IntN(3) > 0 { // else nothing has changed
			records = append([]*eventsv1.DefiRecord{{Body: &eventsv1.DefiRecord_Summary{Summary: randomDefi(random, end)}}}, records...)
		}
		for index, rec := range records {
			rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: end.UnixNano(), Index: uint32(index)}
			value, err := rec.MarshalVT()
			w.Must(err)
			w.Must(client.ProduceSync(t.Context(), &kgo.Record{Topic: schemas.TopicDefi, Value: value, Timestamp: end}).FirstErr())
		}
		if i > 0 {
			w.Now = end.Add(time.Duration(random.IntN(4000)) * time.Millisecond) // it is written, and not served yet
			answers = append(answers, w.Ask(w.Now, false, defiAsked))
		}
		w.Now = end.Add(time.Duration(5000+random.IntN(10_000)) * time.Millisecond)
		for _, rec := range records {
			w.Must(w.newest.Apply(views.TailRecord{Offset: w.Offset(), Marked: rec}))
		}
		answers = append(answers, w.Ask(w.Now, false, defiAsked))
	}
	// What was served is known before it is recorded; whoever asks for more is told from when on, and where there is more.
	early := w.Get("/api/v1/global-stats/defi?asOf=" + begin.Add(-time.Hour).Format(time.RFC3339))
	from := availableFrom(t, early)
	if !strings.HasPrefix(early, "410 ") || !strings.Contains(early, "/api/v1/global-stats/defi/history/{metricType}") || !strings.Contains(early, "ask for asOf="+from) {
		t.Errorf("before anything was served: got %s, want 410 with a path and from when on there is more", early)
	}
	if got := w.Get("/api/v1/global-stats/defi?asOf=" + from); !strings.HasPrefix(got, "200 ") {
		t.Errorf("as of availableFrom, %s: got %s", from, got)
	}
	check := func(who string) {
		t.Helper()
		for _, was := range answers {
			for i, body := range w.Ask(was.At, true, defiAsked).Bodies {
				if body != was.Bodies[i] || !strings.HasPrefix(body, "200 ") {
					t.Fatalf("%s: %s as of %s:\n%s\nwhat was answered then:\n%s", who, defiAsked[i], was.At, body, was.Bodies[i])
				}
			}
		}
	}
	w.Now = w.Now.Add(3 * time.Hour)
	check("the process that answered")
	w.RecordServed(steps, "first")
	process()
	check("another process")
	for path, want := range map[string]string{
		"/api/v1/global-stats/defi?asOf=" + begin.Add(-time.Hour).Format(time.RFC3339):           "410 AGED_OUT",
		"/api/v1/global-stats/defi/lending?asOf=" + begin.Add(-time.Second).Format(time.RFC3339): "410 AGED_OUT availableFrom",
		"/api/v1/global-stats/defi?asOf=" + w.Now.Add(-time.Second).Format(time.RFC3339):         "404 older than two hours",
		"/api/v1/global-stats/defi/staking?asOf=" + w.Now.Add(-time.Second).Format(time.RFC3339): `200 "isCritical":true`,
		"/api/v1/global-stats/defi/staking?asOf=" + w.Now.Add(time.Hour).Format(time.RFC3339):    "400 VALIDATION_ERROR asOf",
	} {
		got := w.Get(path)
		status, words, _ := strings.Cut(want, " ")
		if !strings.HasPrefix(got, status) || slices.ContainsFunc(strings.Split(words, " "), func(word string) bool { return !strings.Contains(got, word) }) {
			t.Errorf("%s: got %s; want %s", path, got, want)
		}
	}
}

// serveDefi answers of the newest summary and of those before, of which all is kept that was recorded.
func (w *fixture) serveDefi() {
	w.Serve(globalstats.NewDefi(w.Catalog, w.newest, views.NewPastDefi(w.newest, w.log, keptHistory{w.History()}), w.served(w.History()).Coins, w.History()).Endpoints())
}

// keptHistory has what was served as soon as it is recorded: whoever writes to the store in a test has no ledger.
type keptHistory struct{ views.ServedHistory }

func (keptHistory) ServedWritten(context.Context) (time.Time, error) { return time.Unix(1<<33, 0), nil }

// A process that has served nothing yet names no instant from which on there is something: none would have an answer.
func TestThePastOfNothingBeginsNowhere(t *testing.T) {
	w := newFixture(t)
	w.Open(enginetest.Migrated(t))
	w.log, _ = w.Log()
	steps := views.NewPriceCache(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,")).Steps()
	w.newest = views.NewDefiStore()
	w.newest.RememberBy(func() time.Time { return w.Now }, steps)
	w.serveDefi()
	w.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	steps.Begin(func() time.Time { return w.Now })
	asked := w.Now.Add(time.Second)
	w.Now = w.Now.Add(time.Hour)
	got := w.Get("/api/v1/global-stats/defi?asOf=" + asked.Format(time.RFC3339))
	if !strings.HasPrefix(got, "410 ") || strings.Contains(got, "availableFrom") || !strings.Contains(got, "ask without asOf") {
		t.Errorf("got %s, want 410 without availableFrom and what to ask instead", got)
	}
}

// availableFrom reads from when on an answer says that there is something.
func availableFrom(t *testing.T, answer string) string {
	t.Helper()
	var failed struct {
		Error struct{ AvailableFrom string }
	}
	if err := json.Unmarshal([]byte(answer[4:]), &failed); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return failed.Error.AvailableFrom
}

// randomDefi is a summary of a minute with something in each part.
func randomDefi(random *rand.Rand, end time.Time) *eventsv1.DefiSummary {
	number := func() *float64 {
		value := random.Float64() * 100
		return &value
	}
	rates := func() *eventsv1.DefiRates {
		return &eventsv1.DefiRates{Average: number(), Median: number(), Weighted: number()}
	}
	ranked := func() (list []*eventsv1.DefiRow) {
		for i := range random.IntN(3) {
			list = append(list, &eventsv1.DefiRow{Key: fmt.Sprint("key-", i), Name: "Name", Value: *number(), Apy: number(), Share: number()})
		}
		return list
	}
	read := end.Add(-time.Duration(random.Int64N(int64(time.Hour)))).UnixNano()
	return &eventsv1.DefiSummary{Time: end.UnixNano(), Read: read, Oldest: read, Simulated: random.IntN(2) == 0, TotalTvl: *number(), LendingTvl: *number(), DefiToCefiRatio: number(),
		LendingRates: rates(), StakingRates: rates(), BorrowingRates: rates(), ProtocolCount: random.Uint32N(100), Lending: &eventsv1.DefiLending{Protocols: ranked(), Assets: ranked()},
		Staking: &eventsv1.DefiStaking{Protocols: ranked(), Chains: ranked()}, Borrowing: &eventsv1.DefiBorrowing{Protocols: ranked(), Assets: ranked()}}
}
