package globalstats_test

import (
	"fmt"
	"math/rand/v2"
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

var seriesAsked = []string{
	"/api/v1/global-stats/metrics/history/total_market_cap?", "/api/v1/global-stats/metrics/history/btc_dominance?period=7d&", "/api/v1/global-stats/metrics/ohlc/total_market_cap?",
	"/api/v1/global-stats/metrics/ohlc/eth_dominance?period=30d&", "/api/v1/global-stats/defi/history/defi_tvl?period=7d&", "/api/v1/global-stats/defi/history/lending_apy?",
	"/api/v1/global-stats/defi/ohlc/defi_tvl?period=30d&", "/api/v1/global-stats/defi/ohlc/staking_tvl?",
}

// seriesModel draws minutes of the whole market and of DeFi, silences of hours, and what sources report of the past.
type seriesModel struct {
	*fixture
	*rand.Rand
	client *kgo.Client
	steps  *views.ServedSteps
	// reported are when sources reported anything.
	reported []time.Time
}

// process begins to answer, remembering what it serves if steps are its own.
func (m *seriesModel) process(remember bool) {
	m.Catalog, m.newest = views.NewCatalog(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,")), views.NewDefiStore()
	if remember {
		clock := func() time.Time { return m.Now }
		m.Catalog.RememberBy(clock, m.steps)
		m.newest.RememberBy(clock, m.steps)
	}
	past := views.NewPastDefi(m.newest, m.log, keptHistory{m.History()})
	m.Serve(append(globalstats.New(m.Catalog, m.served(m.History()), m.History()).Endpoints(), globalstats.NewDefi(m.Catalog, m.newest, past, m.served(m.History()).Coins, m.History()).Endpoints()...))
}

// minute has a minute folded: readers get it some seconds after it is in the log, and history has both, one of them at times first.
func (m *seriesModel) minute(end time.Time) {
	market := []*eventsv1.MarketRecord{{Body: &eventsv1.MarketRecord_Summary{Summary: randomSummary(m.Rand, end)}},
		{Body: &eventsv1.MarketRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano(), Watermark: end.UnixNano()}}}}
	defi := []*eventsv1.DefiRecord{{Body: &eventsv1.DefiRecord_Summary{Summary: randomDefi(m.Rand, end)}},
		{Body: &eventsv1.DefiRecord_Pulse{Pulse: &eventsv1.Pulse{Now: end.UnixNano(), Watermark: end.UnixNano()}}}}
	var b rows.Batch
	for i := range market {
		market[i].Mark = &eventsv1.Mark{LogicVersion: 1, Offset: end.UnixNano(), Index: uint32(i)}
		defi[i].Mark = market[i].Mark
		value, err := defi[i].MarshalVT()
		m.Must(err)
		m.Must(m.client.ProduceSync(m.T.Context(), &kgo.Record{Topic: schemas.TopicDefi, Value: value, Timestamp: end}).FirstErr())
		value, err = market[i].MarshalVT()
		m.Must(err)
		m.Must(m.client.ProduceSync(m.T.Context(), &kgo.Record{Topic: schemas.TopicMarkets, Value: value, Timestamp: end}).FirstErr())
		b.Add(rows.Place{Topic: schemas.TopicMarkets, Offset: m.Offset()}, market[i])
		b.Add(rows.Place{Topic: schemas.TopicDefi, Offset: m.Offset()}, defi[i])
	}
	m.Must(b.Insert(m.T.Context(), m.Store, "")) // before readers get it: a series is not made of it yet
	m.Now = end.Add(time.Duration(5000+m.IntN(10_000)) * time.Millisecond)
	for i := range market {
		m.Must(m.Catalog.ApplyMarkets(views.TailRecord{Offset: m.Offset(), Marked: market[i]}))
		m.Must(m.newest.Apply(views.TailRecord{Offset: m.Offset(), Marked: defi[i]}))
	}
}

// report has sources report of the hours, and of the days, before.
func (m *seriesModel) report() {
	var b rows.Batch
	add := func(rec *eventsv1.ReferenceRecord) {
		b.Add(rows.Place{Topic: schemas.TopicReferenceRaw, Offset: m.Offset()}, rec)
	}
	for _, coin := range []string{"bitcoin", "ethereum"} {
		past := &eventsv1.CoinPast{Source: "coingecko", SourceId: coin, IngestTime: m.Now.UnixNano()}
		for hour := range 24 {
			past.Points = append(past.Points, &eventsv1.CoinPastPoint{Time: m.Now.Truncate(time.Hour).Add(time.Duration(hour-23) * time.Hour).UnixNano(),
				MarketCap: fmt.Sprint(1 + m.IntN(1e11)), Volume24H: "7"})
		}
		add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinPast{CoinPast: past}})
	}
	for day := range 4 {
		add(&eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_DefiPast{DefiPast: &eventsv1.DefiPast{Source: "defillama", TotalTvl: fmt.Sprint(1 + m.IntN(90)),
			EventTime: m.Now.Truncate(24*time.Hour).AddDate(0, 0, -day).UnixNano(), IngestTime: m.Now.UnixNano()}}})
	}
	m.Must(b.Insert(m.T.Context(), m.Store, ""))
	m.reported = append(m.reported, m.Now)
}

