package history_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

const anHour = int64(time.Hour)

func rated(minute int64, rec *eventsv1.RateRecord) logged {
	rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: minute}
	return logged{rows.Place{Topic: schemas.TopicRates, Offset: minute}, rec}
}

// entry is a rate that was reported in a minute of noon's day.
func entry(minute int64, e *eventsv1.RateEntry) logged {
	e.Time = noon + minute*aMinute
	if e.Heard == 0 {
		e.Heard = e.Time - int64(20*time.Second)
	}
	return rated(e.Time, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}})
}

func rollup(start int64, length time.Duration, r *eventsv1.RateRollup) logged {
	r.Start, r.Interval = start, uint32(length/time.Second)
	return rated(start+int64(length), &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Rollup{Rollup: r}})
}

func pastRate(offset, at int64, rate *eventsv1.Rate) logged {
	rate.Past, rate.EventTime, rate.IngestTime = true, at, noon
	return logged{rows.Place{Topic: schemas.TopicRatesRaw, Offset: offset}, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Rate{Rate: rate}}}
}

func amount(f float64) *float64 { return &f }

func fullEntry() *eventsv1.RateEntry {
	return &eventsv1.RateEntry{
		Provider: "aave-v3", ProviderName: "Aave V3", Source: "aave", Category: schemas.RateBorrowing, CoinId: "usd-coin", Symbol: "USDC", Pool: "core/usdc", ProviderSymbol: "USDC.e",
		Chain: "Ethereum", Name: "Core market", Apr: -0.5, Apy: -0.4987, RewardApy: amount(0.1), TvlUsd: amount(1e9), Term: "flexible",
		Said: &eventsv1.Rate{
			Source: "aave", Project: "aave-v3", Category: schemas.RateBorrowing, Raw: "-0.005", RawUnit: "apr_fraction", Compounding: "secondly", MinAmount: "0.5", MaxAmount: "1000000",
			LockupDays: amount(1.5), NoticeDays: amount(2), Tiers: []*eventsv1.RateTier{{From: "0", To: "100", Raw: "0.01"}, {From: "100", Raw: "0.02"}}, Served: []string{"CH", "DE"},
			Refused: []string{"US"}, Promo: true, Payout: "hourly", CollateralUsd: "2000000000", MaxLtv: "0.75", Tokens: []string{"0xa0b8"}, Interval: int64(5 * time.Minute), EventTime: noon - 1,
		},
		Shadowed: "other", Simulated: true, Offset: 77, Method: 3,
	}
}

// The parts share a store, for each takes seconds to make; each reads coins of its own or comes before what it must not see.
func TestRates(t *testing.T) {
	store := newStore(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *history.Store)
	}{
		{"current rates are the newest rows", currentRatesAreTheNewestRows}, {"the past fills in where nothing was read", thePastFillsInWhereNothingWasRead},
		{"answers are read once", answersAreReadOnce}, {"series are means by TVL", seriesAreMeansByTVL},
		{"single answers and the past are one series", answersAndThePastAreOneSeries},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, store) })
	}
}

func currentRatesAreTheNewestRows(t *testing.T, store *history.Store) {
	full := fullEntry()
	reported := &eventsv1.Rate{Raw: "1", RawUnit: "apy_percent", Interval: anHour}
	insert(t, store,
		entry(2, full),
		entry(1, &eventsv1.RateEntry{Source: "aave", Category: schemas.RateBorrowing, Pool: "core/usdc", CoinId: "tether", Apy: 99, Said: reported}), // came late
		entry(1, &eventsv1.RateEntry{Source: "lido", Category: schemas.RateStaking, Pool: "steth", CoinId: "ethereum", Symbol: "ETH", Apy: 3, Said: reported}),
		entry(2, &eventsv1.RateEntry{Source: "lido", Category: schemas.RateStaking, Pool: "steth", CoinId: "ethereum", Symbol: "ETH", Apy: 3, Said: reported, Ended: true}),
		entry(2, &eventsv1.RateEntry{Source: "lido", Pool: "x", Symbol: "X", Apy: 3, Said: reported, Unattached: string(schemas.RateCoinUnknown)}),
	)
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_rates ORDER BY key",
		`('aave|borrowing|core/usdc','aave-v3','Aave V3','aave','borrowing','usd-coin','USDC','core/usdc','USDC.e','Ethereum','Core market','',-0.5,-0.4987,3,0.1,'-0.005','apr_fraction','secondly',1000000000,2000000000,0.75,'flexible',0.5,1000000,1.5,2,true,'other',false,'2026-03-01 12:01:40.000000000','2026-03-01 11:59:59.999999999',300,'2026-03-01 12:02:00',true,77,'2026-03-01 12:03:00.000000000')`,
		`('lido|staking|steth','','','lido','staking','ethereum','ETH','steth','','','','',0,3,1,NULL,'1','apy_percent','',NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,false,'',true,'2026-03-01 12:01:40.000000000','2026-03-01 12:01:40.000000000',3600,'2026-03-01 12:02:00',false,0,'2026-03-01 12:03:00.000000000')`,
		`('lido||x','','','lido','','','X','x','','','','coin_unknown',0,3,1,NULL,'1','apy_percent','',NULL,NULL,NULL,'',NULL,NULL,NULL,NULL,false,'',false,'2026-03-01 12:01:40.000000000','2026-03-01 12:01:40.000000000',3600,'2026-03-01 12:02:00',false,0,'2026-03-01 12:03:00.000000000')`)
}

