package roles

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/metrics"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/quotes"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/read"
)

// rateTail is how far before its end the topic of quote rates is read at the start: every rate that
// counts was repeated within it.
const rateTail = 2 * time.Minute

// ProcessorRoles turn topics into topics, and topics into views. The fold of exchange rates may wait for fresh, which is nil where no role waits.
func ProcessorRoles(ctx context.Context, in *instance.Instance, fresh *firstFresh) ([]supervise.Role, error) {
	store, err := in.History(ctx)
	if err != nil {
		return nil, err
	}
	if err := operations.SettleReplay(ctx, in); err != nil {
		return nil, err
	}
	cache, err := in.Latest()
	if err != nil {
		return nil, err
	}
	pace := processors.NewPace()
	pace.Join(quotes.Name) // whoever folds them: the first ticks wait for the first rates
	pace.Lead(quotes.Name, rateLead)
	inLog := newRatesInLog()
	mayFold := func(ctx context.Context) error { return inLog.await(ctx, fresh, in.Clock.Now) }
	roles := []supervise.Role{
		{Name: "processors/quotes", Run: func(ctx context.Context) error { return runQuotes(ctx, in, pace, mayFold) }},
		{Name: "processors/resolve", Run: func(ctx context.Context) error { return runResolve(ctx, in, pace, inLog) }},
		{Name: "processors/prices", Run: (&processors.Runner{Unit: instance.PricesUnit(), Log: in.Stream, Logger: in.Log, Metrics: in.Folding}).Run},
	}
	for _, minutes := range instance.MinuteFolds() {
		minutes.Log, minutes.Logger, minutes.Metrics = in.Stream, in.Log, in.Folding
		roles = append(roles, supervise.Role{Name: "processors/" + minutes.Name, Run: minutes.Run})
	}
	if in.EmbeddedBroker() != nil {
		roles = append(roles, damagesRole(in))
	}
	if in.Config.Archives() {
		roles = append(roles, archiveRole(in))
	}
	roles = append(roles, operations.BehindRole(in, store))
	if len(in.Config.ClickHouse.Addr) == 0 {
		role, err := operations.TablesRole(ctx, in, store)
		if err != nil {
			return nil, err
		}
		roles = append(roles, role)
	}
	undecodable := metrics.UndecodableRecords(in.Metrics)
	ledger := processors.NewLedger(store, in.Log)
	for _, topic := range schemas.Topics {
		if topic.Name == schemas.TopicTicksRaw {
			continue // the fold that resolves ticks puts what cannot be decoded into the dead letters
		}
		sink := &processors.Sink{Topic: topic.Name, Log: in.Stream, History: store, Ledger: ledger, Logger: in.Log, Undecodable: undecodable, Metrics: in.Folding}
		if topic.Name == schemas.TopicPrices {
			sink.Latest = cache
		}
		roles = append(roles, supervise.Role{Name: "sink/" + topic.Name, Run: sink.Run})
	}
	roles = append(roles, supervise.Role{Name: "processors/past_candles", Run: (&processors.PastCandles{Log: in.Stream, History: store, Logger: in.Log}).Run})
	return roles, nil
}

// fixingTail is how far before its end the topic of fixings is read at the start: one that counts for any tick that a
// cluster keeps was written within it.
const fixingTail = quotes.FixingFor + 8*24*time.Hour

// runQuotes folds exchange rates of quote assets, with a tail of the fixings they may need and of operators' overrides and corrections.
// It begins when mayFold returns, and not earlier with the tail: it decodes days of reference records.
func runQuotes(ctx context.Context, in *instance.Instance, pace *processors.LagLimiter, mayFold func(context.Context) error) error {
	if mayFold(ctx) != nil {
		return nil
	}
	fixings := quotes.NewFixings()
	overrides, err := in.Overrides(ctx)
	if err != nil {
		return err
	}
	corrections, corrected := schemas.NewCorrections(), make(chan struct{})
	follower := instance.FollowOverrides(overrides)
	tail := stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: schemas.TopicReferenceRaw, Rewind: fixingTail, Dialer: in.Stream.Dialer, Log: in.Log})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return in.FollowCorrections(ctx, corrections, func() { close(corrected) }) })
	g.Go(func() error {
		return tail.Run(ctx, func(rec stream.TailRecord) error {
			fixings.Apply(rec.Value)
			return follower(rec)
		})
	})
	g.Go(func() error {
		if !arrived(ctx, tail.CaughtUp(), corrected) {
			return nil
		}
		seconds := quotes.Seconds(schemas.Coins(), overrides, corrections, fixings)
		seconds.Log, seconds.Logger, seconds.Pace, seconds.Metrics = in.Stream, in.Log, pace, in.Folding
		return seconds.Run(ctx)
	})
	return g.Wait()
}

