package history_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
)

const aMinute = int64(time.Minute)

func row(minute int64, m *eventsv1.Market) logged {
	m.Time = noon + minute*aMinute
	return folded(m.Time, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: m}})
}

func summary(minute int64, s *eventsv1.Summary) logged {
	s.Time = noon + minute*aMinute
	return folded(s.Time, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{Summary: s}})
}

func TestTheNewestRowOfAMarketCounts(t *testing.T) {
	store := newStore(t)
	n := func(f float64) *float64 { return &f }
	full := &eventsv1.Market{
		CoinId: "bitcoin", Symbol: "BTC", Name: "Bitcoin", Price: 2, PriceSource: "median", PriceTime: noon, MarketCap: n(3), Rank: 1, FullyDilutedValuation: n(4), Volume24H: n(5), High24H: n(6),
		Low24H: n(7), PriceChange24H: n(-8), Change1H: n(-9), Change24H: n(10), Change7D: n(11), Change14D: n(12), Change30D: n(13), Change60D: n(14), Change200D: n(15), Change1Y: n(16),
		OwnChanges: []string{"1h", "24h"}, MarketCapChange24H: n(17), MarketCapChangePct24H: n(18), Ath: n(19), AthTime: noon + 1, Atl: n(20), AtlTime: noon + 2,
		CirculatingSupply: n(21), TotalSupply: n(22), MaxSupply: n(23), SupplySource: "coingecko", SupplyTime: noon + 3, Simulated: true,
	}
	insert(t, store,
		row(2, full),
		row(1, &eventsv1.Market{CoinId: "bitcoin", Price: 99}), // came late
		row(0, &eventsv1.Market{CoinId: "dash", Price: 1}), row(720, &eventsv1.Market{CoinId: "dash", Price: 2}), row(721, &eventsv1.Market{CoinId: "dash", Price: 3, PriceSource: "coingecko", Volume24H: n(math.NaN())}),
		row(1, &eventsv1.Market{CoinId: "gone", Price: 1, PriceSource: "median"}), row(2, &eventsv1.Market{CoinId: "gone"}), // nobody reports its price any more
	)
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_markets ORDER BY coin_id",
		`('bitcoin','BTC','Bitcoin',1,'2026-03-01 12:02:00',2,'median','2026-03-01 12:00:00.000000000',3,4,5,6,7,-8,-9,10,11,12,13,14,15,16,['1h','24h'],17,18,19,'2026-03-01 12:00:00.000000001',20,'2026-03-01 12:00:00.000000002',21,22,23,'coingecko','2026-03-01 12:00:00.000000003',true,'2026-03-01 12:03:00.000000000')`,
		`('dash','','',0,'2026-03-02 00:01:00',3,'coingecko','1970-01-01 00:00:00.000000000',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,[],NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'',NULL,false,'2026-03-02 00:02:00.000000000')`)
	// The end of the last minute of a day is midnight.
	checkRows(t, store, "SELECT concat(coin_id, ' ', toString(day), ' ', toString(price)) FROM markets_1d FINAL ORDER BY coin_id, day", "bitcoin 2026-03-01 2", "dash 2026-03-01 2", "dash 2026-03-02 3", "gone 2026-03-01 0")
}

func TestMoversAreThoseOfTheFormula(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	store := newStore(t)
	var rows []*eventsv1.Market
	var records []logged
	for i := range 400 {
		m := &eventsv1.Market{CoinId: fmt.Sprintf("coin%d", i), Symbol: "C", Name: "N", Rank: uint32(i), Price: 1}
		if r.IntN(10) > 0 {
			change := float64(r.IntN(41) - 20)
			m.Change24H = &change
		}
		if r.IntN(10) > 0 {
			volume := float64([]int{0, 49_999, 50_000, 1_000_000}[r.IntN(4)])
			m.Volume24H = &volume
		}
		rows = append(rows, m)
		records = append(records, row(1, m))
	}
	insert(t, store, records...)
	var want []string
	for _, segment := range append(slices.Clone(schemas.RankRanges), schemas.AllRanks) {
		gainers, losers := schemas.Movers(rows, segment, 50, schemas.MoversMinVolume)
		for side, list := range map[string][]*eventsv1.Market{"gainer": gainers, "loser": losers} {
			for i, m := range list {
				want = append(want, fmt.Sprintf("%s %s %d %s %.0f %.0f", segment, side, i+1, m.CoinId, *m.Change24H, *m.Volume24H))
			}
		}
	}
	slices.Sort(want)
	got := queryStrings(t, store, "SELECT concatWithSeparator(' ', range, side, position, coin_id, change_24h, volume_24h) FROM default.v_movers")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 100 {
		t.Errorf("seed %d: got %d movers; want(-), got(+):\n%s", seed, len(got), diff)
	}
}

