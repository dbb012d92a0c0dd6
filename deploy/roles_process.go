package deploy

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/apy"
	"github.com/marketlog/marketlog/processors/candles"
	"github.com/marketlog/marketlog/processors/defi"
	"github.com/marketlog/marketlog/processors/earn"
	"github.com/marketlog/marketlog/processors/markets"
	"github.com/marketlog/marketlog/processors/median"
	"github.com/marketlog/marketlog/processors/quotes"
	"github.com/marketlog/marketlog/processors/resolve"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// pricesUnit is the chain from ticks of coins to prices and candles. It is also what a replay runs.
func pricesUnit() processors.Unit {
	raw, _ := schemas.TopicNamed(schemas.TopicTicksRaw)
	return processors.Unit{
		Name:  "prices",
		Input: schemas.TopicTicks,
		Outputs: []processors.Route{
			{Topic: schemas.TopicPrices, SamePartition: true},
			{Topic: schemas.TopicCandles, SamePartition: true},
		},
		New: func(int32) processors.Fold {
			return processors.Chain(median.New(schemas.Coins(), raw.Partitions), candles.New(raw.Partitions))
		},
	}
}

// minuteFolds are all folds of log minutes. A replay runs them too.
func minuteFolds() []*processors.Minutes {
	return []*processors.Minutes{markets.Minutes(schemas.Coins()), apy.Minutes(), defi.Minutes(), earn.Minutes(schemas.Coins())}
}

// rateTail is how far before its end the topic of quote rates is read at the start: every rate that
// counts was repeated within it.
const rateTail = 2 * time.Minute

// processorRoles turn topics into topics, and topics into views.
func processorRoles(ctx context.Context, in *Instance) ([]Role, error) {
	store, err := in.History(ctx)
	if err != nil {
		return nil, err
	}
	if err := settleReplay(ctx, in); err != nil {
		return nil, err
	}
	cache, err := in.Latest()
	if err != nil {
		return nil, err
	}
	pace := processors.NewPace()
	pace.Join(quotes.Name) // whoever folds them: the first ticks wait for the first rates
	roles := []Role{
		{Name: "processors/quotes", Run: func(ctx context.Context) error { return in.runQuotes(ctx, pace) }},
		{Name: "processors/resolve", Run: func(ctx context.Context) error { return in.runResolve(ctx, pace) }},
		{Name: "processors/prices", Run: (&processors.Runner{Unit: pricesUnit(), Log: in.Stream, Logger: in.Log, Metrics: in.folding}).Run},
	}
	for _, minutes := range minuteFolds() {
		minutes.Log, minutes.Logger, minutes.Metrics = in.Stream, in.Log, in.folding
		roles = append(roles, Role{Name: "processors/" + minutes.Name, Run: minutes.Run})
	}
	if in.embeddedBroker() != nil {
		roles = append(roles, damagesRole(in))
	}
	if len(in.Config.ClickHouse.Addr) == 0 {
		role, err := in.tablesRole(ctx, store)
		if err != nil {
			return nil, err
		}
		roles = append(roles, role)
	}
	undecodable := undecodableRecords(in.Metrics)
	for _, topic := range schemas.Topics {
		if topic.Name == schemas.TopicTicksRaw {
			continue // the fold that resolves ticks puts what cannot be decoded into the dead letters
		}
		sink := &processors.Sink{Topic: topic.Name, Log: in.Stream, History: store, Logger: in.Log, Undecodable: undecodable, Metrics: in.folding}
		if topic.Name == schemas.TopicPrices {
			sink.Latest = cache
		}
		roles = append(roles, Role{Name: "sink/" + topic.Name, Run: sink.Run})
	}
	return roles, nil
}

// fixingTail is how far before its end the topic of fixings is read at the start: one that counts for any tick that a
// cluster keeps was written within it.
const fixingTail = quotes.FixingFor + 8*24*time.Hour

// runQuotes folds quote rates, beside a tail of the fixings they may need and of what operators say of symbols.
func (in *Instance) runQuotes(ctx context.Context, pace *processors.Pace) error {
	fixings := quotes.NewFixings()
	overrides, err := in.overrides(ctx)
	if err != nil {
		return err
	}
	said := followOverrides(overrides)
	tail := stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: schemas.TopicReferenceRaw, Rewind: fixingTail, Dialer: in.Stream.Dialer, Log: in.Log})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return tail.Run(ctx, func(rec stream.TailRecord) error {
			fixings.Apply(rec.Value)
			return said(rec)
		})
	})
	g.Go(func() error {
		if !caughtUp(ctx, tail) {
			return nil
		}
		seconds := quotes.Seconds(schemas.Coins(), overrides, fixings)
		seconds.Log, seconds.Logger, seconds.Pace, seconds.Metrics = in.Stream, in.Log, pace, in.folding
		return seconds.Run(ctx)
	})
	return g.Wait()
}

// runResolve joins ticks with the rates that the tail of quotes.v1 tells, which it reads first.
// It keeps pace with the fold of these rates, and with the workers of other processes by their pulses
// in the topic of dead letters, which is the smallest that has them.
func (in *Instance) runResolve(ctx context.Context, pace *processors.Pace) error {
	rates := resolve.NewRateTable()
	overrides, err := in.overrides(ctx)
	if err != nil {
		return err
	}
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
	guard := resolve.NewGuard()
	g.Go(func() error {
		return in.tail(schemas.TopicCoinMarketsRaw, referenceTail).Run(ctx, followReferences(guard))
	})
	said := in.tail(schemas.TopicReferenceRaw, overrideTail)
	g.Go(func() error { return said.Run(ctx, followOverrides(overrides)) })
	g.Go(func() error {
		if !caughtUp(ctx, tail) || !caughtUp(ctx, said) {
			return nil
		}
		unit := resolve.Unit(schemas.Coins(), overrides, rates, guard)
		return (&processors.Runner{Unit: unit, Log: in.Stream, Logger: in.Log, Pace: pace, Metrics: in.folding}).Run(ctx)
	})
	return g.Wait()
}

// caughtUp waits for a tail to reach the end that it found; false if the context ended before.
func caughtUp(ctx context.Context, tail *stream.Tail) bool {
	select {
	case <-tail.CaughtUp():
		return true
	case <-ctx.Done():
		return false
	}
}
