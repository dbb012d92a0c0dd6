package history_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

func defiSummary(minute int64, s *eventsv1.DefiSummary) logged {
	return defiAt(noon+minute*aMinute, s)
}

func defiAt(minute int64, s *eventsv1.DefiSummary) logged {
	s.Time = minute
	return logged{rows.Place{Topic: schemas.TopicDefi, Offset: s.Time}, &eventsv1.DefiRecord{
		Mark: &eventsv1.Mark{LogicVersion: 1, Offset: s.Time}, Body: &eventsv1.DefiRecord_Summary{Summary: s},
	}}
}

func fullDefi() *eventsv1.DefiSummary {
	n := func(f float64) *float64 { return &f }
	return &eventsv1.DefiSummary{
		Read: noon - 1, TotalTvl: 1, TotalTvlWithDoubleCount: 2, LendingTvl: 3, StakingTvl: 4, BorrowingTvl: 5, CefiTvl: 6, DefiMarketCap: n(7), DefiMarketDominance: n(8),
		DefiToCefiRatio: n(9), ProtocolCount: 10, LendingRates: &eventsv1.DefiRates{Average: n(11), Median: n(12), Weighted: n(13), Count: 14},
		StakingRates: &eventsv1.DefiRates{Average: n(15), Median: n(16), Weighted: n(17), Count: 18}, BorrowingRates: &eventsv1.DefiRates{Average: n(19), Median: n(-20), Count: 22},
		Lending: &eventsv1.DefiLending{Borrowed: 23, Utilization: n(24), ProtocolCount: 25, Protocols: []*eventsv1.DefiRow{{
			Key: "aave-v3", Name: "Aave V3", Symbol: "AAVE", Chains: []string{"Ethereum", "Base"}, Value: 26, Share: n(27), Change24H: n(28), Change7D: n(29), Apy: n(30),
			BorrowApy: n(31), Utilization: n(32),
		}, {Key: "morpho-v1", Value: 1}}},
		Staking: &eventsv1.DefiStaking{Staked: 33, LiquidDominance: n(34), ProtocolCount: 35, Chains: []*eventsv1.DefiRow{{Key: "Ethereum", Name: "Ethereum", CoinId: "ethereum", Value: 36, StakingRatio: n(37)}}},
		Borrowing: &eventsv1.DefiBorrowing{Collateral: 38, CollateralizationRatio: n(39), Utilization: n(40), ProtocolCount: 41,
			Protocols: []*eventsv1.DefiRow{{Key: "aave-v3", Value: 42, Collateral: n(43), CollateralizationRatio: n(44)}}},
		Simulated: true,
	}
}

func TestTheNewestListsOfDefiAreServed(t *testing.T) {
	store := newStore(t)
	short := fullDefi()
	short.Lending.Protocols = short.Lending.Protocols[1:]
	late := fullDefi()
	late.TotalTvl = 99
	insert(t, store, defiSummary(2, fullDefi()))
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_defi",
		`('2026-03-01 12:02:00','2026-03-01 11:59:59.999999999',1,2,3,4,5,6,7,8,9,10,13,11,12,14,17,15,16,18,NULL,19,-20,22,23,24,25,33,34,35,38,39,40,41,true,'2026-03-01 12:03:00.000000000')`)
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_defi_lists ORDER BY list, position",
		`('borrowing_protocols',1,'2026-03-01 12:02:00','aave-v3','','','',[],42,NULL,NULL,NULL,NULL,NULL,NULL,43,44,NULL,'2026-03-01 12:03:00.000000000')`,
		`('lending_protocols',1,'2026-03-01 12:02:00','aave-v3','Aave V3','AAVE','',['Ethereum','Base'],26,27,28,29,30,31,32,NULL,NULL,NULL,'2026-03-01 12:03:00.000000000')`,
		`('lending_protocols',2,'2026-03-01 12:02:00','morpho-v1','','','',[],1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'2026-03-01 12:03:00.000000000')`,
		`('staking_chains',1,'2026-03-01 12:02:00','Ethereum','Ethereum','','ethereum',[],36,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,37,'2026-03-01 12:03:00.000000000')`)
	// A list that became shorter ends earlier; a summary that comes late changes none.
	insert(t, store, defiSummary(3, short), defiSummary(1, late))
	checkRows(t, store, "SELECT concatWithSeparator(' ', list, position, key) FROM default.v_defi_lists ORDER BY list, position",
		"borrowing_protocols 1 aave-v3", "lending_protocols 1 morpho-v1", "staking_chains 1 Ethereum")
	checkRows(t, store, "SELECT concatWithSeparator(' ', time, total_tvl) FROM default.v_defi ORDER BY time", "2026-03-01 12:01:00 99", "2026-03-01 12:02:00 1", "2026-03-01 12:03:00 1")
}

