package history_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

// sourceRecord is a record of a source, as it is in the log.
func sourceRecord(offset int64, body any) logged {
	rec := &eventsv1.ReferenceRecord{Producer: "sources"}
	switch b := body.(type) {
	case *eventsv1.Coin:
		rec.Body = &eventsv1.ReferenceRecord_Coin{Coin: b}
	case *eventsv1.CoinMarket:
		rec.Body = &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: b}
	case *eventsv1.Stablecoin:
		rec.Body = &eventsv1.ReferenceRecord_Stablecoin{Stablecoin: b}
	case *eventsv1.Protocol:
		rec.Body = &eventsv1.ReferenceRecord_Protocol{Protocol: b}
	case *eventsv1.ChainTvl:
		rec.Body = &eventsv1.ReferenceRecord_ChainTvl{ChainTvl: b}
	case *eventsv1.FearGreed:
		rec.Body = &eventsv1.ReferenceRecord_FearGreed{FearGreed: b}
	case *eventsv1.GlobalFigures:
		rec.Body = &eventsv1.ReferenceRecord_Global{Global: b}
	case *eventsv1.CoinPast:
		rec.Body = &eventsv1.ReferenceRecord_CoinPast{CoinPast: b}
	case *eventsv1.DefiPast:
		rec.Body = &eventsv1.ReferenceRecord_DefiPast{DefiPast: b}
	case *eventsv1.Fetch:
		rec.Body = &eventsv1.ReferenceRecord_Fetch{Fetch: b}
	case *eventsv1.SourceNotice:
		rec.Body = &eventsv1.ReferenceRecord_Notice{Notice: b}
	case *eventsv1.Listing:
		rec.Body = &eventsv1.ReferenceRecord_Listing{Listing: b}
	case *eventsv1.SymbolOverride:
		rec.Body = &eventsv1.ReferenceRecord_Override{Override: b}
	case *eventsv1.Fixing:
		rec.Body = &eventsv1.ReferenceRecord_Fixing{Fixing: b}
	}
	return logged{rows.Place{Topic: schemas.TopicReferenceRaw, Offset: offset}, rec}
}

func checkRows(t *testing.T, store *history.Store, query string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, queryStrings(t, store, query)); diff != "" {
		t.Errorf("%s: want(-), got(+):\n%s", query, diff)
	}
}