var symbols = map[string]string{"usd-coin": "USDC", "dai": "DAI"}

// lent is a row of what lending a coin earns.
func lent(coin, provider, pool string, apy float64, tvl *float64) *eventsv1.RateEntry {
	return &eventsv1.RateEntry{
		Provider: provider, Source: provider, Category: schemas.RateLending, CoinId: coin, Symbol: symbols[coin], Pool: pool, Apr: apy, Apy: apy, TvlUsd: tvl,
		Said: &eventsv1.Rate{Raw: "1", RawUnit: "apy_percent", Interval: int64(20 * time.Minute)},
	}
}

func answersAreReadOnce(t *testing.T, store *history.Store) {
	again := lent("usd-coin", "aave-v3", "a", 4, nil)
	again.Heard = noon + aMinute - int64(20*time.Second)
	ended := lent("usd-coin", "aave-v3", "a", 5, nil)
	ended.Heard, ended.Ended = noon+30*aMinute-int64(20*time.Second), true
	shadowed := lent("usd-coin", "aave-v3", "b", 9, nil)
	shadowed.Shadowed = "aave"
	unknown := lent("usd-coin", "aave-v3", "c", 9, nil)
	unknown.CoinId = ""
	borrowed := lent("usd-coin", "aave-v3", "a", 7, nil)
	borrowed.Category = schemas.RateBorrowing
	insert(t, store, entry(1, lent("usd-coin", "aave-v3", "a", 4, amount(10))), entry(61, again), entry(30, lent("usd-coin", "aave-v3", "a", 5, nil)), entry(91, ended),
		entry(2, shadowed), entry(2, unknown), entry(2, borrowed), entry(3, lent("usd-coin", "compound-v3", "a", 6, nil)))
	base := read.RateQuery{CoinIDs: []string{"usd-coin"}, Categories: []string{schemas.RateLending}, From: at(0), To: at(7200), Limit: 10}
	apysOf := func(change func(*read.RateQuery)) (apys []float64) {
		t.Helper()
		q := base
		change(&q)
		points, err := read.From(store).RateHistory(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			if p.APR == nil || *p.APR != p.Close || p.N != 1 || p.Origin != schemas.OriginLive {
				t.Errorf("got %+v, want a single answer", p)
			}
			apys = append(apys, p.Close)
		}
		return apys
	}
	for _, c := range []struct {
		what   string
		change func(*read.RateQuery)
		want   []float64
	}{
		{"all, the newest first", func(*read.RateQuery) {}, []float64{5, 6, 4}},
		{"the newest two", func(q *read.RateQuery) { q.Limit = 2 }, []float64{5, 6}},
		{"before an answer", func(q *read.RateQuery) { q.To = at(30*60 - 20) }, []float64{6, 4}},
		{"from an answer on", func(q *read.RateQuery) { q.From = at(30*60 - 20) }, []float64{5}},
		{"of a provider", func(q *read.RateQuery) { q.Providers = []string{"compound-v3", "none"} }, []float64{6}},
		{"of another category", func(q *read.RateQuery) { q.Categories = []string{schemas.RateBorrowing} }, []float64{7}},
		{"of every category", func(q *read.RateQuery) { q.Categories = nil }, []float64{5, 6, 7, 4}},
		{"of no coin", func(q *read.RateQuery) { q.CoinIDs = []string{} }, nil},
	} {
		if diff := cmp.Diff(c.want, apysOf(c.change)); diff != "" {
			t.Errorf("%s: want(-), got(+):\n%s", c.what, diff)
		}
	}
	since, err := read.From(store).RatesSince(t.Context(), base)
	if want := at(40); err != nil || !since.Equal(want) {
		t.Errorf("got rates since %s, %v, want %s", since, err, want)
	}
}