func TestSeriesOfDefiAreOfTheLastKnownValues(t *testing.T) {
	store := newStore(t)
	var records []logged
	for minute := range int64(12) {
		s := &eventsv1.DefiSummary{TotalTvl: 100 + float64(minute%5), LendingRates: &eventsv1.DefiRates{}}
		if apy := float64(minute); minute%5 < 3 {
			s.LendingRates.Weighted = &apy
		}
		records = append(records, defiSummary(minute, s))
	}
	insert(t, store, records...)
	for _, test := range []struct {
		metric   string
		from, to int64
		step     time.Duration
		want     []read.FigurePoint
	}{
		// The end of 12:04 closes the step that began at 12:00.
		{"defi_tvl", 0, 11, 5 * time.Minute, []read.FigurePoint{{Time: at(300), Value: 100}, {Time: at(600), Value: 100}, {Time: at(660), Value: 101}}},
		{"lending_apy", 0, 11, 5 * time.Minute, []read.FigurePoint{{Time: at(300), Value: 5}, {Time: at(600), Value: 10}, {Time: at(660), Value: 11}}},
		{"lending_apy", 2, 4, time.Minute, nil},
		{"staking_apy", 0, 11, time.Minute, nil},
	} {
		got, err := read.From(store).DefiSeries(t.Context(), test.metric, at(test.from*60), at(test.to*60), test.step)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s from %d to %d by %s: want(-), got(+):\n%s", test.metric, test.from, test.to, test.step, diff)
		}
	}
	// Of 12:01 to 12:05 the rates of 12:01, 12:02 and 12:05 are known.
	got, err := read.From(store).DefiOHLC(t.Context(), "lending_apy", at(0), at(300), 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]read.SummaryOHLC{{Start: at(0), Open: 1, High: 5, Low: 1, Close: 5, Average: 8.0 / 3, Samples: 3}}, got); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
	if _, err := read.From(store).DefiOHLC(t.Context(), "time", at(0), at(300), time.Minute); err == nil {
		t.Error("a metric that is none: got no error")
	}
	if _, err := read.From(store).DefiSeries(t.Context(), "total_tvl", at(0), at(300), time.Minute); err == nil {
		t.Error("a metric by its column: got no error")
	}
}