func TestSummariesAreSampledByTheEndOfTheirStep(t *testing.T) {
	store := newStore(t)
	change := -1.5
	var all []*eventsv1.Summary
	var records []logged
	for minute := range int64(12) {
		s := &eventsv1.Summary{TotalMarketCap: float64(100 + minute%5), TotalVolume24H: 1e10, BtcDominance: 50, EthDominance: 10, ActiveCoins: uint32(minute), ActiveMarkets: 7,
			StablecoinMarketCap: 3, StablecoinDominance: 4, Dominance: []*eventsv1.Share{{CoinId: "bitcoin", Symbol: "BTC", Percent: 50}, {CoinId: "ethereum", Symbol: "ETH", Percent: 10}}}
		if minute == 5 {
			s.MarketCapChange24H, s.VolumeChange24H, s.Simulated = &change, &change, true
			s.FearGreed = &eventsv1.FearGreedComputed{Value: 24, Components: []*eventsv1.Statistic{{Name: "momentum", Value: 20}, {Name: "breadth", Value: 28}}}
			s.Sentiment = []*eventsv1.Sentiment{{Range: "1-50", Positive: 3, Negative: 1, Neutral: 2, Total: 6, Ratio: 0.75, Classification: "very bullish", AverageChange24H: 1.25, MedianChange24H: 0.5}}
		}
		all = append(all, s)
		records = append(records, summary(minute, s))
	}
	insert(t, store, records...)
	for _, test := range []struct {
		from, to int64
		step     time.Duration
		want     []*eventsv1.Summary
	}{
		// The end of 12:04 closes the step that began at 12:00.
		{0, 11, 5 * time.Minute, []*eventsv1.Summary{all[5], all[10], all[11]}},
		{-1, 2, time.Minute, all[0:3]},
		{5, 6, time.Hour, all[6:7]},
		{11, 20, time.Minute, nil},
	} {
		got, err := read.From(store).Summaries(t.Context(), at(test.from*60), at(test.to*60), test.step)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got, protocmp.Transform(), protocmp.IgnoreFields(&eventsv1.Summary{}, "sentiment")); diff != "" {
			t.Errorf("from %d to %d by %s: want(-), got(+):\n%s", test.from, test.to, test.step, diff)
		}
	}
	// 12:00 closes the step before; those of 12:01 to 12:05 are 101, 102, 103, 104, 100.
	got, err := read.From(store).SummaryOHLC(t.Context(), "total_market_cap", at(0), at(300), 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]read.SummaryOHLC{{Start: at(0), Open: 101, High: 104, Low: 100, Close: 100, Average: 102, Samples: 5}}, got); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
	if _, err := read.From(store).SummaryOHLC(t.Context(), "time", at(0), at(300), time.Minute); err == nil {
		t.Error("a metric that is none: got no error")
	}
	if _, err := read.From(store).Summaries(t.Context(), at(0), at(0).AddDate(10, 0, 0), time.Minute); err == nil {
		t.Error("5 million points: got no error")
	}
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_global WHERE simulated",
		`('2026-03-01 12:05:00',100,10000000000,50,10,[('bitcoin','BTC',50),('ethereum','ETH',10)],-1.5,-1.5,5,7,3,4,24,[('momentum',20),('breadth',28)],true,'2026-03-01 12:06:00.000000000')`)
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_sentiment", `('2026-03-01 12:05:00','1-50',3,1,2,6,0.75,'very bullish',1.25,0.5,'2026-03-01 12:06:00.000000000')`)
	insert(t, store, sourceRecord(1, &eventsv1.FearGreed{Source: "alternative-me", Value: 46, Classification: "Neutral", EventTime: noon - noon%int64(24*time.Hour), IngestTime: noon}),
		sourceRecord(2, &eventsv1.FearGreed{Source: "alternative-me", Value: 80, Classification: "Extreme Greed", EventTime: noon - int64(24*time.Hour), IngestTime: noon - int64(24*time.Hour)}))
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_fear_greed ORDER BY day, source", `('2026-02-28','alternative-me',80,'Extreme Greed','2026-02-28 12:00:00.000000000','2026-02-28 12:00:00.000000000')`,
		`('2026-03-01','alternative-me',46,'Neutral','2026-03-01 12:00:00.000000000','2026-03-01 12:00:00.000000000')`, `('2026-03-01','marketlog',24,'Extreme Fear','2026-03-01 12:05:00.000000000','2026-03-01 12:06:00.000000000')`)
	days, err := read.From(store).FearGreedHistory(t.Context(), at(0).AddDate(0, 0, -1), at(0))
	if err != nil || len(days) != 1 || days[0].Value != 46 || days[0].EventTime != noon-noon%int64(24*time.Hour) {
		t.Errorf("the days that begin since yesterday noon: got %v, %v, want the one of 46", days, err)
	}
}

