package rates_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/rows"
)

func TestMain(m *testing.M) {
	if querytest.Load() {
		return
	}
	enginetest.Main(m)
}

var venues = []views.Provider{
	{Slug: "kraken", Name: "Kraken", Refuses: []string{"JP"}, Terms: "https://kraken.example/terms",
		Quoted: []string{"https://reader.example/terms.md"}},
	{Slug: "okx", Name: "OKX"},
}

func newFixture(t testing.TB) *querytest.Fixture {
	w := querytest.NewFixture(t, querytest.Coins(
		"bitcoin,BTC,Bitcoin,1,coin,,*:XBT",
		"ethereum,ETH,Ethereum,2,coin,,",
		"tether,USDT,Tether,3,stablecoin,USD,",
		"solana,SOL,Solana,4,coin,,",
		"sol-wormhole,SOL,SOL (Wormhole),5,wrapped,,",
	))
	w.Lines["store"] = func([]string) { w.Open(enginetest.Migrated(t)) }        // what is published from now on is kept
	w.Lines["priced"] = func(words []string) { priced(w, words[1], words[2:]) } // coin, then provider:symbol:quote:last:rate of each market
	w.Lines["past"] = func(words []string) { reportAfterwards(w, words[1:]) }   // provider, category, coin, time, APY in percent
	past := stored{w}
	w.Serve(rates.New(w.Yields, w.Prices, w.Catalog, past, rates.Served{}, views.NewRateCharts(w.Yields, past), states{}, venues).Endpoints())
	return w
}

// states replace the unit of providers, which is not a neighbour of this one.
type states struct{}

func (states) All(context.Context, time.Time) ([]views.ProviderState, error) {
	return []views.ProviderState{
		{Slug: "aave-v3", Name: "Aave V3", Categories: []string{"lending", "borrowing"}, Kind: "defi", Status: "healthy", RateCount: 4, SymbolCount: 3, Source: views.ProviderSource{Transport: "poll"}},
		{Slug: "dead-protocol", Name: "Dead Protocol", Categories: []string{"lending"}, Kind: "defi", Status: "down", Source: views.ProviderSource{Transport: "poll"}},
		{Slug: "defillama-yields", Name: "DefiLlama", Categories: []string{"rate"}, Kind: "reference", Status: "healthy", Source: views.ProviderSource{Transport: "poll"}},
		{Slug: "okx", Name: "OKX", Categories: []string{"lending", "price"}, Kind: "exchange", Status: "healthy", Source: views.ProviderSource{Transport: "stream"}, Simulated: true},
	}, nil
}

func (s states) AllAsOf(ctx context.Context, at time.Time) ([]views.ProviderState, error) {
	return s.All(ctx, at)
}

// stored is the fixture's store; where none is open, which takes seconds, nothing is kept.
type stored struct{ w *querytest.Fixture }

func (s stored) RateHistory(ctx context.Context, q views.RateQuery) ([]views.RatePoint, error) {
	if s.w.Store == nil {
		return nil, nil
	}
	return s.w.History().RateHistory(ctx, q)
}

func (s stored) RatesSince(ctx context.Context, q views.RateQuery) (time.Time, error) {
	if s.w.Store == nil {
		return time.Time{}, nil
	}
	return s.w.History().RatesSince(ctx, q)
}

func (s stored) PriceHistory(ctx context.Context, q views.RateQuery) ([]views.RatePoint, error) {
	return s.w.History().PriceHistory(ctx, q)
}

func (s stored) PricesSince(ctx context.Context, q views.RateQuery) (time.Time, error) {
	return s.w.History().PricesSince(ctx, q)
}

func (s stored) RateSeries(ctx context.Context, q views.RateQuery) ([]views.RateSeries, error) {
	if s.w.Store == nil {
		return nil, nil
	}
	return s.w.History().RateSeries(ctx, q)
}

// reportAfterwards publishes what a provider reports of its rate in the past, of the pool that is named after the coin's symbol.
func reportAfterwards(w *querytest.Fixture, words []string) {
	coin, ok := w.Prices.Coins().ByID(words[2])
	if !ok {
		w.T.Fatalf("script: no coin %q", words[2])
	}
	offset := w.Offset()
	rec := &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Rate{Rate: &eventsv1.Rate{Source: words[0], Project: words[0], Category: words[1], CoinId: coin.ID,
		Symbol: coin.Symbol, Pool: strings.ToLower(coin.Symbol), Past: true, EventTime: w.Time(words[3]).UnixNano(), IngestTime: w.Now.UnixNano(), Raw: words[4], RawUnit: "apy_percent"}}}
	var b rows.Batch
	b.Add(rows.Place{Topic: schemas.TopicRatesRaw, Offset: offset}, rec)
	w.Must(b.Insert(w.T.Context(), w.Store, ""))
}

// priced publishes the price of a coin, made of what markets send now.
func priced(w *querytest.Fixture, coin string, markets []string) {
	var inputs []*eventsv1.PriceInput
	for _, market := range markets {
		parts := strings.Split(market, ":")
		inputs = append(inputs, &eventsv1.PriceInput{Provider: parts[0], Symbol: parts[1], QuoteId: parts[2], Last: w.Number(parts[3]), Rate: w.Number(parts[4]),
			LastHeard: w.Now.UnixNano(), EventTime: w.Now.Add(-time.Second).UnixNano()})
	}
	result, inputs := schemas.Aggregate(inputs, w.Now.UnixNano())
	offset := w.Offset()
	rec := &eventsv1.PriceRecord{Mark: &eventsv1.Mark{LogicVersion: 1, Offset: offset}, Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{
		CoinId: coin, Time: w.Now.UnixNano(), Price: result.Price, Accepted: uint32(result.Accepted), Inputs: inputs}}}
	if w.Store != nil {
		var b rows.Batch
		b.Add(rows.Place{Topic: schemas.TopicPrices, Offset: offset}, rec)
		w.Must(b.Insert(w.T.Context(), w.Store, ""))
	}
	w.Must(querytest.ApplyPrice(w.Prices, views.TailRecord{Offset: offset, Marked: rec}))
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
