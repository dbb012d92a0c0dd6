package processors

import (
	"context"
	"log/slog"
	"time"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
)

const (
	// pastGroup is the group whose member folds the past. Nothing depends on there being one: two would do the same work.
	pastGroup = "fold-past"
	// pastInterval is how long a back-filled candle waits to be folded with others. After a pass that took longer the pause is twice
	// as long as that: a large back-fill leaves the processors to the prices.
	pastInterval = time.Second
	// pastIdle is how long what comes first after a while of nothing waits: finding that there is nothing reads four tables.
	pastIdle = 5 * time.Second
)

// PastCandles folds venues' own candles into those of coins while sinks write them, see past.Fold.
type PastCandles struct {
	Log     stream.Config
	History *history.Store
	Logger  *slog.Logger
}

// Run folds whatever is due until the context ends. While the store is away it tries again.
func (p *PastCandles) Run(ctx context.Context) error {
	return runSingleton(ctx, p.Log, pastGroup, schemas.TopicReferenceRawDead, p.fold)
}

func (p *PastCandles) fold(ctx context.Context) error {
	fold := past.NewFold(p.History)
	retry := func(do func() error) error { return retryUntilAvailable(ctx, p.Logger, schemas.TopicBackfillRaw, do) }
	err := retry(func() error { return fold.Adopt(ctx) })
	for err == nil {
		began := time.Now()
		folded := 0
		err = retry(func() (err error) {
			folded, err = fold.Pass(ctx)
			return err
		})
		pause := pastInterval
		if folded == 0 {
			pause = pastIdle
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(pause, 2*time.Since(began))):
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