// The SQL of episodes, statistics and deviations agrees with the formulas on random closes.
func TestPegsInSQLAreThoseOfTheFormulas(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	store := newStore(t)
	pegs := map[string]float64{"tether": 1, "dai": 1, "euro-coin": 1.25}
	points := map[string][]schemas.PegPoint{}
	records := []logged{fixing(1, "USD", "1.25", at(0).AddDate(0, 0, -6))}
	offset := int64(1)
	for coin, peg := range pegs {
		deviation := 0.0
		for minute := range int64(1500) {
			deviation = math.Max(-150, math.Min(150, deviation+float64(r.IntN(41)-20)))
			if r.IntN(20) == 0 {
				continue // no price in it
			}
			end := peg * (1 + deviation/10_000)
			offset++
			records = append(records, candle(offset, &eventsv1.Candle{CoinId: coin, Start: noon - (1500-minute)*aMinute, Open: end, High: end, Low: end, Close: end, Volume: "1"}))
			points[coin] = append(points[coin], schemas.PegPoint{Time: at(-(1500 - minute - 1) * 60), DeviationBps: schemas.PegDeviationBps(end, peg)})
		}
	}
	// Of a currency without a fixing of the last days nobody knows what the peg is.
	records = append(records, candle(offset+1, &eventsv1.Candle{CoinId: "eurite", Start: noon + 48*60*aMinute, Close: 1.25, Volume: "1"}))
	insert(t, store, records...)
	statistics, err := read.From(store).PegStatistics(t.Context(), at(-3000*60))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, coin := range slices.Sorted(func(yield func(string) bool) {
		for coin := range pegs {
			if !yield(coin) {
				return
			}
		}
	}) {
		var deviations []float64
		for _, p := range points[coin] {
			deviations = append(deviations, p.DeviationBps)
		}
		score, _ := schemas.NewPegScore(deviations)
		if len(statistics) != len(pegs) || statistics[i].CoinID != coin {
			t.Fatalf("seed %d: got statistics %+v, want one of each of %v", seed, statistics, pegs)
		}
		near := cmpopts.EquateApprox(0, 1e-6)
		if diff := cmp.Diff(score, statistics[i].PegScore, near); diff != "" {
			t.Errorf("seed %d: %s: want(-), got(+):\n%s", seed, coin, diff)
		}
		var want []string
		for _, e := range schemas.PegEpisodes(points[coin]) {
			recovery := "-"
			if !e.Recovery.IsZero() {
				recovery = e.Recovery.Format(time.DateTime)
			}
			want = append(want, fmt.Sprintf("%s %s %.4f %s", e.Start.Format(time.DateTime), e.Trough.Format(time.DateTime), e.TroughBps, recovery))
		}
		found += len(want)
		got := queryStrings(t, store, `SELECT concatWithSeparator(' ', toString(start), toString(trough), printf('%.4f', trough_bps), ifNull(toString(recovery), '-'))
			FROM default.v_peg_episodes WHERE coin_id = ? ORDER BY start`, coin)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d: episodes of %s: want(-), got(+):\n%s", seed, coin, diff)
		}
		episodes, err := read.From(store).PegEpisodes(t.Context(), coin, at(-3000*60), at(0), read.AllFixings)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(schemas.PegEpisodes(points[coin]), episodes, near); diff != "" {
			t.Errorf("seed %d: episodes that are read of %s: want(-), got(+):\n%s", seed, coin, diff)
		}
		series, err := read.From(store).PegSeries(t.Context(), coin, at(-3000*60), at(0), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var seen []schemas.PegPoint
		for _, s := range series {
			seen = append(seen, s.PegPoint)
		}
		if diff := cmp.Diff(points[coin], seen); diff != "" {
			t.Errorf("seed %d: series of %s: want(-), got(+):\n%s", seed, coin, diff)
		}
		hours, err := read.From(store).PegSeries(t.Context(), coin, at(-86400), at(0), time.Hour)
		if err != nil || len(hours) != 24 || !hours[23].Time.Equal(points[coin][len(points[coin])-1].Time) || hours[23].DeviationBps != points[coin][len(points[coin])-1].DeviationBps {
			t.Errorf("seed %d: hours of %s: got %d, %v, want 24 that end with the newest minute", seed, coin, len(hours), err)
		}
	}
	if found == 0 {
		t.Errorf("seed %d: no episode, want some", seed)
	}
	if _, err := read.From(store).PegSeries(t.Context(), "bitcoin", at(-60), at(0), time.Minute); err == nil {
		t.Error("the peg of bitcoin: got no error")
	}
}

