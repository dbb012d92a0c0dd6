package views_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func catalogFixture(t testing.TB) *querytest.Fixture {
	w := querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,", "solana,SOL,Solana,3,coin,,"))
	w.Now = w.Time("2026-11-20T10:00:00Z")
	return w
}

func ids(s *views.Snapshot) (ids []string) {
	for _, coin := range s.Coins {
		ids = append(ids, coin.ID)
	}
	return ids
}

// What the fold reports of a minute is seen when it ends, all at once.
func TestRowsOfAMinuteAppearTogether(t *testing.T) {
	w := catalogFixture(t)
	w.Run(`row coin_id: "solana" price: 2 rank: 1`)
	w.Run(`summary total_market_cap: 5`)
	if s := w.Catalog.Snapshot(); s.ByID("solana").Market != nil || s.Summary != nil {
		t.Errorf("before the minute ends: got row %v, summary %v, want none", s.ByID("solana").Market, s.Summary)
	}
	w.Minute(w.Now)
	w.Run(`row coin_id: "solana" price: 3 rank: 1 time: 1795168860000000000`)
	s := w.Catalog.Snapshot()
	if row := s.ByID("solana").Market; row.GetPrice() != 2 || s.Summary.GetTotalMarketCap() != 5 || s.Time != w.Now.UnixNano() {
		t.Errorf("after the minute: got row %v, summary %v, time %d", row, s.Summary, s.Time)
	}
	w.Minute(w.Now.Add(time.Minute))
	if row := s.ByID("solana").Market; row.Price != 2 {
		t.Errorf("a snapshot that is held has changed: price %v, want 2", row.Price)
	}
	if row := w.Catalog.Snapshot().ByID("solana").Market; row.Price != 3 {
		t.Errorf("the next minute: got price %v, want 3", row.Price)
	}
}

// A record that comes twice, or late, never takes a coin back in time.
func TestRowsNeverGoBack(t *testing.T) {
	w := catalogFixture(t)
	w.Run(`row coin_id: "solana" price: 3 rank: 2 time: 1795168860000000000`)
	w.Minute(w.Now.Add(time.Minute))
	w.Run(`row coin_id: "solana" price: 2 rank: 1 time: 1795168800000000000`)
	w.Minute(w.Now)
	if s := w.Catalog.Snapshot(); s.ByID("solana").Market.Price != 3 || s.Time != w.Now.Add(time.Minute).UnixNano() {
		t.Errorf("got price %v at %d, want 3 at %d", s.ByID("solana").Market.Price, s.Time, w.Now.Add(time.Minute).UnixNano())
	}
}

// Ranks come first, then the order of our own table, then ids; a symbol means its highest ranked coin.
func TestCoinsStandByRank(t *testing.T) {
	w := catalogFixture(t)
	w.Run(`said coin: {source: "coingecko" source_id: "aaa" part: "list" symbol: "eth" name: "Aaa"}`)
	w.Run(`said coin: {source: "coingecko" source_id: "zzz" part: "list" symbol: "zzz" name: "Zzz"}`)
	w.Run(`row coin_id: "zzz" rank: 1 price: 1`)
	w.Minute(w.Now)
	s := w.Catalog.Snapshot()
	if got, want := ids(s), []string{"zzz", "bitcoin", "ethereum", "solana", "aaa"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if with := s.BySymbol("ETH"); len(with) != 2 || with[0].ID != "ethereum" {
		t.Errorf("ETH is the symbol of %v, want ethereum first", with)
	}
}

// What changed nothing leaves the coins' version, and with it all that was made from them.
func TestVersionStandsWhileCoinsDo(t *testing.T) {
	w := catalogFixture(t)
	before := w.Catalog.Snapshot()
	w.Minute(w.Now)
	w.Run(`said fear_greed: {source: "alternative" value: 40 event_time: 1795132800000000000}`)
	w.Minute(w.Now.Add(time.Minute))
	after := w.Catalog.Snapshot()
	if after.CoinsVersion != before.CoinsVersion || len(after.FearGreed) != 1 || len(before.FearGreed) != 0 {
		t.Errorf("got version %d with %d days, want %d with 1; before were %d", after.CoinsVersion, len(after.FearGreed), before.CoinsVersion, len(before.FearGreed))
	}
	w.Run(`said coin: {source: "coingecko" source_id: "solana" part: "detail" symbol: "sol" name: "Solana" categories: "Layer 1"}`)
	w.Minute(w.Now.Add(2 * time.Minute))
	if changed := w.Catalog.Snapshot(); changed.CoinsVersion == before.CoinsVersion || len(changed.ByID("solana").Categories) != 1 {
		t.Errorf("a change: got version %d, categories %v", changed.CoinsVersion, changed.ByID("solana").Categories)
	}
}

// BenchmarkCatalog_20000Coins asks what a catalog of 20,000 coins with details and rows takes, and how long its next
// snapshot takes when a minute changed four of five rows.
func BenchmarkCatalog_20000Coins(b *testing.B) {
	const n = 20_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := catalogFixture(b)
	querytest.ManyCoins(w, n)
	querytest.ManyRows(w, n)
	if got := len(w.Catalog.Snapshot().Coins); got != n+3 {
		b.Fatalf("got %d coins, want %d", got, n+3)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		b.StopTimer()
		w.Now = w.Now.Add(time.Minute)
		querytest.ManyRows(w, n)
		b.StartTimer()
		w.Catalog.Snapshot()
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/snapshot")
}

// Answers of coins name their sources: who holds what was made of the coins before a notice makes it again.
func TestANoticeMakesTheListOfCoinsAnother(t *testing.T) {
	catalog := views.NewCatalog(querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,"))
	before := catalog.Snapshot().CoinsVersion
	for offset, rec := range []*eventsv1.ReferenceRecord{
		{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Notice{Notice: &eventsv1.SourceNotice{Source: "coingecko", Name: "CoinGecko", IngestTime: 1}}},
		{Producer: "sources", Epoch: 1, Body: &eventsv1.ReferenceRecord_Clock{Clock: &eventsv1.Clock{Time: 1}}},
	} {
		value, err := rec.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		if err := catalog.ApplyReference(views.TailRecord{Offset: int64(offset), Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	if catalog.Settle(); catalog.Snapshot().Notices["coingecko"] == nil || catalog.Snapshot().CoinsVersion == before {
		t.Errorf("got version %d and notices %v, want another version than %d", catalog.Snapshot().CoinsVersion, catalog.Snapshot().Notices, before)
	}
}