func thePastFillsInWhereNothingWasRead(t *testing.T, store *history.Store) {
	midnight := noon - 12*anHour
	roll := func(start int64, length time.Duration, mean float64) logged {
		return rollup(start, length, &eventsv1.RateRollup{
			Provider: "lido", Source: "defillama-yields", Category: schemas.RateStaking, CoinId: "ethereum", Symbol: "ETH", Pool: "p", ProviderSymbol: "STETH", Chain: "Ethereum",
			Open: 1, High: 4, Low: -1, Close: 3, Mean: mean, N: 24, TvlUsd: amount(5), Simulated: true,
		})
	}
	// What the source reports afterwards names the pool alone: the rest is that of the rate as it is now.
	afterwards := func(offset, at int64, raw string) logged {
		return pastRate(offset, at, &eventsv1.Rate{Source: "defillama-yields", Project: "defillama", Pool: "p", Raw: raw, RawUnit: "apy_percent", TvlUsd: "60"})
	}
	now := &eventsv1.RateEntry{Provider: "lido", Source: "defillama-yields", Category: schemas.RateStaking, CoinId: "ethereum", Symbol: "ETH", Pool: "p", ProviderSymbol: "STETH", Chain: "Ethereum",
		Apy: 3, Simulated: true, Said: &eventsv1.Rate{Interval: anHour}}
	borrowed := &eventsv1.RateEntry{Provider: "lido", Source: "defillama-yields", Category: schemas.RateBorrowing, CoinId: "solana", Pool: "p", Said: &eventsv1.Rate{Interval: anHour}}
	const day = 24 * anHour
	insert(t, store, entry(0, borrowed), entry(0, now), roll(midnight, 24*time.Hour, 2), roll(midnight, time.Hour, 2.5),
		afterwards(1, midnight-2*day+anHour, "7"), afterwards(2, midnight-2*day+2*anHour, "5"), afterwards(3, midnight+anHour, "99"), afterwards(4, midnight-2*day+2*anHour, "6"), afterwards(5, midnight-day, "-3"),
		pastRate(6, midnight-day, &eventsv1.Rate{Source: "bitfinex-funding", Project: "bitfinex", Pool: "fUSD", Symbol: "UST", CoinId: "tether", Category: schemas.RateLending, Raw: "0.001",
			RawUnit: "apr_fraction_daily", Compounding: "none"}))
	checkRows(t, store, "SELECT toString(tuple(*)) FROM default.v_rates_daily ORDER BY start, key",
		`('defillama-yields|staking|p','2026-02-27 00:00:00','lido','defillama-yields','staking','ethereum','ETH','p','STETH','Ethereum',7,7,6,6,6.5,2,60,'','backfill',true,'2026-03-01 12:00:00.000000000')`,
		`('bitfinex-funding|lending|fUSD','2026-02-28 00:00:00','bitfinex','bitfinex-funding','lending','tether','USDT','fUSD','UST','',36.5,36.5,36.5,36.5,36.5,1,NULL,'','backfill',false,'2026-03-01 12:00:00.000000000')`,
		`('defillama-yields|staking|p','2026-02-28 00:00:00','lido','defillama-yields','staking','ethereum','ETH','p','STETH','Ethereum',-3,-3,-3,-3,-3,1,60,'','backfill',true,'2026-03-01 12:00:00.000000000')`,
		`('defillama-yields|staking|p','2026-03-01 00:00:00','lido','defillama-yields','staking','ethereum','ETH','p','STETH','Ethereum',1,4,-1,3,2,24,5,'','live',true,'2026-03-02 00:01:00.000000000')`)
	checkRows(t, store, "SELECT concatWithSeparator(' ', start, mean, n, origin) FROM default.v_rates_hourly WHERE source = 'defillama-yields' ORDER BY start",
		"2026-02-27 01:00:00 7 1 backfill", "2026-02-27 02:00:00 6 1 backfill", "2026-02-28 00:00:00 -3 1 backfill", "2026-03-01 00:00:00 2.5 24 live", "2026-03-01 01:00:00 99 1 backfill")
	q := read.RateQuery{CoinIDs: []string{"ethereum"}, From: at(-3 * 86400), To: at(86400), Step: 24 * time.Hour, Limit: 2}
	got, err := read.From(store).RateHistory(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := []read.RatePoint{
		{Provider: "lido", Source: "defillama-yields", Category: schemas.RateStaking, CoinID: "ethereum", Symbol: "ETH", Pool: "p", ProviderSymbol: "STETH", Chain: "Ethereum",
			Start: time.Unix(0, midnight).UTC(), Open: 1, High: 4, Low: -1, Close: 3, Mean: 2, N: 24, TVL: amount(5), Simulated: true, Origin: schemas.OriginLive},
		{Provider: "lido", Source: "defillama-yields", Category: schemas.RateStaking, CoinID: "ethereum", Symbol: "ETH", Pool: "p", ProviderSymbol: "STETH", Chain: "Ethereum",
			Start: time.Unix(0, midnight-day).UTC(), Open: -3, High: -3, Low: -3, Close: -3, Mean: -3, N: 1, TVL: amount(60), Simulated: true, Origin: schemas.OriginBackfill},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
	if since, err := read.From(store).RatesSince(t.Context(), q); err != nil || !since.Equal(time.Unix(0, midnight-2*day)) {
		t.Errorf("got since %s, %v, want two days before", since, err)
	}
	if _, err := read.From(store).RateHistory(t.Context(), read.RateQuery{Step: time.Minute}); err == nil {
		t.Error("steps of a minute: got no error")
	}
}

func seriesAreMeansByTVL(t *testing.T, store *history.Store) {
	roll := func(provider, pool string, start int64, by float64, tvl *float64) logged {
		return rollup(start, time.Hour, &eventsv1.RateRollup{Provider: provider, Source: provider, Category: schemas.RateLending, CoinId: "dai", Symbol: "DAI", Pool: pool,
			Open: 1 * by, High: 4 * by, Low: 0, Close: 2 * by, Mean: 3 * by, N: 1, TvlUsd: tvl})
	}
	insert(t, store, roll("aave-v3", "a", noon, 1, amount(30)), roll("aave-v3", "b", noon, 5, amount(10)), roll("aave-v3", "c", noon, 100, nil),
		roll("aave-v3", "a", noon+anHour, 1, amount(30)), roll("okx", "x", noon, 1, nil), roll("okx", "y", noon, 2, nil),
		entry(0, lent("dai", "aave-v3", "a", 2, amount(30))), entry(0, lent("dai", "aave-v3", "b", 6, amount(10))), entry(12, lent("dai", "aave-v3", "a", 4, amount(30))), entry(1, lent("dai", "okx", "x", 1, nil)))
	q := read.RateQuery{CoinIDs: []string{"dai"}, Categories: []string{schemas.RateLending}, From: at(0), To: at(7200), Step: time.Hour, Limit: 10}
	got, err := read.From(store).RateSeries(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := []read.RateSeries{
		{Provider: "aave-v3", CoinID: "dai", Symbol: "DAI", Category: schemas.RateLending, Points: []read.RateSeriesPoint{
			{Start: at(0), Open: 2, High: 8, Close: 4, Mean: 6, TVL: amount(40), Rates: 3}, {Start: at(3600), Open: 1, High: 4, Close: 2, Mean: 3, TVL: amount(30), Rates: 1}}},
		{Provider: "okx", CoinID: "dai", Symbol: "DAI", Category: schemas.RateLending, Points: []read.RateSeriesPoint{{Start: at(0), Open: 1.5, High: 6, Close: 3, Mean: 4.5, Rates: 2}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hours: want(-), got(+):\n%s", diff)
	}
	q.Limit = 1
	if got, err := read.From(store).RateSeries(t.Context(), q); err != nil || len(got) != 2 || len(got[0].Points) != 1 || !got[0].Points[0].Start.Equal(at(3600)) {
		t.Errorf("one point: got %+v, %v, want the newest of each series", got, err)
	}

	// At the end of each quarter of an hour what holds then counts: a rate for an hour after it was reported.
	q.Step, q.Limit, q.To = 15*time.Minute, 100, at(5*3600)
	got, err = read.From(store).RateSeries(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	point := func(minute int64, mean float64, tvl *float64, rates int) read.RateSeriesPoint {
		return read.RateSeriesPoint{Start: at(minute * 60), Open: mean, High: mean, Low: mean, Close: mean, Mean: mean, TVL: tvl, Rates: rates}
	}
	want[0].Points = []read.RateSeriesPoint{point(0, 4.5, amount(40), 2), point(15, 4.5, amount(40), 2), point(30, 4.5, amount(40), 2), point(45, 4, amount(30), 1)}
	want[1].Points = []read.RateSeriesPoint{point(0, 1, nil, 1), point(15, 1, nil, 1), point(30, 1, nil, 1), point(45, 1, nil, 1)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("quarters of an hour: want(-), got(+):\n%s", diff)
	}
}

// What a source reports afterwards is read at every span, also where single answers are kept; of two spans that end alike the
// shorter one holds the newest rows of the longer one, wherever it begins.
func answersAndThePastAreOneSeries(t *testing.T, store *history.Store) {
	random := rand.New(rand.NewPCG(7, 11))
	const days = 29
	begins := noon - days*24*anHour
	pools := []string{"a", "b", "c"}
	var all []logged
	offset, live, afterwards := int64(100), 0, 0
	reported := &eventsv1.Rate{Raw: "1", RawUnit: "apy_percent", Interval: anHour}
	hours := map[[2]int64]bool{} // of pool and hour: read live
	type pastHour struct {
		pool int64
		at   int64
	}
	var past []pastHour
	for pool, name := range pools {
		for at := begins; at < noon; at += (1 + random.Int64N(72)) * 20 * aMinute {
			receivedAt := at + random.Int64N(19*aMinute)
			e := &eventsv1.RateEntry{Provider: "lido", Source: "lido", Category: schemas.RateStaking, CoinId: "bitcoin", Symbol: "BTC", Pool: name, Apr: 1, Apy: 1, Said: reported,
				Time: receivedAt/aMinute*aMinute + aMinute, Heard: receivedAt}
			all = append(all, rated(e.Time, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}}))
			hours[[2]int64{int64(pool), receivedAt / anHour}] = true
			live++
		}
		for at := begins; at < noon; at += (1 + random.Int64N(48)) * 30 * aMinute {
			offset++
			all = append(all, pastRate(offset, at, &eventsv1.Rate{Source: "lido", Project: "lido", Pool: name, Category: schemas.RateStaking, CoinId: "bitcoin", Symbol: "BTC",
				Raw: "2", RawUnit: "apr_percent", Compounding: "none"}))
			past = append(past, pastHour{int64(pool), at})
		}
	}
	for _, p := range past {
		if !hours[[2]int64{p.pool, p.at / anHour}] {
			afterwards++
		}
	}
	insert(t, store, all...)
	pointsOf := func(from int64, step time.Duration) []read.RatePoint {
		t.Helper()
		points, err := read.From(store).RateHistory(t.Context(), read.RateQuery{CoinIDs: []string{"bitcoin"}, From: time.Unix(0, from), To: time.Unix(0, noon), Step: step, Limit: 5000})
		if err != nil {
			t.Fatal(err)
		}
		return points
	}
	for _, step := range []time.Duration{0, time.Hour, 24 * time.Hour} {
		longest := pointsOf(begins, step)
		for range 12 {
			span := random.Int64N(days * 24 * anHour)
			if shorter := pointsOf(noon-span, step); !reflect.DeepEqual(longest[:len(shorter)], shorter) || len(shorter) < len(longest) && !longest[len(shorter)].Start.Before(time.Unix(0, noon-span)) {
				t.Errorf("step %s, span %s: the %d rows are not the newest of the %d of the longest span", step, time.Duration(span), len(shorter), len(longest))
			}
		}
		if step > 0 {
			continue
		}
		counted := map[schemas.Origin]int{}
		for _, p := range longest {
			counted[p.Origin]++
			if p.APR == nil || p.N != 1 {
				t.Errorf("got %+v, want a single answer", p)
			}
		}
		if counted[schemas.OriginLive] != live || counted[schemas.OriginBackfill] != afterwards {
			t.Errorf("got %v, want %d live and %d reported afterwards in hours without", counted, live, afterwards)
		}
	}
	since, err := read.From(store).RatesSince(t.Context(), read.RateQuery{CoinIDs: []string{"bitcoin"}})
	if err != nil || !since.Equal(time.Unix(0, begins)) {
		t.Errorf("got since %s, %v, want the oldest that was reported afterwards, %s", since, err, time.Unix(0, begins))
	}
}
