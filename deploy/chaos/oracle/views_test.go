package oracle_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history"
)

// holds is what the log holds.
type holds struct {
	ticks, prices, candles  map[int32][]oracle.Record
	reference, observations []oracle.Record
}

// views works out all views by their names.
func (h holds) views(t testing.TB) map[string]oracle.View {
	t.Helper()
	m := world()
	said, err := oracle.ReadReference(h.reference)
	if err != nil {
		t.Fatal(err)
	}
	derived, err := oracle.ReadDerived(h.ticks, h.prices, h.candles)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := oracle.ClosedMinutes(h.candles, h.observations)
	if err != nil {
		t.Fatal(err)
	}
	minutes, err := m.FoldMarkets(h.candles, h.observations, closed)
	if err != nil {
		t.Fatal(err)
	}
	ranks := map[string]uint32{}
	for id, row := range minutes[len(minutes)-1].Rows {
		ranks[id] = row.Rank
	}
	market, pegs := m.Views(minutes, said), m.Pegs(said, derived)
	views := map[string]oracle.View{}
	for _, v := range []oracle.View{
		market.Markets, market.Global, market.Movers, market.Sentiment, market.FearGreed, pegs.View(), pegs.Episodes(), said.FixingsView(), said.FiatView(),
		m.CoinsNow(said, ranks), m.CoinEvents(said), said.SourcesView(derived.Prices), said.FetchesView(), m.Mappings(said, derived.Ticks), pegs.Statistics(statisticsSince),
	} {
		views[v.Name] = v
	}
	for _, step := range []time.Duration{time.Minute, 5 * time.Minute} {
		v := pegs.Series("euro-coin", seriesFrom, seriesTo, step)
		views[fmt.Sprint(v.Name, " by ", step)] = v
	}
	return views
}

var (
	statisticsSince = chapters[3].begin.Add(-30 * 24 * time.Hour)
	seriesFrom      = chapters[3].begin.Add(3 * time.Minute)
	seriesTo        = chapters[3].begin.Add(93 * time.Minute)
)

// shows reads a view, or what the store says of pegs.
func (l *live) shows(name string, want oracle.View) oracle.View {
	l.t.Helper()
	ctx := l.t.Context()
	var v oracle.View
	var err error
	switch {
	case strings.HasPrefix(name, "v_"):
		v, err = oracle.ReadView(ctx, l.store.Conn(), name, want.Key...)
	case strings.HasPrefix(name, "the series"):
		_, by, _ := strings.Cut(name, " by ")
		step, _ := time.ParseDuration(by)
		var samples []history.PegSample
		samples, err = l.store.PegSeries(ctx, "euro-coin", seriesFrom, seriesTo, step)
		v = oracle.View{Name: want.Name, Key: want.Key}
		for _, s := range samples {
			v.Rows = append(v.Rows, oracle.Row{"time": s.Time, "price": s.Price, "target_usd": s.Target, "deviation_bps": s.DeviationBps})
		}
	default:
		var statistics []history.PegStatistic
		statistics, err = l.store.PegStatistics(ctx, statisticsSince)
		v = oracle.View{Name: want.Name, Key: want.Key}
		for _, s := range statistics {
			v.Rows = append(v.Rows, oracle.Row{"coin_id": s.CoinID, "mean_bps": s.MeanBps, "p95_bps": s.P95Bps, "now_bps": s.NowBps, "samples": s.Samples, "score_of_bps": s.Score,
				"time": s.Newest.Time, "price": s.Newest.Price, "target_usd": s.Newest.Target, "deviation_bps": s.Newest.DeviationBps})
		}
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return v
}

func (l *live) compare(name string, want oracle.View) []string {
	l.t.Helper()
	return oracle.CompareViews(want, l.shows(name, want))
}

func TestReferenceViewsEqualTheOracle(t *testing.T) {
	const seed = 1
	s, l := tell(t, seed), newLive(t)
	l.write(s, 0.6)
	l.run("a third of the minutes is folded", l.folded(s.closes[len(s.closes)/3]))
	l.write(s, 1)
	l.run("the sinks have come to the end", l.settled(s.closes[len(s.closes)-1]))
	s.last()
	l.write(s, 1)
	l.run("the last tick has come", l.settled(0))

	h := holds{l.read(schemas.TopicTicks), l.read(schemas.TopicPrices), l.read(schemas.TopicCandles), l.read(schemas.TopicReferenceRaw)[0], l.read(schemas.TopicCoinMarketsRaw)[0]}
	want := h.views(t)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t.Logf("%s: %d rows", name, len(want[name].Rows))
		if wrong := l.compare(name, want[name]); len(wrong) > 0 {
			t.Errorf("seed %d: %d differences:\n%s", seed, len(wrong), strings.Join(wrong[:min(len(wrong), 6)], "\n"))
		}
	}
}