func TestADeviationIsServedByTheSecondWhereSecondsAreKept(t *testing.T) {
	store := newStore(t)
	minute := func(offset int64, start int64, end float64) logged {
		return candle(offset, &eventsv1.Candle{CoinId: "euro-coin", Start: noon + start*aMinute, Open: end, High: end, Low: end, Close: end, Volume: "1"})
	}
	second := func(offset, second int64, coin string, value float64, reason string) logged {
		return price(offset, &eventsv1.Price{CoinId: coin, Time: noon + second*int64(time.Second), Price: value, Reason: reason})
	}
	insert(t, store, fixing(1, "USD", "1.25", at(0)), minute(1, -2, 1.2475), minute(2, -1, 1.25), minute(3, 0, 1.3))
	checkRows(t, store, "SELECT concatWithSeparator(' ', time, round(deviation_bps, 6), resolution) FROM default.v_peg ORDER BY time",
		"2026-03-01 11:59:00 -20 minute", "2026-03-01 12:00:00 0 minute", "2026-03-01 12:01:00 400 minute")
	insert(t, store, second(4, 0, "euro-coin", 1.25, ""), second(5, 1, "euro-coin", 1.2525, ""), second(6, 2, "euro-coin", 0, "no_fresh_inputs"), second(7, 1, "bitcoin", 60000, ""), second(8, 1, "tether", 0.5, ""))
	checkRows(t, store, "SELECT concatWithSeparator(' ', coin_id, time, peg, price, target_usd, round(deviation_bps, 6), resolution) FROM default.v_peg ORDER BY coin_id, time, resolution DESC",
		"euro-coin 2026-03-01 11:59:00 EUR 1.2475 1.25 -20 minute", "euro-coin 2026-03-01 12:00:00 EUR 1.25 1.25 0 minute",
		"euro-coin 2026-03-01 12:00:00 EUR 1.25 1.25 0 second", "euro-coin 2026-03-01 12:00:01 EUR 1.2525 1.25 20 second",
		"tether 2026-03-01 12:00:01 USD 0.5 1 -5000 second")
}

