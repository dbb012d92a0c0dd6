package coins_test

import (
	"context"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/enginetest"
	"github.com/marketlog/marketlog/query/coins"
	"github.com/marketlog/marketlog/query/querytest"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestMain(m *testing.M) {
	if querytest.Load() {
		return
	}
	enginetest.Main(m)
}

func newFixture(t testing.TB) *querytest.Fixture {
	w := querytest.NewFixture(t, querytest.Coins(
		"bitcoin,BTC,Bitcoin,1,coin,,*:XBT",
		"ethereum,ETH,Ethereum,2,coin,,",
		"tether,USDT,Tether,3,stablecoin,USD,",
		"solana,SOL,Solana,4,coin,,",
		"sol-wormhole,SOL,SOL (Wormhole),5,wrapped,,",
	))
	past := stored{w}
	candles := views.NewCandles(w.Prices, past)
	w.Lines["store"] = func([]string) { // what is published from now on is kept
		w.Open(enginetest.Migrated(t))
		candles.RememberBy(func() time.Time { return w.Now }, w.Prices.Steps(), w.History())
	}
	unit := coins.New(w.Prices, w.Catalog, w.Yields, candles, coins.Served{}, past)
	w.Lines["refresh"] = func([]string) { // what is kept of the past is read again
		w.CloseCandles(w.Now)
		w.Must(candles.Look(t.Context()))
		w.Must(unit.Refresh(t.Context()))
	}
	w.Serve(unit.Endpoints())
	return w
}

// stored is the fixture's store; where none is open, which takes seconds, nothing is kept.
type stored struct{ w *querytest.Fixture }

func (s stored) Intervals(ctx context.Context, coinID string, interval time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	if s.w.Store == nil {
		return nil, nil
	}
	return s.w.History().Intervals(ctx, coinID, interval, from, to)
}

func (s stored) CandleTail(ctx context.Context, coinID string, step time.Duration, from, to time.Time) ([]schemas.Candle, error) {
	if s.w.Store == nil {
		return nil, nil
	}
	return s.w.History().CandleTail(ctx, coinID, step, from, to)
}

func (s stored) PricesOfSeconds(ctx context.Context, seconds []views.PriceSecond) ([]*eventsv1.PriceRecord, error) {
	return s.w.History().PricesOfSeconds(ctx, seconds)
}

func (s stored) PricesPublishedAt(ctx context.Context, coins []string, at time.Time, served views.ServedPrices) ([]*eventsv1.PriceRecord, error) {
	return s.w.History().PricesPublishedAt(ctx, coins, at, served)
}

func (s stored) PricesServed(ctx context.Context, at time.Time) (views.ServedPrices, error) {
	return s.w.History().PricesServed(ctx, at)
}

func (s stored) ServedWritten(ctx context.Context) (time.Time, error) {
	return s.w.History().ServedWritten(ctx)
}

func (s stored) OldestPrice(ctx context.Context, at time.Time) (int64, error) {
	return s.w.History().OldestPrice(ctx, at)
}

func (s stored) PricesWritten(ctx context.Context) (map[int32]time.Time, error) {
	return s.w.History().PricesWritten(ctx)
}

func (s stored) Restated(ctx context.Context, tables, coins []string, from, to, after time.Time) (time.Time, error) {
	return s.w.History().Restated(ctx, tables, coins, from, to, after)
}

func (s stored) FirstPriced(ctx context.Context) (map[string]time.Time, error) {
	return s.w.History().FirstPriced(ctx)
}

func TestAnswersReadAsTheirScripts(t *testing.T) {
	querytest.Run(t, func(t *testing.T) func(string) string { return newFixture(t).Run })
}
