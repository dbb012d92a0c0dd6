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
	"github.com/marketlog/marketlog/stream/history/read"
)

// holds is what the log holds.
type holds struct {
	ticks, prices, candles  map[int32][]oracle.Record
	reference, observations []oracle.Record
}

// views works out all views by their names.
func (h holds) views(t testing.TB) map[string]oracle.View {
	t.Helper()
	m := marketFixture()
	ref, err := oracle.ReadReference(h.reference)
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
	market, pegs := m.Views(minutes, ref), m.Pegs(ref, derived)
	views := map[string]oracle.View{}
	for _, v := range []oracle.View{
		market.Markets, market.Global, market.Movers, market.Sentiment, market.FearGreed, pegs.View(), pegs.Episodes(), ref.FixingsView(), ref.FiatView(),
		m.CoinsNow(ref, ranks), m.CoinEvents(ref), ref.SourcesView(derived.Prices), ref.FetchesView(), m.Mappings(ref, derived.Ticks), pegs.Statistics(statisticsSince),
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
	statisticsSince = chapters[0].begin.Add(10 * time.Minute)
	seriesFrom      = chapters[len(chapters)-1].begin.Add(3 * time.Minute)
	seriesTo        = chapters[len(chapters)-1].begin.Add(93 * time.Minute)
)

// shows reads a view, or what the store has of pegs.
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
		var samples []read.PegSample
		samples, err = read.From(l.store).PegSeries(ctx, "euro-coin", seriesFrom, seriesTo, step)
		v = oracle.View{Name: want.Name, Key: want.Key}
		for _, s := range samples {
			v.Rows = append(v.Rows, oracle.Row{"time": s.Time, "price": s.Price, "target_usd": s.Target, "deviation_bps": s.DeviationBps})
		}
	default:
		var statistics []read.PegStatistic
		statistics, err = read.From(l.store).PegStatistics(ctx, statisticsSince)
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

// variety is what the scenario must bring about, so that no view is right for want of cases.
var variety = []struct {
	view, column string
	words        []string
}{
	{"v_sources", "status", []string{"healthy", "degraded", "down", "disabled"}},
	{"v_sources", "standstill", []string{"empty", "unmoved"}},
	{"v_fiat", "left_out", []string{"stale", "repeats", "outlier"}}, {"v_fiat", "stale", []string{"true", "false"}},
	{"v_mappings", "method", []string{"manual_override", "exchange_mapping", "unique_symbol", "coin_database"}}, {"v_mappings", "valid_to", []string{"nil", "2026-02"}},
	{"v_peg", "resolution", []string{"second", "minute"}}, {"v_peg", "peg", []string{"USD", "EUR"}}, {"v_peg_episodes", "recovery", []string{"nil", "2026"}},
	{"v_coin_events", "changed", []string{"name", "kind", "categories", "platforms", "description", "image_url", "links", "created_at", "inactive", "[] "}},
	{"v_coins", "sources", []string{"[another yet-another]", "coingecko coinpaprika"}}, {"v_fetches", "ok", []string{"true", "false"}},
	{"v_markets", "price_source", []string{"median", "coingecko"}}, {"v_markets", "own_changes", []string{"[1h 24h", "[]"}}, {"v_markets", "supply_source", []string{"coinpaprika"}},
	{"v_movers", "position", []string{" 50 "}}, {"v_movers", "range", []string{"1-50", "51-100", "101-250", "all"}}, {"v_sentiment", "classification", []string{"bullish", "neutral", "bearish"}},
	{"v_global", "simulated", []string{"true", "false"}}, {"v_fear_greed", "source", []string{"marketlog", "alternative-me"}},
}

func column(v oracle.View, name string) []any {
	var list []any
	for _, row := range v.Rows {
		list = append(list, row[name])
	}
	return append(list, "the end")
}

func TestReferenceViewsEqualTheOracle(t *testing.T) {
	const seed = 1
	s, l := newScenario(t, seed), newLive(t)
	last := s.closes[len(s.closes)-1]
	l.write(s, 0.6)
	l.run("a third of the minutes is folded", l.folded(s.closes[len(s.closes)/3]))
	l.write(s, 1)
	l.run("the sinks have come to the end", l.settled(last))
	// One more tick shows how far the log has come when all is there: what is older than is kept goes.
	s.last()
	l.write(s, 1)
	l.run("the last tick has come", l.settled(last))
	if l.way.cut.Load() < 5 || l.way.lost.Load() < 5 || !l.way.killed.Load() {
		t.Errorf("the way to the store broke off %d times before and %d times after an insert, and ended a sink: %t; want 5, 5 and true", l.way.cut.Load(), l.way.lost.Load(), l.way.killed.Load())
	}

	h := holds{l.read(schemas.TopicTicks), l.read(schemas.TopicPrices), l.read(schemas.TopicCandles), l.read(schemas.TopicReferenceRaw)[0], l.read(schemas.TopicCoinMarketsRaw)[0]}
	want := h.views(t)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t.Logf("%s: %d rows", name, len(want[name].Rows))
		if wrong := l.compare(name, want[name]); len(wrong) > 0 {
			t.Errorf("seed %d: %d differences:\n%s", seed, len(wrong), strings.Join(wrong[:min(len(wrong), 6)], "\n"))
		}
	}
	for _, v := range variety {
		for _, word := range v.words {
			if !strings.Contains(fmt.Sprint(column(want[v.view], v.column)), word) {
				t.Errorf("seed %d: no row of %s has %s %q: the scenario does not put it to the test", seed, v.view, v.column, word)
			}
		}
	}
	if !t.Failed() {
		t.Run("planted in tables", func(t *testing.T) { l.plantInTables(t, want) })
		t.Run("planted before the fold", func(t *testing.T) { l.plantBeforeTheFold(t, s, want) })
	}
}