// someDefi is what sources and other folds reported up to a minute, with all that must not count.
func someDefi(r *rand.Rand) (records []logged, in schemas.DefiInputs) {
	categories := []string{"Lending", "Liquid Staking", "Staking Pool", "CEX", "Dexs"}
	chains := []string{"Ethereum", "Solana", "OP Mainnet"}
	offset := int64(0)
	say := func(rec any) {
		offset++
		records = append(records, sourceRecord(offset, rec))
	}
	for i := range 40 {
		p := &eventsv1.Protocol{Source: "defillama", Slug: fmt.Sprintf("p%02d", i), Name: "P", Category: categories[i%len(categories)], IngestTime: noon - int64(2*time.Hour),
			Tvl: fmt.Sprint(1e9 * r.Float64()), Chains: []*eventsv1.ChainAmount{{Chain: chains[i%3], Amount: fmt.Sprint(1e9 * r.Float64())}}}
		switch i % 4 {
		case 0:
			p.Chains = append(p.Chains, &eventsv1.ChainAmount{Chain: "borrowed", Amount: fmt.Sprint(1e8 * r.Float64())}, &eventsv1.ChainAmount{Chain: chains[0] + "-borrowed", Amount: "1e8"})
		case 1:
			p.Chains = append(p.Chains, &eventsv1.ChainAmount{Chain: chains[0] + "-borrowed", Amount: "3e7"}, &eventsv1.ChainAmount{Chain: chains[1] + "-borrowed", Amount: "2e7"}, &eventsv1.ChainAmount{Chain: "pool2", Amount: "77"})
		case 2:
			p.Chains = append(p.Chains, &eventsv1.ChainAmount{Chain: "staking", Amount: "99"}, &eventsv1.ChainAmount{Chain: chains[2], Amount: "-5"})
		}
		switch i {
		case 5:
			p.Tvl = "-7"
		case 6:
			p.Tvl = "1e30"
		case 7:
			p.Source = "another"
		}
		older := &eventsv1.Protocol{Source: p.Source, Slug: p.Slug, Category: "Lending", Tvl: "1", IngestTime: p.IngestTime - 1}
		if i == 8 {
			older.IngestTime, p = noon-int64(9*24*time.Hour), nil // not reported any more
		}
		say(older)
		if p == nil {
			continue
		}
		say(p)
		if counted := schemas.NewDefiProtocol(p); counted != nil && p.Source == "defillama" {
			in.Protocols = append(in.Protocols, counted)
		}
	}
	for i := range 60 {
		tvl := 1e8 * r.Float64()
		e := &eventsv1.RateEntry{
			Source: "s" + fmt.Sprint(i%3), Pool: fmt.Sprint(i), Provider: fmt.Sprintf("p%02d", i%25), Category: []string{"lending", "staking", "borrowing", "vault"}[i%4],
			CoinId: "ethereum", Symbol: "ETH", Chain: chains[i%3], Apr: 1, Apy: 20*r.Float64() - 5, TvlUsd: &tvl, Heard: noon - int64(time.Minute), Time: noon,
			Said: &eventsv1.Rate{Raw: "1", RawUnit: "apy_percent", Interval: int64(10 * time.Minute)},
		}
		late := false
		switch i % 13 {
		case 0:
			e.TvlUsd = nil
		case 1:
			e.Ended = true
		case 2:
			e.Shadowed = "aave"
		case 3:
			e.Unattached, e.CoinId = "coin_unknown", ""
		case 4:
			e.Chain = ""
		case 5:
			e.Heard, late = noon-int64(31*time.Minute), true
		}
		records = append(records, rated(noon, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}}))
		if counted, ok := schemas.NewDefiRate(e); ok && !late {
			in.Rates = append(in.Rates, counted)
		}
	}
	in.ChainCoins, in.Caps = map[string]string{"Ethereum": "ethereum", "Solana": "solana"}, map[string]float64{}
	for chain, coin := range in.ChainCoins {
		say(&eventsv1.ChainTvl{Source: "defillama", Chain: chain, CoinId: "bitcoin", IngestTime: noon - 2})
		say(&eventsv1.ChainTvl{Source: "defillama", Chain: chain, CoinId: coin, IngestTime: noon - 1})
	}
	for _, c := range []struct {
		id         string
		categories []string
	}{{"ethereum", nil}, {"solana", []string{"Memes"}}, {"uniswap", []string{"Memes", "Decentralized Finance (DeFi)"}}, {"chainlink", []string{"DeFi"}}} {
		marketCap := 1e10 * r.Float64()
		in.Caps[c.id] = marketCap
		in.TotalMarketCap += marketCap
		records = append(records, row(0, &eventsv1.Market{CoinId: c.id, Price: 1, PriceSource: "median", MarketCap: &marketCap}))
		say(&eventsv1.Coin{Source: "coingecko", SourceId: c.id, Symbol: c.id, Name: c.id, Part: "detail", Categories: c.categories, IngestTime: noon})
		if schemas.IsDefi(c.categories) {
			in.Coins = append(in.Coins, c.id)
		}
	}
	return append(records, summary(0, &eventsv1.Summary{TotalMarketCap: in.TotalMarketCap})), in
}

