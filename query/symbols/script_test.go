package symbols_test

import (
	"strings"
	"testing"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/rows"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func newFixture(t testing.TB) *querytest.Fixture {
	w := querytest.NewFixture(t, querytest.Coins(
		"bitcoin,BTC,Bitcoin,1,coin,,*:XBT;kraken:XXBT",
		"ethereum,ETH,Ethereum,2,coin,,",
		"tether,USDT,Tether,3,stablecoin,USD,bitfinex:UST",
		"shiba-inu,SHIB,Shiba Inu,4,token,,",
		"holotoken,HOT,Holo,5,token,,!htx:HOT",
	))
	w.Open(enginetest.Migrated(t))
	override := &eventsv1.SymbolOverride{Source: "gate", Symbol: "GONE", CoinId: "bitcoin", Time: 1}
	unit := symbols.New(w.Catalog, w.Prices, w.Rates, nil, w.History(), schemas.NewSymbolOverrides(override))
	w.Lines["tick"] = func(words []string) { // venue, base, coin: a trade of now
		offset := w.Offset()
		tick := &eventsv1.Tick{Venue: words[1], Symbol: words[2] + "-USD", Base: words[2], Quote: "USD", Kind: eventsv1.TickKind_TICK_KIND_TRADE,
			EventId: []byte(strings.Repeat(string(rune('a'+offset%20)), 16)), Price: "1", Size: "1", IngestTime: w.Now.UnixNano()}
		var b rows.Batch
		b.Add(rows.Place{Topic: schemas.TopicTicks, Offset: offset}, &eventsv1.ResolvedRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: offset},
			Body: &eventsv1.ResolvedRecord_Tick{Tick: &eventsv1.ResolvedTick{Tick: tick, CoinId: words[3], QuoteId: "USD", Rate: 1}}})
		w.Must(b.Insert(t.Context(), w.Store, ""))
	}
	w.Lines["quote"] = func(words []string) { // quote, USD for one unit
		w.Must(w.Rates.Apply(stream.TailRecord{Marked: &eventsv1.QuoteRecord{Body: &eventsv1.QuoteRecord_Rate{Rate: &eventsv1.QuoteRate{
			QuoteId: words[1], Rate: w.Number(words[2]), Time: w.Now.UnixNano(), Method: "market"}}}}))
	}
	w.Serve(unit.Endpoints())
	return w
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