// No central bank fixes the offshore yuan: its stablecoins have a past all the same, by what other sources gave last for a
// day. Those sources do not count for a currency that has fixings.
func TestAPegWithoutFixingsIsMeasuredByOtherSources(t *testing.T) {
	store := newStore(t)
	offset := int64(0)
	given := func(source, quote, rate string, day time.Time, event time.Time) {
		offset++
		l := fixing(offset, quote, rate, day)
		f := l.record.(*eventsv1.ReferenceRecord).GetFixing()
		f.Source, f.Base, f.EventTime = source, "USD", event.UnixNano()
		insert(t, store, l)
	}
	close := func(start int64, coin string, end float64) {
		offset++
		insert(t, store, candle(offset, &eventsv1.Candle{CoinId: coin, Start: noon + start*aMinute, Open: end, High: end,
			Low: end, Close: end, Volume: "1"}))
	}
	const aDay = 24 * 60
	insert(t, store, fixing(1000, "USD", "1.25", at(-8*86400)), fixing(1001, "USD", "1.25", at(0)))
	given("coinbasefiat", "CNH", "6", at(0), at(-7200))
	given("coinbasefiat", "CNH", "7", at(0), at(-3600)) // the last of the day counts
	given("coinbasefiat", "EUR", "0.5", at(0), at(-3600))
	given("frankfurter", "CNH", "9", at(0), time.Unix(0, 0)) // the median of both is 8
	given("frankfurter", "CNH", "5", at(-8*86400), time.Unix(0, 0))
	given("frankfurter", "CNH", "0", at(-86400), time.Unix(0, 0)) // no rate
	close(-8*aDay, "cnh-tether", 0.21)
	close(-aDay, "cnh-tether", 0.2) // the rate of seven days before is too old
	close(-1, "cnh-tether", 0.126)
	close(-1, "euro-coin", 1.25)
	checkRows(t, store,
		"SELECT concatWithSeparator(' ', coin_id, time, peg, target_usd, round(deviation_bps, 6)) FROM default.v_peg WHERE resolution = 'minute' ORDER BY coin_id, time",
		"cnh-tether 2026-02-21 12:01:00 CNH 0.2 500", "cnh-tether 2026-03-01 12:00:00 CNH 0.125 80",
		"euro-coin 2026-03-01 12:00:00 EUR 1.25 0")
	series, err := read.From(store).PegSeries(t.Context(), "cnh-tether", at(-9*86400), at(0), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, s := range series {
		seen = append(seen, fmt.Sprintf("%s %g %.6f", s.Time.Format(time.DateTime), s.Target, s.DeviationBps))
	}
	if want := []string{"2026-02-21 12:01:00 0.2 500.000000", "2026-03-01 12:00:00 0.125 80.000000"}; !slices.Equal(seen, want) {
		t.Errorf("the series of CNHT: got %q, want %q", seen, want)
	}
	scored, err := read.From(store).PegStatistics(t.Context(), at(-3600))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(scored, func(s read.PegStatistic) bool {
		return s.CoinID == "cnh-tether" && s.Samples == 1 && math.Abs(s.NowBps-80) < 1e-6
	}) {
		t.Errorf("the scores are %+v, want one of cnh-tether with 80 basis points now", scored)
	}
}

func TestCoinsAreDescribedByTheFirstSourceThatDescribesThem(t *testing.T) {
	store := newStore(t)
	insert(t, store,
		sourceRecord(1, &eventsv1.Coin{Source: "coinpaprika", SourceId: "btc-bitcoin", Part: "list", Symbol: "BTC", Name: "Bitcoin (paprika)", Kind: "coin", IngestTime: noon}),
		sourceRecord(2, &eventsv1.Coin{Source: "coinpaprika", SourceId: "btc-bitcoin", Part: "detail", Symbol: "BTC", Name: "Bitcoin", Description: "long", CreatedAt: "2009", IngestTime: noon + 60e9}),
		sourceRecord(3, &eventsv1.Coin{Source: "coingecko", SourceId: "bitcoin", Part: "list", Symbol: "btc", Name: "Bitcoin", Inactive: true, IngestTime: noon + 120e9}),
		sourceRecord(4, &eventsv1.Coin{Source: "coingecko", SourceId: "a-new-coin", Part: "list", Symbol: "new", Name: "New", Platforms: []*eventsv1.Platform{{Name: "tron", Address: "T1"}}, IngestTime: noon}),
		sourceRecord(5, &eventsv1.Coin{Source: "coinpaprika", SourceId: "zzz-nobody-knows", Part: "list", Symbol: "ZZZ", Name: "Nobody Knows", IngestTime: noon}),
		row(1, &eventsv1.Market{CoinId: "bitcoin", Rank: 1}),
	)
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_coins ORDER BY coin_id",
		`('a-new-coin','NEW','New',0,'',[],[('tron','T1')],'','',[],[],'','2026-03-01 12:00:00.000000000',NULL,false,['coingecko'],'2026-03-01 12:00:00.000000000')`,
		`('bitcoin','BTC','Bitcoin',1,'coin',[],[],'long','',[],[],'2009','2026-03-01 12:00:00.000000000','2026-03-01 12:01:00.000000000',false,['coingecko','coinpaprika'],'2026-03-01 12:02:00.000000000')`)
}