func TestRecordsOfSourcesAreReadBackUnchanged(t *testing.T) {
	store := newStore(t)
	insert(t, store,
		sourceRecord(1, &eventsv1.Coin{
			Source: "coinpaprika", SourceId: "btc-bitcoin", Part: "detail", Symbol: "BTC", Name: "Bitcoin", Rank: 1, Categories: []string{"Layer 1", "Proof of Work"},
			Platforms: []*eventsv1.Platform{{Name: "ethereum", Address: "0x1"}, {Name: "solana", Address: "So1"}}, Description: "Digital 'money'\n", ImageUrl: "https://i/btc",
			Links: []*eventsv1.Link{{Kind: "homepage", Url: "https://b"}}, Developer: []*eventsv1.Statistic{{Name: "stars", Value: 7.5}, {Name: "forks", Value: 2}},
			CreatedAt: "2009-01-03", Kind: "coin", Inactive: true, EventTime: noon + 1, IngestTime: noon + 2,
		}),
		sourceRecord(2, &eventsv1.Coin{Source: "coingecko", SourceId: "no-such-coin", Part: "list", IngestTime: noon}),
		sourceRecord(3, &eventsv1.CoinMarket{
			Source: "coingecko", SourceId: "bitcoin", Symbol: "btc", Name: "Bitcoin", Rank: 1, Price: "60000.25", MarketCap: "1200000000000.5", FullyDilutedValuation: "1.26e12",
			Volume24H: "3", High24H: "4", Low24H: "5", CirculatingSupply: "6", TotalSupply: "7", MaxSupply: "", Change1H: "-0.1", Change24H: "0.2", Change7D: "0.3", Change14D: "0.4",
			Change30D: "0.5", Change60D: "0.6", Change200D: "0.7", Change1Y: "no number", Ath: "8", AthTime: noon - 1, Atl: "1e400", AtlTime: 0, ImageUrl: "https://i", EventTime: noon, IngestTime: noon + 3,
		}),
		sourceRecord(4, &eventsv1.Stablecoin{
			Source: "defillama", SourceId: "1", Symbol: "USDT", Name: "Tether", CoinId: "tether", PegType: "peggedUSD", PegMechanism: "fiat-backed", Price: "1.0001", Circulating: "100000000000.5",
			Chains: []*eventsv1.ChainAmount{{Chain: "Ethereum", Amount: "60.5"}, {Chain: "Tron", Amount: ""}}, Dead: true, EventTime: noon, IngestTime: noon + 4,
		}),
		sourceRecord(5, &eventsv1.Protocol{
			Source: "defillama", Slug: "aave", Name: "Aave", Symbol: "AAVE", Category: "Lending", CoinId: "aave", Tvl: "1.5", Chains: []*eventsv1.ChainAmount{{Chain: "Ethereum-borrowed", Amount: "2"}},
			Change1D: "-1", MarketCap: "9", EventTime: noon, IngestTime: noon + 5,
		}),
		sourceRecord(6, &eventsv1.ChainTvl{Source: "defillama", Chain: "Ethereum", CoinId: "ethereum", Symbol: "ETH", Tvl: "2.5", IngestTime: noon + 6}),
		sourceRecord(7, &eventsv1.FearGreed{Source: "alternative-me", Value: 54, Classification: "Neutral", EventTime: noon, NextUpdate: noon + 8, IngestTime: noon + 7}),
		sourceRecord(8, &eventsv1.GlobalFigures{Source: "coingecko", TotalMarketCap: "2e12", TotalVolume24H: "1e11", BtcDominance: "55.5", ActiveCoins: 17000, ActiveMarkets: 9, EventTime: noon, IngestTime: noon + 8}),
		sourceRecord(9, &eventsv1.Fetch{Source: "coingecko", Url: "https://c/list", Status: 429, Error: "refused", Started: noon, Duration: 5, Rows: 6, Feed: "list", Told: 1<<63 + 7}),
		sourceRecord(10, &eventsv1.SourceNotice{
			Source: "coingecko", Name: "CoinGecko", Kinds: []string{"coin", "market"}, Url: "https://c", License: "theirs", Terms: "https://t", Attribution: "by them",
			Interval: 60e9, Moves: 120e9, Enabled: true, Simulated: true, IngestTime: noon + 10,
		}),
		sourceRecord(11, &eventsv1.SymbolOverride{Source: "kraken", Symbol: "XBT", CoinId: "bitcoin", Reason: "it is", Time: noon}),
		sourceRecord(12, &eventsv1.Fixing{Source: "er-api", Base: "USD", Quote: "CHF", Rate: "0.91", Date: "2026-03-01", EventTime: noon, IngestTime: noon + 12, Providers: []string{"a", "b"}}),
		sourceRecord(16, &eventsv1.CoinPast{Source: "coingecko", SourceId: "bitcoin", Day: noon - 12*3600e9, IngestTime: noon + 16, Points: []*eventsv1.CoinPastPoint{
			{Time: noon - 1, MarketCap: "2e12", Volume24H: "3.5"}, {Time: noon, MarketCap: "", Volume24H: "no number"}}}),
		sourceRecord(17, &eventsv1.DefiPast{Source: "defillama", TotalTvl: "1.2e11", EventTime: noon - 1, IngestTime: noon + 17}),
		// No day, and no number, convert nothing.
		sourceRecord(13, &eventsv1.Fixing{Source: "er-api", Base: "USD", Quote: "CHF", Rate: "0.91", Date: "yesterday"}),
		sourceRecord(14, &eventsv1.Fixing{Source: "er-api", Base: "USD", Quote: "CHF", Rate: "0.000", Date: "2026-03-01"}),
		sourceRecord(15, &eventsv1.Fixing{Source: "er-api", Base: "USD", Quote: "CHF", Rate: "", Date: "2026-03-01"}),
	)
	for table, want := range map[string][]string{
		"coins": {
			`('coingecko','no-such-coin','list','no-such-coin','','',0,'',[],[],[],'','',[],[],[],[],'',false,'1970-01-01 00:00:00.000000000','2026-03-01 12:00:00.000000000',0,2,2)`,
			`('coinpaprika','btc-bitcoin','detail','bitcoin','BTC','Bitcoin',1,'coin',['Layer 1','Proof of Work'],['ethereum','solana'],['0x1','So1'],'Digital \'money\'\n','https://i/btc',['homepage'],['https://b'],['stars','forks'],[7.5,2],'2009-01-03',true,'2026-03-01 12:00:00.000000001','2026-03-01 12:00:00.000000002',0,1,1)`,
		},
		"coin_markets": {`('coingecko','bitcoin','bitcoin','btc','Bitcoin',1,60000.25,1200000000000.5,1260000000000,3,4,5,6,7,NULL,-0.1,0.2,0.3,0.4,0.5,0.6,0.7,NULL,8,'2026-03-01 11:59:59.999999999',NULL,'1970-01-01 00:00:00.000000000','https://i','2026-03-01 12:00:00.000000000','2026-03-01 12:00:00.000000003',0,3,3)`},
		"stablecoins":  {`('defillama','1','2026-03-01 12:00:00.000000004','tether','USDT','Tether','peggedUSD','fiat-backed',1.0001,100000000000.5,['Ethereum','Tron'],[60.5,0],true,'2026-03-01 12:00:00.000000000',0,4,4)`},
		"protocols":    {`('defillama','aave','2026-03-01 12:00:00.000000005','aave','Aave','AAVE','Lending',1.5,['Ethereum-borrowed'],[2],-1,NULL,9,'2026-03-01 12:00:00.000000000',0,5,5)`},
		"chain_tvl":    {`('defillama','Ethereum','2026-03-01 12:00:00.000000006','ethereum','ETH',2.5,0,6,6)`},
		"fear_greed":   {`('alternative-me','2026-03-01',54,'Neutral','2026-03-01 12:00:00.000000000','2026-03-01 12:00:00.000000008','2026-03-01 12:00:00.000000007',0,7,7)`},
		"global_figures": {
			`('coingecko','2026-03-01 12:00:00.000000008',2000000000000,100000000000,55.5,NULL,17000,9,'2026-03-01 12:00:00.000000000',0,8,8)`,
		},
		"coin_past": {
			`('coingecko','bitcoin','2026-03-01 11:59:59.999999999','bitcoin',2000000000000,3.5,'2026-03-01 12:00:00.000000016',0,16,16)`,
			`('coingecko','bitcoin','2026-03-01 12:00:00.000000000','bitcoin',NULL,NULL,'2026-03-01 12:00:00.000000016',0,16,16)`,
		},
		"defi_past":  {`('defillama','2026-03-01 11:59:59.999999999',120000000000,'2026-03-01 12:00:00.000000017',0,17,17)`},
		"fetches":    {`('coingecko','2026-03-01 12:00:00.000000000','list','https://c/list',429,'refused',5,6,9223372036854775815,0,9,9)`},
		"sources":    {`('coingecko','CoinGecko',['coin','market'],'https://c','theirs','https://t','by them',60000000000,true,true,'2026-03-01 12:00:00.000000010',120000000000,0,10,10)`},
		"overrides":  {`('kraken','XBT','2026-03-01 12:00:00.000000000','bitcoin','it is',0,11,11)`},
		"fiat_rates": {`('er-api','USD','CHF','2026-03-01','2026-03-01 12:00:00.000000000',0.91,'2026-03-01 12:00:00.000000012',['a','b'],0,12,12)`},
		"fixings":    {`('USD','CHF','2026-03-01',0.91,'er-api','2026-03-01 12:00:00.000000012','2026-03-01 12:00:00.000000000',['a','b'],0,12,12)`},
	} {
		checkRows(t, store, "SELECT toString(tuple(*)) FROM "+table+" FINAL ORDER BY tuple(*)", want...)
	}
	checkRows(t, store, "SELECT concat(source_id, ' ', categories[2], ' ', toString(developer.value)) FROM coin_events FINAL WHERE source = 'coinpaprika'", "btc-bitcoin Proof of Work [7.5,2]")
}

