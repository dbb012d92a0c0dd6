package processors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/faults"
	"github.com/marketlog/marketlog/stream/history/read"
	"github.com/marketlog/marketlog/stream/history/restate"
	"github.com/marketlog/marketlog/stream/latest"
	"github.com/marketlog/marketlog/stream/retry"
)

// sinkWriter writes batches, one at a time.
type sinkWriter struct {
	sink     *Sink
	topic    schemas.Topic
	progress *sinkProgress
	// expired is the day of log time, counted from 1970, that history was last expired at.
	expired int64
	metrics *sinkMetrics
	// restater records what a batch restates.
	restater restate.Sources
}

// write records what the rows restate, inserts them, then the latest values, and has the ledger record them. While a store is away it tries
// again, until the context ends.
func (w *sinkWriter) write(ctx context.Context, b *sinkBatch) error {
	s := w.sink
	faults.Hit("sink.insert")
	if s.Generation == 0 {
		if err := w.retryUntilAvailable(ctx, func() error { return w.restater.Record(ctx, &b.rows) }); err != nil {
			return err
		}
	}
	// The shadow first, see InsertShadow.
	for generation, rows := range b.shadows {
		if err := w.retryUntilAvailable(ctx, func() error { return rows.InsertShadow(ctx, s.History, generation) }); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := w.retryUntilAvailable(ctx, func() error { return b.rows.Insert(ctx, s.History, "") }); err != nil {
		return err
	}
	w.metrics.inserted(b.rows.Len(), time.Since(began))
	faults.Hit("sink.inserted")
	if s.Latest != nil && len(b.covered) > 0 {
		if err := w.retryUntilAvailable(ctx, func() error { return w.cache(ctx, b) }); err != nil {
			return err
		}
	}
	faults.Hit("sink.cached")
	w.progress.insertedTo(b.progress)
	return w.expire(ctx, b)
}

// cacheTimeout bounds one call of the cache, whose client does not notice a context that is cancelled.
const cacheTimeout = 5 * time.Second

// cache puts the latest values, and fills partitions that the cache has lost from history, which
// holds all that was put before.
func (w *sinkWriter) cache(ctx context.Context, b *sinkBatch) error {
	putCtx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	began := time.Now()
	gaps, err := w.sink.Latest.Put(putCtx, w.sink.Generation, slices.Collect(maps.Values(b.latest)), b.covered)
	if err == nil {
		w.metrics.cached(len(b.latest), len(gaps), time.Since(began))
	}
	if err != nil || len(gaps) == 0 {
		return err
	}
	w.sink.Logger.Warn("filling the cache from history", "partitions", gaps)
	prices, err := read.From(w.sink.History).LatestPrices(ctx, nil)
	if err != nil {
		return err
	}
	covered := map[int32]latest.Range{}
	for _, p := range gaps {
		covered[p] = latest.Range{Next: b.covered[p].Next}
	}
	var records []latest.Record
	for _, rec := range prices {
		p := stream.PartitionFor(rec.GetPrice().CoinId, w.topic.Partitions)
		if _, ok := covered[p]; ok {
			records = append(records, latest.Record{Partition: p, Mark: rec.Mark, Price: rec.GetPrice()})
		}
	}
	fillCtx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	_, err = w.sink.Latest.Put(fillCtx, w.sink.Generation, records, covered)
	return err
}

// expire drops what history need not keep, once a day of log time. ticks.v1 leads all topics in time;
// the least time of its partitions is not moved by one wrong record.
func (w *sinkWriter) expire(ctx context.Context, b *sinkBatch) error {
	if w.topic.Name != schemas.TopicTicks || w.sink.Generation != 0 || len(b.progress) == 0 {
		return nil
	}
	at := int64(math.MaxInt64)
	for _, p := range b.progress {
		at = min(at, p.LogTime)
	}
	day := at / int64(24*time.Hour)
	if day <= w.expired {
		return nil
	}
	w.expired = day
	return w.retryUntilAvailable(ctx, func() error { return w.sink.History.Expire(ctx, "", at) })
}

// retryUntilAvailable repeats a call of a store that is away, counts how often, and notes why.
func (w *sinkWriter) retryUntilAvailable(ctx context.Context, do func() error) error {
	asked := w.metrics.asks()
	defer w.metrics.answered(asked)
	again := false
	return retryUntilAvailable(ctx, w.sink.Logger, w.sink.Topic, func() error {
		if again {
			w.metrics.retried()
		}
		again = true
		err := do()
		if err != nil {
			w.metrics.failed(asked, err)
		}
		return err
	})
}

// Pauses between tries at a store that is away.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// warnInterval is how often the log says that a store is still away: it may be for want of room on the log's own disk.
const warnInterval = time.Minute

// retryUntilAvailable repeats what may be repeated until it succeeds or the context ends. What a store itself
// refuses for good is a defect of ours and ends the role.
func retryUntilAvailable(ctx context.Context, logger *slog.Logger, topic string, do func() error) error {
	var warned time.Time
	backoff := retry.New(firstPause, maxPause)
	for {
		err := do()
		if err == nil || !errors.Is(err, stream.ErrUnavailable) {
			return err
		}
		if time.Since(warned) >= warnInterval {
			warned = time.Now()
			logger.Warn("waiting for a store", "topic", topic, "error", err)
		}
		if retry.Wait(ctx, backoff.Next()) != nil {
			return fmt.Errorf("giving up: %w", err)
		}
	}
}
