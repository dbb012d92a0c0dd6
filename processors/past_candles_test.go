package processors_test

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
)

// Of two processes that fold the past one does, and the other goes on when it ends: a candle that a sink writes becomes one of its
// coin, and again when what converts it comes later.
func TestThePastIsFoldedByWhicheverProcessLives(t *testing.T) {
	log, producer := newLog(t)
	store, _ := newStore(t)
	s := newScript(t, schemas.TopicBackfillRaw, producer)
	begin := func() (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var g errgroup.Group
		g.Go(func() error { return (&processors.PastCandles{Log: log, History: store, Logger: quiet(t)}).Run(ctx) })
		return func() {
			cancel()
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
		}
	}
	start(t, &processors.Sink{Topic: s.topic, Log: log, History: store, Logger: quiet(t)})
	first, second := begin(), begin()
	defer second()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	candle := func(base, quote, price string) {
		s.write(0, &eventsv1.BackfillRecord{Producer: "kraken", Body: &eventsv1.BackfillRecord_Candle{Candle: &eventsv1.BackfillCandle{
			Venue: "kraken", Symbol: base + quote, Base: base, Quote: quote, Start: at.UnixNano(), Interval: 3600, Open: price, High: price, Low: price, Close: price, Volume: "1"}}}, false)
		s.flush()
	}
	shown := func(coin string, price float64) {
		t.Helper()
		eventually(t, coin, func() bool {
			candles, err := read.From(store).Intervals(t.Context(), coin, time.Hour, at, at.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			return len(candles) == 1 && candles[0].Open == price
		})
	}
	candle("SOL", "USDT", "100")
	candle("BTC", "USD", "9")
	shown("bitcoin", 9)
	candle("USDT", "USD", "2")
	shown("solana", 200)
	first()
	candle("USDT", "USD", "3")
	shown("solana", 300)
}