func TestMappingsHoldUntilTheyAreReplaced(t *testing.T) {
	store := newStore(t)
	offset := int64(0)
	resolved := func(venue, base, coin string, second int64) logged {
		offset++
		l := tick(offset, &eventsv1.Tick{Venue: venue, Symbol: base + "-USD", Base: base, Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE, EventId: fmt.Appendf(nil, "%016d", offset),
			EventTime: noon, IngestTime: noon + second*int64(time.Second)}, 0)
		l.record.(*eventsv1.ResolvedRecord).GetTick().CoinId = coin
		return l
	}
	override := func(second int64, coin string) logged {
		offset++
		return sourceRecord(offset, &eventsv1.SymbolOverride{Source: "general", Symbol: "UNI", CoinId: coin, Time: noon + second*int64(time.Second)})
	}
	insert(t, store, resolved("kraken", "XBT", "bitcoin", 0), resolved("kraken", "XBT", "bitcoin", 5), resolved("kraken", "ETH", "ethereum", 1), resolved("gate", "ABC", "old-abc", 1), resolved("gate", "ABC", "old-abc", 2),
		resolved("gate", "ABC", "bitcoin", 3), resolved("gate", "NONE", "", 3), override(0, "uniswap"), override(10, ""), override(20, "bitcoin"))
	checkRows(t, store, `SELECT concatWithSeparator(' ', source, symbol, coin_id, method, toString(confidence), formatDateTime(valid_from, '%T'), ifNull(formatDateTime(valid_to, '%T'), '-'))
		FROM default.v_mappings ORDER BY source, symbol, valid_from`,
		"gate ABC old-abc exchange_mapping 95 12:00:01 12:00:02", "gate ABC bitcoin exchange_mapping 95 12:00:03 -",
		"general UNI uniswap manual_override 100 12:00:00 12:00:10", "general UNI bitcoin manual_override 100 12:00:20 -",
		"kraken ETH ethereum unique_symbol 90 12:00:01 -", "kraken XBT bitcoin exchange_mapping 95 12:00:00 -")
}

func TestFiatRatesAreBlendedFromTheNewestOfEachSource(t *testing.T) {
	store := newStore(t)
	rate := func(offset int64, source, base, quote, rate, date string, event int64) logged {
		return sourceRecord(offset, &eventsv1.Fixing{Source: source, Base: base, Quote: quote, Rate: rate, Date: date, EventTime: event, IngestTime: noon + offset*int64(time.Second)})
	}
	insert(t, store,
		rate(1, "ecb", "EUR", "USD", "1.25", "2026-03-01", 0), rate(2, "ecb", "EUR", "CHF", "1", "2026-03-01", 0), rate(3, "ecb", "EUR", "CHF", "2", "2026-02-28", 0),
		rate(4, "er-api", "USD", "CHF", "0.9", "2026-03-01", noon), rate(5, "er-api", "USD", "CHF", "0.7", "2026-03-01", noon-1), rate(6, "er-api", "USD", "EUR", "0.84", "2026-03-01", noon),
		rate(7, "coinbase", "USD", "CHF", "0.86", "2026-03-01", noon), rate(8, "coinbase", "GBP", "USD", "1.25", "2026-03-01", noon),
		rate(9, "old", "USD", "CHF", "7", "2026-02-22", 0), rate(10, "lonely", "EUR", "JPY", "150", "2026-03-01", 0),
	)
	checkRows(t, store, "SELECT toString((currency, round(rate, 9), round(usd, 9), day, formatDateTime(time, '%T'), stale, sources, left_out)) FROM default.v_fiat ORDER BY currency",
		"('CHF',0.86,1.162790698,'2026-03-01','12:00:00',false,['coinbase','ecb','er-api'],[('old','stale')])",
		"('EUR',0.82,1.219512195,'2026-03-01','12:00:00',false,['ecb','er-api'],[])",
		"('GBP',0.8,1.25,'2026-03-01','12:00:00',false,['coinbase'],[])")
	// Of the rates of one day the last counts for conversion, all are kept.
	checkRows(t, store, "SELECT concat(toString((SELECT count() FROM fiat_rates FINAL WHERE quote = 'CHF')), ' ', toString((SELECT rate FROM fixings FINAL WHERE base = 'USD' AND quote = 'CHF' AND day = '2026-03-01')))", "6 0.86")
}

