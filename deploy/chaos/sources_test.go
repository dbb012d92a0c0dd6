package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/producers/simulator"
	"github.com/marketlog/marketlog/producers/simulator/venues"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/schemas"
)

// polled answers for the polled sources, at a time that the test moves: their wire formats and invented values are the simulator's.
type polled struct {
	sim   *simulator.Simulator
	ahead atomic.Int64
}

// Now and After are the simulator's clock.
func (p *polled) Now() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }

func (p *polled) After(d time.Duration) <-chan time.Time { return time.After(d) }

// pollEvery is how often each source is asked for what it has newest: as often as the configuration allows, so that kills meet its
// records.
const pollEvery = 10 * time.Second

// servePolled answers for the sources until the test ends.
func servePolled(ctx context.Context, t *testing.T, seed uint64) *polled {
	t.Helper()
	p := &polled{}
	cfg := simulator.DefaultConfig()
	cfg.Clock, cfg.Seed, cfg.SourceRequests = p, int64(seed>>1), 100_000
	cfg.Venues, cfg.Coins = []venues.Venue{}, len(schemas.Coins().All()) // the scripted ones are enough
	var err error
	if p.sim, err = simulator.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.sim.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p
}

// settings lead the program to it. Sources that are asked with a key are left out, and CoinPaprika, whose ids the oracle does not
// know; in a short round the ECB too, whose fixings of all days since 1999 are most of the log then.
func (p *polled) settings(short bool) (list []string) {
	urls := p.sim.SourceURLs()
	for _, s := range sources.List() {
		if urls[s.Slug] == "" || s.Sign != nil || s.Slug == "coinpaprika" || short && s.Slug == "ecb" {
			continue
		}
		for _, kv := range [][2]string{
			{"enabled", "true"}, {"url", urls[s.Slug]}, {"interval", pollEvery.String()}, {"requests", "10000"}, {"per", "1m"},
		} {
			list = append(list, setting("sources."+s.Slug+"."+kv[0], kv[1]))
		}
	}
	return list
}

// minuteViews are what the folds of log minutes make, by the view of each that has a row soonest, and v_movers, which is last: it needs the
// rows of many coins.
var minuteViews = []string{"v_markets", "v_global", "v_peg", "v_rates", "v_defi", "v_earn_products", "v_movers"}

// seeMinuteViews waits until each fold of log minutes has closed one.
func (s *scene) seeMinuteViews() {
	s.t.Helper()
	eventually(s.t, "rows of "+fmt.Sprint(minuteViews), 3*time.Minute, s.minuteViewsFilled)
}

// minuteViewsFilled is nil once each fold of log minutes has closed one.
func (s *scene) minuteViewsFilled() error {
	for _, view := range minuteViews {
		list, err := rows[struct{ N int }](s.t.Context(), s.in, "SELECT count() AS n FROM "+view)
		if err != nil {
			return err
		}
		if list[0].N == 0 {
			return fmt.Errorf("%s is empty", view)
		}
	}
	return nil
}

// mayBeEmpty are views that have a row only if a coin loses its peg or changes, or the ECB is asked.
var mayBeEmpty = []string{"v_peg_episodes", "v_coin_events", "v_fixings"}

// checkSources compares the views of what sources gave, and of what is folded from it by the minute, with what the oracle works
// out from the log.
func (s *scene) checkSources(result *report) {
	t := s.t
	t.Helper()
	read := func(topic string) map[int32][]oracle.Record {
		records, err := oracle.Read(t.Context(), s.in.kafka, topic)
		if err != nil {
			t.Fatal(err)
		}
		return records
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	ref, err := oracle.ReadReference(read(schemas.TopicReferenceRaw)[0])
	must(err)
	candles, observations := read(schemas.TopicCandles), read(schemas.TopicCoinMarketsRaw)[0]
	derived, err := oracle.ReadDerived(read(schemas.TopicTicks), read(schemas.TopicPrices), candles)
	must(err)
	closed, err := oracle.ClosedMinutes(candles, observations)
	must(err)
	m := oracle.Market{Coins: map[string]oracle.MarketCoin{}, ID: func(_, id string) string { return id }}
	for _, c := range schemas.Coins().All() {
		m.Coins[c.ID] = oracle.MarketCoin{Symbol: c.Symbol, Name: c.Name, Stablecoin: c.Kind == schemas.KindStablecoin, Peg: c.Peg}
	}
	minutes, err := m.FoldMarkets(candles, observations, closed)
	must(err)
	if len(minutes) == 0 {
		t.Error("no minute of the market is closed")
		return
	}
	ranks := map[string]uint32{}
	for id, row := range minutes[len(minutes)-1].Rows {
		ranks[id] = row.Rank
	}
	market, pegs := m.Views(minutes, ref), m.Pegs(ref, derived)
	conn, err := clickhouse.Open(&clickhouse.Options{Protocol: clickhouse.HTTP, Addr: []string{s.in.sql}})
	must(err)
	defer conn.Close()
	result.Rows = map[string]int{}
	for _, want := range []oracle.View{
		market.Markets, market.Global, market.Movers, market.Sentiment, market.FearGreed, pegs.View(), pegs.Episodes(), ref.FixingsView(), ref.FiatView(),
		m.CoinsNow(ref, ranks), m.CoinEvents(ref), ref.SourcesView(derived.Prices), ref.FetchesView(), m.Mappings(ref, derived.Ticks),
	} {
		got, err := oracle.ReadView(t.Context(), conn, want.Name, want.Key...)
		must(err)
		result.Rows[want.Name] = len(got.Rows)
		wrong := oracle.CompareViews(want, got)
		for _, w := range first(wrong) {
			t.Error(w)
		}
		if len(wrong) > 0 {
			t.Errorf("%s: %d differences", want.Name, len(wrong))
		}
		if len(want.Rows) == 0 && !slices.Contains(mayBeEmpty, want.Name) {
			t.Errorf("%s is empty: nothing was compared", want.Name)
		}
	}
	t.Logf("%d minutes of the market; rows compared: %v", len(minutes), result.Rows)
}

// checkFolds asks the product to fold each view again from the log, apart from the others: that fold was never killed.
func (o *operator) checkFolds(result *report) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*time.Minute)
	defer cancel()
	result.Folded = map[string]int{}
	for _, view := range append(schemas.FoldedViews(), schemas.ViewReference) {
		lines, err := o.job(ctx, jobReplay, map[string]any{"view": view, "verify": true})
		if err != nil || len(lines) == 0 {
			o.t.Errorf("verifying %s: %v", view, err)
			continue
		}
		last := lines[len(lines)-1]
		compared, _ := last["compared"].(float64)
		result.Folded[view] = int(compared)
		if last["differing"] != 0.0 || compared == 0 {
			o.t.Errorf("replay --verify of %s: got %v, want some rows and none that differ", view, last)
			for _, line := range lines {
				if kind, ok := line["kind"].(string); ok && kind != "" {
					o.t.Logf("%v", line)
				}
			}
		}
	}
	o.t.Logf("rows folded again, by view: %v", result.Folded)
}

// wroteAll complains of topics from which too little was acknowledged.
func wroteAll(t *testing.T, acked map[string]int, least map[string]int) {
	t.Helper()
	for _, topic := range slices.Sorted(maps.Keys(least)) {
		if acked[topic] < least[topic] {
			t.Errorf("acknowledged records of %s: got %d, want at least %d", topic, acked[topic], least[topic])
		}
	}
}
