package globalstats_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/rows"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// fixture is a querytest.Fixture with the unit over it.
type fixture struct {
	*querytest.Fixture
	unit *globalstats.Unit
	defi *globalstats.Defi
	// newest is what the answers about DeFi are made of.
	newest *views.DefiStore
	// log is what the past is read from, nil for none.
	log *views.Log
	// read is called after each reading of past days.
	read func()
}

// watched reports when past days were read.
type watched struct {
	read.Reader // of nothing until a script opens a store
	w           *fixture
}

func (s watched) FearGreedHistory(ctx context.Context, from, to time.Time) ([]*eventsv1.FearGreed, error) {
	defer s.w.read()
	return s.Reader.FearGreedHistory(ctx, from, to)
}

// served is what the past is made of that a store, and the log, have.
func (w *fixture) served(store interface {
	views.ServedHistory
	views.CoinsHistory
	views.SourcesHistory
}) globalstats.Served {
	return globalstats.Served{Summaries: views.NewPastSummaries(w.Catalog, w.log, store), Coins: views.NewPastCoins(w.Catalog, views.NewPastRows(w.Catalog, w.log, store), w.log, store),
		Sources: views.NewPastCurrencies(w.Catalog, w.log, store)}
}

func newFixture(t testing.TB) *fixture {
	w := &fixture{Fixture: querytest.NewFixture(t, querytest.Coins("bitcoin,BTC,Bitcoin,1,coin,,", "ethereum,ETH,Ethereum,2,coin,,"))}
	store := &watched{w: w}
	w.newest = views.NewDefiStore()
	w.unit = globalstats.New(w.Catalog, w.served(store), store)
	w.defi = globalstats.NewDefi(w.Catalog, w.newest, views.NewPastDefi(w.newest, nil, store), w.served(store).Coins, store)
	w.Lines["store"] = func([]string) { // opens one: what is published from now on is kept
		w.Open(enginetest.Migrated(t))
		store.Reader = w.History()
	}
	w.Lines["days"] = w.days           // first day, number, first value: days of fear and greed that only the store holds
	w.Lines["remember"] = w.remember   // reads what the store holds
	w.Lines["summaries"] = w.summaries // end of the first minute, number, total cap, rise of each: summaries that only the store holds
	w.Lines["coins"] = w.coins         // number of rows, the first rank: each coin rises by 5 % less a tenth of its rank
	w.Lines["defi"] = w.summarizeDefi  // a summary of the fold of DeFi, as text; its time is the query's clock unless it has one
	w.Serve(slices.Concat(w.unit.Endpoints(), w.defi.Endpoints()))
	return w
}

func (w *fixture) days(words []string) {
	var b rows.Batch
	start := w.Time(words[1])
	for i := range w.Integer(words[2]) {
		b.Add(rows.Place{Topic: schemas.TopicReferenceRaw, Offset: w.Offset()}, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_FearGreed{
			FearGreed: &eventsv1.FearGreed{Source: "alternative", Value: uint32(w.Integer(words[3]) + i), Classification: "Fear",
				EventTime: start.AddDate(0, 0, i).UnixNano(), IngestTime: start.AddDate(0, 0, i).UnixNano()}}})
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
}

func (w *fixture) remember([]string) {
	ctx, cancel := context.WithTimeout(w.T.Context(), time.Minute)
	defer cancel()
	w.read = cancel
	if err := w.unit.Run(ctx, slog.New(slog.DiscardHandler)); !errors.Is(err, context.Canceled) {
		w.T.Fatalf("reading past days: %v, want only the end of the context", err)
	}
}

func (w *fixture) summaries(words []string) {
	var b rows.Batch
	end, value := w.Time(words[1]), w.Number(words[3])
	for range w.Integer(words[2]) {
		b.Add(rows.Place{Topic: schemas.TopicMarkets, Offset: w.Offset()}, &eventsv1.MarketRecord{
			Mark: &eventsv1.Mark{LogicVersion: 1, Offset: end.Unix() / 60},
			Body: &eventsv1.MarketRecord_Summary{Summary: &eventsv1.Summary{Time: end.UnixNano(), TotalMarketCap: value, BtcDominance: 50}}})
		end, value = end.Add(time.Minute), value+w.Number(words[4])
	}
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
}

func (w *fixture) coins(words []string) {
	first := w.Integer(words[2])
	for rank := first; rank < first+w.Integer(words[1]); rank++ {
		id := "coin-" + string(rune('a'+rank/26%26)) + string(rune('a'+rank%26))
		change, marketCap, volume := 5-float64(rank)/10, 1e12/float64(rank), 1e6
		w.Must(w.Catalog.ApplyMarkets(stream.TailRecord{Marked: &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: &eventsv1.Market{
			CoinId: id, Symbol: id[5:], Name: id, Time: w.Now.UnixNano(), Price: 1, Rank: uint32(rank), MarketCap: &marketCap, Change24H: &change, Volume24H: &volume}}}}))
	}
}

func (w *fixture) summarizeDefi(words []string) {
	s := &eventsv1.DefiSummary{}
	w.Must(prototext.Unmarshal([]byte(strings.Join(words[1:], " ")), s))
	for _, rates := range []**eventsv1.DefiRates{&s.LendingRates, &s.StakingRates, &s.BorrowingRates} {
		*rates = cmp.Or(*rates, &eventsv1.DefiRates{})
	}
	s.Lending, s.Staking, s.Borrowing = cmp.Or(s.Lending, &eventsv1.DefiLending{}), cmp.Or(s.Staking, &eventsv1.DefiStaking{}), cmp.Or(s.Borrowing, &eventsv1.DefiBorrowing{})
	s.Time = cmp.Or(s.Time, w.Now.UnixNano())
	s.Read = cmp.Or(s.Read, s.Time)
	rec := &eventsv1.DefiRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: s.Time}, Body: &eventsv1.DefiRecord_Summary{Summary: s}}
	w.Must(w.newest.Apply(stream.TailRecord{Marked: rec}))
	if w.Store != nil {
		var b rows.Batch
		b.Add(rows.Place{Topic: schemas.TopicDefi, Offset: w.Offset()}, rec)
		w.Must(b.Insert(w.T.Context(), w.Store, ""))
	}
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