// The statements on the page of formulas work out what the fold's functions do.
func TestTheStatementsOfDefiAgreeWithTheFormulas(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	store := newStore(t)
	records, in := someDefi(rand.New(rand.NewPCG(seed, 1)))
	s := schemas.NewDefiSummary(noon, in)
	s.Read = noon - int64(time.Hour)
	insert(t, store, append(records, defiSummary(0, s))...)
	page, err := os.ReadFile("../../docs/formulas.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## DeFi")
	section, _, _ = strings.Cut(section, "\n## ")
	var want [][]string
	figures := func(values ...any) (line []string) {
		for _, v := range values {
			switch v := v.(type) {
			case *float64:
				if v == nil {
					line = append(line, "NULL")
				} else {
					line = append(line, fmt.Sprint(*v))
				}
			default:
				line = append(line, fmt.Sprint(v))
			}
		}
		return line
	}
	lines := func(all ...[]string) { want = append(want, slices.Concat(all...)) }
	lines(figures(s.TotalTvl, s.TotalTvlWithDoubleCount, s.LendingTvl, s.StakingTvl, s.BorrowingTvl, s.CefiTvl, s.DefiToCefiRatio, s.Lending.Borrowed, s.Lending.Utilization,
		s.Staking.Staked, s.Staking.LiquidDominance, s.Borrowing.Collateral, s.Borrowing.CollateralizationRatio))
	var rates, lenders, chains [][]string
	for _, r := range []*eventsv1.DefiRates{s.BorrowingRates, s.LendingRates, s.StakingRates} {
		rates = append(rates, figures(r.Weighted, r.Average, r.Median, r.Count))
	}
	lines(rates...)
	lines(figures(s.DefiMarketCap, s.DefiMarketDominance))
	for _, p := range s.Lending.Protocols {
		lenders = append(lenders, figures(p.Key, p.Value, p.Share, p.Apy))
	}
	lines(lenders...)
	for _, c := range s.Staking.Chains {
		chains = append(chains, figures(c.Key, c.Value, c.CoinId, c.StakingRatio))
	}
	lines(chains...)
	for i, block := range strings.Split(section, "```sql\n")[1:] {
		statement, _, _ := strings.Cut(block, "```")
		statement = strings.NewReplacer("FROM v_", "FROM default.v_", "JOIN v_", "JOIN default.v_").Replace(statement)
		var got []string
		for _, text := range queryStrings(t, store, "SELECT toString(tuple(*)) FROM ("+statement+")") {
			for _, value := range strings.Split(strings.Trim(text, "()"), ",") {
				got = append(got, strings.Trim(value, "'"))
			}
		}
		if i >= len(want) || !slices.EqualFunc(got, want[i], near) {
			t.Errorf("seed %d: statement %d:\n got %q\nwant %q", seed, i+1, got, want[min(i, len(want)-1)])
		}
	}
	if n := strings.Count(section, "```sql"); n != len(want) {
		t.Errorf("the page has %d statements, want %d", n, len(want))
	}
}

// near reports whether two texts are equal, or numbers that differ in their last digits at most.
func near(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return a == b || errX == nil && errY == nil && math.Abs(x-y) <= 1e-9*max(1, math.Abs(x), math.Abs(y))
}