func TestAnEventOfACoinIsAChange(t *testing.T) {
	store := newStore(t)
	listed := func(offset int64, change func(*eventsv1.Coin)) logged {
		c := &eventsv1.Coin{Source: "coingecko", SourceId: "bitcoin", Part: "list", Symbol: "btc", Name: "Bitcoin", Rank: 1, IngestTime: noon + offset*1e9}
		change(c)
		return sourceRecord(offset, c)
	}
	insert(t, store,
		listed(1, func(*eventsv1.Coin) {}),
		listed(2, func(*eventsv1.Coin) {}),               // reported again after a week
		listed(3, func(c *eventsv1.Coin) { c.Rank = 2 }), // ranks change all the time
		listed(4, func(c *eventsv1.Coin) { c.Name = "bitcoin" }),
		listed(5, func(c *eventsv1.Coin) { c.Name, c.Symbol, c.Inactive = "bitcoin", "xbt", true }),
		listed(6, func(c *eventsv1.Coin) { c.Part, c.Name = "detail", "Bitcoin" }), // another part says nothing of this one
		listed(7, func(c *eventsv1.Coin) { c.SourceId, c.Name = "ethereum", "Ethereum" }),
	)
	got, err := read.From(store).CoinEvents(t.Context(), "bitcoin", 10)
	if err != nil {
		t.Fatal(err)
	}
	event := func(offset int64, part, symbol, name string, inactive bool, changed ...string) read.CoinEvent {
		if changed == nil {
			changed = []string{}
		}
		return read.CoinEvent{Source: "coingecko", SourceID: "bitcoin", Part: part, Time: at(offset), Changed: changed, Symbol: symbol, Name: name, Rank: 1, Inactive: inactive}
	}
	want := []read.CoinEvent{
		event(6, "detail", "btc", "Bitcoin", false), event(5, "list", "xbt", "bitcoin", true, "symbol", "inactive"), event(4, "list", "btc", "bitcoin", false, "name"),
		event(1, "list", "btc", "Bitcoin", false),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want(-), got(+):\n%s", diff)
	}
	if newest, err := read.From(store).CoinEvents(t.Context(), "bitcoin", 2); err != nil || cmp.Diff(want[:2], newest) != "" {
		t.Errorf("the newest two: got %v, %v, want %v", newest, err, want[:2])
	}
	checkRows(t, store, "SELECT toString((coin_id, part, arrayStringConcat(changed, ' '))) FROM default.v_coin_events ORDER BY time",
		"('bitcoin','list','')", "('bitcoin','list','name')", "('bitcoin','list','symbol inactive')", "('bitcoin','detail','')", "('ethereum','list','')")
	insert(t, store, candle(1, &eventsv1.Candle{CoinId: "bitcoin", Start: noon}), candle(2, &eventsv1.Candle{CoinId: "dash", Start: noon + 60e9}))
	first, err := read.From(store).FirstPriced(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]time.Time{"bitcoin": at(0), "dash": at(60)}, first); diff != "" {
		t.Errorf("first priced: want(-), got(+):\n%s", diff)
	}
}