func TestHealthOfSourcesIsThatOfTheirRequests(t *testing.T) {
	store := newStore(t)
	offset := int64(0)
	fetch := func(source string, ago time.Duration, status int32, problem string, took time.Duration) logged {
		offset++
		return sourceRecord(offset, &eventsv1.Fetch{Source: source, Feed: "list", Url: "https://" + source, Status: status, Error: problem, Started: noon - int64(ago), Duration: int64(took), Rows: 10})
	}
	notice := func(source string, enabled bool) logged {
		offset++
		return sourceRecord(offset, &eventsv1.SourceNotice{Source: source, Name: source + "!", Kinds: []string{"coin"}, Enabled: enabled, Interval: int64(time.Minute), License: "CC0", Attribution: "thanks"})
	}
	records := []logged{notice("good", true), notice("shaky", true), notice("dead", true), notice("off", false), notice("silent", true)}
	for i, venue := range []string{"kraken", "gate", "okx", "htx"} { // streams
		offset++
		records = append(records, sourceRecord(offset, &eventsv1.SourceNotice{Source: venue, Enabled: true}))
		receivedAt := noon - []int64{119, 121, 599, 601}[i]*int64(time.Second)
		records = append(records, price(offset, &eventsv1.Price{CoinId: "bitcoin", Time: receivedAt - receivedAt%int64(time.Second), Inputs: []*eventsv1.PriceInput{{Provider: venue, QuoteHeard: receivedAt, LastHeard: receivedAt - 1}}}))
	}
	records = append(records, price(offset+1, &eventsv1.Price{CoinId: "dash", Time: noon}))
	for i := range 20 {
		records = append(records, fetch("good", time.Duration(i)*time.Hour, 200, "", time.Duration(i+1)*time.Millisecond))
	}
	records = append(records,
		fetch("good", 26*time.Hour, 503, "busy", time.Second), fetch("good", 8*24*time.Hour, 500, "forgotten", time.Second),
		fetch("shaky", time.Hour, 304, "", time.Millisecond), fetch("shaky", time.Minute, 0, "no route", time.Second),
		fetch("dead", 3*time.Hour, 200, "", time.Millisecond), fetch("dead", 3*time.Minute, 500, "a", 0), fetch("dead", 2*time.Minute, 500, "b", 0), fetch("dead", time.Minute, 502, "c", 0))
	insert(t, store, records...)
	got, err := read.From(store).SourceHealth(t.Context(), at(10))
	if err != nil {
		t.Fatal(err)
	}
	ago := func(d time.Duration) time.Time { return at(0).Add(-d) }
	want := []read.SourceHealth{
		{Source: "dead", Requests24h: 4, Succeeded24h: 1, Requests7d: 4, Succeeded7d: 1, LastAttempt: ago(time.Minute), LastSuccess: ago(3 * time.Hour), LastError: "c", LastStatus: 502,
			LastErrorAt: ago(time.Minute), ConsecutiveFailures: 3, LatencyP50: time.Millisecond, LatencyP95: time.Millisecond, Readings: 40, HeldSince: ago(3 * time.Hour), Heard: ago(3 * time.Hour)},
		{Source: "good", Requests24h: 20, Succeeded24h: 20, Requests7d: 21, Succeeded7d: 20, LastAttempt: ago(0), LastSuccess: ago(0), LastError: "busy", LastStatus: 503, LastErrorAt: ago(26 * time.Hour),
			LatencyP50: 10 * time.Millisecond, LatencyP95: 19 * time.Millisecond, Readings: 200, HeldSince: ago(0), Heard: ago(0)},
		{Source: "shaky", Requests24h: 2, Succeeded24h: 1, Requests7d: 2, Succeeded7d: 1, LastAttempt: ago(time.Minute), LastSuccess: ago(time.Hour), LastError: "no route", LastErrorAt: ago(time.Minute),
			ConsecutiveFailures: 1, LatencyP50: time.Millisecond, LatencyP95: time.Millisecond, Readings: 20, HeldSince: ago(time.Hour), Heard: ago(time.Hour)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
	checkRows(t, store, `SELECT concatWithSeparator(' ', source, status, ifNull(toString(success_rate_24h), '-'), ifNull(toString(latency_p95_ms), '-'), ifNull(toString(last_attempt), '-'), interval_seconds, license, attribution)
		FROM default.v_sources ORDER BY source`,
		"dead down 0.25 1 2026-03-01 11:59:00.000000000 60 CC0 thanks", "gate degraded - - - 0  ", "good healthy 1 19 2026-03-01 12:00:00.000000000 60 CC0 thanks", "htx down - - - 0  ", "kraken healthy - - - 0  ",
		"off disabled - - - 60 CC0 thanks", "okx degraded - - - 0  ",
		"shaky degraded 0.5 1 2026-03-01 11:59:00.000000000 60 CC0 thanks", "silent down - - - 60 CC0 thanks")
	checkRows(t, store, "SELECT toString((source, last_heard)) FROM default.v_sources WHERE last_heard IS NOT NULL ORDER BY source LIMIT 1", "('gate','2026-03-01 11:57:59.000000000')")
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_fetches WHERE source = 'shaky' ORDER BY started", `('shaky','2026-03-01 11:00:00.000000000','list','https://shaky',304,true,'',1,10,'2026-03-01 11:00:00.001000000')`,
		`('shaky','2026-03-01 11:59:00.000000000','list','https://shaky',0,false,'no route',1000,10,'2026-03-01 11:59:01.000000000')`)
}

// The blend in SQL is the formula's, for whatever sources state, in whatever order.
func TestFiatRatesInSQLAreThoseOfTheFormula(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	store := newStore(t)
	sources := []string{"ecb", "frankfurter", "er-api", "coinbase", "bank"}
	currencies := []string{"USD", "EUR", "CHF", "GBP", "JPY", "PLN"}
	receivedAt := map[string]schemas.FiatReading{}
	var fixings []*eventsv1.Fixing
	var records []logged
	for i, source := range sources {
		h := schemas.FiatReading{Read: noon - r.Int64N(int64(2*time.Hour)), Interval: int64(time.Duration(5+r.IntN(60)) * time.Minute)}
		if i == 0 {
			h.Read = noon // the newest of all is the time that it is
		}
		receivedAt[source] = h
		records = append(records, sourceRecord(int64(i), &eventsv1.Fetch{Source: source, Started: h.Read}), sourceRecord(int64(i), &eventsv1.SourceNotice{Source: source, Interval: h.Interval}))
	}
	for i := range 150 {
		source := sources[r.IntN(len(sources))]
		day := at(0).AddDate(0, 0, -r.IntN(9))
		f := &eventsv1.Fixing{Source: source, Base: currencies[r.IntN(3)], Quote: currencies[r.IntN(len(currencies))], Rate: fmt.Sprintf("%d.%03d", r.IntN(3), 1+r.IntN(999)), Date: day.Format(time.DateOnly), IngestTime: noon - 1}
		if f.Base == f.Quote {
			continue
		}
		if source == "er-api" || source == "coinbase" {
			f.EventTime = day.UnixNano() - r.Int64N(int64(3*time.Hour))
		}
		if source == "bank" {
			f.Providers = [][]string{nil, {"ECB"}, {"ECB", "frankfurter"}, {"elsewhere"}}[r.IntN(4)]
		}
		fixings = append(fixings, f)
		records = append(records, sourceRecord(int64(i+10), f))
	}
	insert(t, store, records...)
	var want []string
	for _, rate := range schemas.BlendFiat(fixings, receivedAt, noon) {
		line := fmt.Sprintf("%s %.9f %s %v", rate.Code, rate.Rate, time.Unix(0, rate.Time).UTC().Format("2006-01-02 15:04:05.000000000"), rate.Stale)
		for _, s := range rate.Sources {
			line += " " + s.Source + ":" + s.Reason
		}
		want = append(want, line)
	}
	got := queryStrings(t, store, `SELECT concatWithSeparator(' ', currency, printf('%.9f', rate), toString(time), toString(stale),
			arrayStringConcat(arrayMap(s -> concat(s.1, ':', s.2), arraySort(arrayConcat(arrayMap(s -> (s, ''), sources), left_out))), ' '))
		FROM default.v_fiat ORDER BY currency`)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 4 {
		t.Errorf("seed %d: want(-), got(+):\n%s", seed, diff)
	}
}