// runResolve joins ticks with the exchange rates of the tail of quotes.v1, which it reads first.
// It keeps pace with the fold of these rates, and with the workers of other processes by their pulses
// in the topic of dead letters, which is the smallest that has them.
func runResolve(ctx context.Context, in *instance.Instance, pace *processors.LagLimiter, inLog *ratesInLog) error {
	rates := resolve.NewRateTable()
	tail := stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: schemas.TopicQuotes, Rewind: rateTail, Dialer: in.Stream.Dialer, Log: in.Log})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return tail.Run(ctx, func(rec stream.TailRecord) error {
			quote, ok := rec.Marked.(*eventsv1.QuoteRecord)
			if !ok {
				return fmt.Errorf("reading %s: a record of another type", schemas.TopicQuotes)
			}
			rates.Apply(rec.Offset, quote)
			if pulse := quote.GetPulse(); pulse != nil {
				pace.Heard(quotes.Name, pulse.Now)
				inLog.reached(pulse.Now)
			}
			return nil
		})
	})
	dead := stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: schemas.TopicTicksRawDead, Rewind: time.Minute, Dialer: in.Stream.Dialer, Log: in.Log})
	g.Go(func() error {
		return dead.Run(ctx, func(rec stream.TailRecord) error {
			if pulse := rec.Marked.GetPulse(); pulse != nil {
				pace.Heard(processors.PaceName(resolve.Name, rec.Marked.GetMark().Partition), pulse.Now)
			}
			return nil
		})
	})
	conflicts := resolve.NewConflictFilter()
	g.Go(func() error {
		if err := rememberDoubts(ctx, in, conflicts); err != nil && ctx.Err() == nil {
			in.Log.Warn("which markets were doubted before cannot be read: they count again for ten minutes", "error", err)
		}
		return nil
	})
	g.Go(func() error {
		return in.Tail(schemas.TopicCoinMarketsRaw, instance.ReferenceTail).Run(ctx, instance.FollowReferences(conflicts))
	})
	g.Go(func() error {
		if arrived(ctx, tail.CaughtUp()) {
			inLog.ended()
		}
		return nil
	})
	// Exchange rates, overrides and corrections are read side by side: prices wait for the slowest of them.
	corrections, corrected := schemas.NewCorrections(), make(chan struct{})
	g.Go(func() error { return in.FollowCorrections(ctx, corrections, func() { close(corrected) }) })
	g.Go(func() error {
		overrides, follower, err := in.OverridesAndTail(ctx)
		if err != nil {
			return err
		}
		g.Go(func() error { return follower.Run(ctx, instance.FollowOverrides(overrides)) })
		if !arrived(ctx, tail.CaughtUp(), corrected, follower.CaughtUp()) {
			return nil
		}
		unit := resolve.Unit(schemas.Coins(), overrides, corrections, rates, conflicts)
		return (&processors.Runner{Unit: unit, Log: in.Stream, Logger: in.Log, Pace: pace, Metrics: in.Folding}).Run(ctx)
	})
	return g.Wait()
}

// doubtsFor is how far back markets are looked for that were doubted: one that is silent for longer is not doubted any more.
const doubtsFor = time.Hour

// rememberDoubts has the conflict filter doubt the markets that the process before this one doubted. Prices do not wait for it.
func rememberDoubts(ctx context.Context, in *instance.Instance, conflicts *resolve.ConflictFilter) error {
	store, err := in.History(ctx)
	if err != nil {
		return err
	}
	return read.From(store).DoubtedMarkets(ctx, in.Clock.Now().Add(-doubtsFor), func(venue, symbol string, at time.Time) {
		conflicts.Remember(venue, symbol, at.UnixNano())
	})
}

// arrived waits for channels to be closed, which tails do that have reached the end they found; false if the context ended before.
func arrived(ctx context.Context, all ...<-chan struct{}) bool {
	for _, one := range all {
		select {
		case <-one:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