// at is so many seconds after noon.
func at(seconds int64) time.Time { return time.Unix(0, noon+seconds*int64(time.Second)).UTC() }

// someSourceRecords are a record for each table of what sources report and of the markets fold, with keys that come again.
func someSourceRecords(offset int64, coin string, at int64, random *rand.Rand) []logged {
	number, minute := fmt.Sprint(random.IntN(1000)), at-at%int64(time.Minute)
	again := at - at%int64(10*time.Minute) // several of one key
	value := random.Float64()
	return []logged{
		defiAt(minute, &eventsv1.DefiSummary{TotalTvl: value, Lending: &eventsv1.DefiLending{Protocols: []*eventsv1.DefiRow{{Key: coin, Value: value, Chains: []string{number}}}}}),
		earnVariant(&eventsv1.EarnVariant{ProductId: coin, VariantId: "a", Apy: value, Tiers: []*eventsv1.EarnTier{{From: number}}, Served: []string{number}, Time: minute}),
		earnChange(&eventsv1.EarnChange{ProductId: coin, Field: "cap", After: number, Time: minute}),
		earnFixing(&eventsv1.EarnFixing{Date: "2026-03-01", Segment: coin, Median: value, Quotes: []*eventsv1.EarnQuote{{Provider: number}}, Time: minute}),
		correction(offset, &eventsv1.EarnFixing{Date: "2026-03-01", Segment: coin, Revision: 1, Median: value, Time: minute}),
		sourceRecord(offset, &eventsv1.Coin{Source: "coingecko", SourceId: coin, Part: "list", Name: number, Categories: []string{number, "a"}, IngestTime: again}),
		sourceRecord(offset, &eventsv1.CoinMarket{Source: "coingecko", SourceId: coin, Price: number, IngestTime: again}),
		sourceRecord(offset, &eventsv1.Stablecoin{Source: "defillama", SourceId: coin, Chains: []*eventsv1.ChainAmount{{Chain: number, Amount: number}}, IngestTime: again}),
		sourceRecord(offset, &eventsv1.Protocol{Source: "defillama", Slug: coin, Tvl: number, IngestTime: again}),
		sourceRecord(offset, &eventsv1.ChainTvl{Source: "defillama", Chain: coin, Tvl: number, IngestTime: again}),
		sourceRecord(offset, &eventsv1.FearGreed{Source: coin, Value: uint32(random.IntN(101)), EventTime: again}),
		sourceRecord(offset, &eventsv1.GlobalFigures{Source: coin, TotalMarketCap: number, IngestTime: again}),
		sourceRecord(offset, &eventsv1.CoinPast{Source: coin, SourceId: number, Day: again, Points: []*eventsv1.CoinPastPoint{{Time: again, MarketCap: number, Volume24H: number}}}),
		sourceRecord(offset, &eventsv1.DefiPast{Source: coin, TotalTvl: number, EventTime: again}),
		sourceRecord(offset, &eventsv1.Fetch{Source: coin, Started: again, Error: number}),
		sourceRecord(offset, &eventsv1.SourceNotice{Source: coin, Name: number, Kinds: []string{number}}),
		sourceRecord(offset, &eventsv1.Listing{Venue: "okx", Symbol: coin, Base: number, IngestTime: again}),
		sourceRecord(offset, &eventsv1.SymbolOverride{Source: "kraken", Symbol: coin, CoinId: number, Time: again}),
		sourceRecord(offset, &eventsv1.Fixing{Source: "er-api", Base: "USD", Quote: "CHF", Rate: "0." + number + "1", Date: "2026-03-01", EventTime: again}),
		rated(minute, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: &eventsv1.RateEntry{CoinId: coin, Source: "lido", Pool: number, Apy: value, Heard: again, Time: minute,
			Said: &eventsv1.Rate{Tiers: []*eventsv1.RateTier{{Raw: number}}, Served: []string{number}, Tokens: []string{number}}}}}),
		rollup(at-at%anHour, time.Hour, &eventsv1.RateRollup{CoinId: coin, Source: "lido", Mean: value}),
		rollup(at-at%(24*anHour), 24*time.Hour, &eventsv1.RateRollup{CoinId: coin, Source: "lido", Mean: value}),
		pastRate(offset, again, &eventsv1.Rate{Source: "lido", Pool: coin, Raw: number, RawUnit: "apr_fraction", Compounding: "daily"}),
		folded(minute, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{CoinId: coin, Time: minute, Price: value, MarketCap: &value, OwnChanges: []string{"1h"}}}}),
		folded(minute, &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{Summary: &eventsv1.Summary{Time: minute, TotalMarketCap: value,
			Dominance: []*eventsv1.Share{{CoinId: coin}}, Sentiment: []*eventsv1.Sentiment{{Range: coin, Ratio: value}}}}}),
	}
}

// folded is a record of markets.v1; its minute takes the place of the offset.
func folded(minute int64, rec *eventsv1.MarketRecord) logged {
	rec.Mark = &eventsv1.Mark{LogicVersion: 1, Offset: minute}
	return logged{rows.Place{Topic: schemas.TopicMarkets, Offset: minute}, rec}
}