// check asks for answers again, which are the same, or 410 where one of the causes came since; it counts both of what has reported values.
func (m *seriesModel) check(who string, answers []querytest.Answered, causes []time.Time) (same, gone int) {
	m.T.Helper()
	for _, was := range answers {
		since := len(causes) > 0 && causes[len(causes)-1].After(was.At.Add(-time.Minute))
		for i, body := range m.Ask(was.At, true, seriesAsked).Bodies {
			switch {
			case body == was.Bodies[i]:
				if strings.Contains(body, `"origin":"backfill"`) {
					same++
				}
			case since && strings.HasPrefix(body, "410 ") && strings.Contains(body, "availableFrom"):
				gone++
			default:
				m.T.Fatalf("%s: %s as of %s:\n%s\nwhat was answered then:\n%s", who, seriesAsked[i], was.At, body, was.Bodies[i])
			}
		}
	}
	return same, gone
}

// A series as of an instant is the one that was answered then, byte for byte: up to the minute that was served, with what sources had reported of the past and what it
// covered. It is 410 where they have reported more since, or a replay has changed what was measured.
func TestSeriesAsTheyWereAnswered(t *testing.T) {
	m := &seriesModel{fixture: newFixture(t), Rand: streamtest.Rand(t)}
	m.Open(enginetest.Migrated(t))
	m.log, m.client = m.Log()
	m.steps = views.NewPriceCache(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,")).Steps()
	m.Now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	m.process(true)
	m.steps.Begin(func() time.Time { return m.Now })
	served := map[time.Time]time.Time{}
	var answers []querytest.Answered
	m.report()
	for i := range 18 {
		pause := time.Minute
		if m.IntN(3) == 0 {
			pause = time.Duration(2+m.IntN(200)) * time.Minute // a silence
		}
		end := m.Now.Add(2 * time.Minute).Add(pause).Truncate(time.Minute)
		if i < 9 && m.IntN(5) == 0 || i == 9 {
			m.Now = m.Now.Add(time.Minute + time.Second)
			m.report()
			end = end.Add(2 * time.Minute)
		}
		m.minute(end)
		served[m.Now] = end
		answers = append(answers, m.Ask(m.Now, false, seriesAsked))
		m.Now = m.Now.Add(time.Duration(m.IntN(40_000)) * time.Millisecond)
		answers = append(answers, m.Ask(m.Now, false, seriesAsked))
	}
	m.Now = m.Now.Add(2 * time.Hour)
	if same, gone := m.check("the process that answered", answers, m.reported); same < 10 || gone < 10 {
		t.Errorf("%d answers with reported values are the same, %d are 410; want some of both", same, gone)
	}
	m.RecordServed(m.steps, "first")
	m.process(false)
	before, err := m.History().MinutesServed(t.Context(), views.MinutesServedSince(m.Now))
	m.Must(err)
	m.Catalog.Recall(before)
	m.check("another process", answers, m.reported)

	first := answers[0].At
	late := m.Get(seriesAsked[0] + "asOf=" + first.Format(time.RFC3339Nano))
	if from := availableFrom(t, late); !strings.HasPrefix(m.Get(seriesAsked[0]+"asOf="+from), "200 ") {
		t.Errorf("as of availableFrom of %s: not 200", late)
	}
	for path, want := range map[string]string{
		seriesAsked[0] + "asOf=" + first.Add(-time.Hour).Format(time.RFC3339): "404 ",
		seriesAsked[4] + "asOf=" + first.Add(-time.Hour).Format(time.RFC3339): "410 ",
		seriesAsked[4] + "asOf=yesterday":                                     "400 ",
	} {
		if got := m.Get(path); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}

	m.replaySummaries(m.Rand, served)
	m.Now = m.Now.Add(time.Minute)
	if _, gone := m.check("after a replay", answers, append(m.reported, m.Now)); gone < 10 {
		t.Errorf("%d answers are 410 after a replay, want many", gone)
	}
}
