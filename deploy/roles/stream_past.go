package roles

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/charts"
	"github.com/marketlog/marketlog/query/globalstats"
	"github.com/marketlog/marketlog/query/prices"
	"github.com/marketlog/marketlog/query/providers"
	yields "github.com/marketlog/marketlog/query/rates"
	"github.com/marketlog/marketlog/query/stablecoins"
	"github.com/marketlog/marketlog/query/ticks"
	"github.com/marketlog/marketlog/query/ws"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
)

// storedTopic is how far the store has a topic of the log, as the stream asks it.
type storedTopic struct {
	store *history.Store
	name  string
	// id is what the broker gave the topic.
	id     string
	view   func(r read.Reader, ctx context.Context) (string, error)
	oldest func(r read.Reader, ctx context.Context, at time.Time) (int64, error)
}

func newStoredTopic(ctx context.Context, in *instance.Instance, store *history.Store, name string) (*storedTopic, error) {
	ids, err := stream.TopicIDs(ctx, in.Stream, name)
	if err != nil {
		return nil, err
	}
	return &storedTopic{store: store, name: name, id: ids[name]}, nil
}

// Identity is the topic and the table that is live: a log that is set up again and a replay that was put in place each make
// another one. The topic stays the same as long as its tail is read.
func (p *storedTopic) Identity(ctx context.Context) (string, error) {
	view, err := p.view(read.From(p.store), ctx)
	return p.id + "/" + view, err
}

func (p *storedTopic) Materialized(ctx context.Context) (map[int32]int64, error) {
	progress, err := p.store.Progress(ctx, p.name, 0)
	next := make(map[int32]int64, len(progress))
	for partition, at := range progress {
		next[partition] = at.Next
	}
	return next, err
}

func (p *storedTopic) Oldest(ctx context.Context, at time.Time) (int64, error) {
	return p.oldest(read.From(p.store), ctx, at)
}

// streamPast is the past of prices as the stream reads it.
type streamPast struct{ *storedTopic }

func newStreamPast(ctx context.Context, in *instance.Instance, store *history.Store) (*streamPast, error) {
	of, err := newStoredTopic(ctx, in, store, schemas.TopicPrices)
	if err != nil {
		return nil, err
	}
	of.view, of.oldest = read.Reader.PricesView, read.Reader.OldestPrice
	return &streamPast{of}, nil
}

func (p *streamPast) Prices(ctx context.Context, after, until int64, coins []string, most int, visit func(ws.PastPrice)) error {
	return read.From(p.store).PricesBetween(ctx, after, until, coins, most, func(of read.SpanPrice) {
		visit(ws.PastPrice{CoinID: of.CoinID, Source: of.Source, Price: of.Price, Volume: of.Volume24h, Second: of.Second, Partition: of.Partition})
	})
}

// PegPrices are the prices of stablecoins.
func (p *streamPast) PegPrices(ctx context.Context, after, until int64, coins []string, most int, visit func(partition int32, coinID string, second int64, price float64)) error {
	return read.From(p.store).PricesBetween(ctx, after, until, coins, most, func(of read.SpanPrice) {
		visit(of.Partition, of.CoinID, of.Second, of.Price)
	})
}

// channelsTail is how far before its end a topic of channels is read at a start, so that all who come back at once are served
// from memory, and so is the end of an hour.
const channelsTail = 65 * time.Minute

// streamChannels are the channels of the stream beside the prices.
func streamChannels(ctx context.Context, in *instance.Instance, store *history.Store, pricesPast *streamPast, priced *prices.Unit, pegs *stablecoins.Unit, states *providers.Unit) ([]query.Channel, error) {
	never := func(read.Reader, context.Context, time.Time) (int64, error) { return 0, nil } // of a table that nothing is dropped from
	stored := func(topic string, view func(read.Reader, context.Context) (string, error)) (of *storedTopic, identity string, err error) {
		if of, err = newStoredTopic(ctx, in, store, topic); err != nil {
			return nil, "", err
		}
		of.view, of.oldest = view, never
		identity, err = of.Identity(ctx)
		return of, identity, err
	}
	candles, candlesIdentity, err := stored(schemas.TopicCandles, read.Reader.CandlesView)
	if err != nil {
		return nil, err
	}
	market, marketIdentity, err := stored(schemas.TopicMarkets, read.Reader.SummariesView)
	if err != nil {
		return nil, err
	}
	rates, ratesIdentity, err := stored(schemas.TopicRates, read.Reader.RatesView)
	if err != nil {
		return nil, err
	}
	rates.oldest = read.Reader.OldestRate
	pricesIdentity, err := pricesPast.Identity(ctx)
	if err != nil {
		return nil, err
	}
	ticksIDs, err := stream.TopicIDs(ctx, in.Stream, schemas.TopicTicks)
	if err != nil {
		return nil, err
	}
	return declareChannels(in, read.From(store), channelPasts{pricesPast, candles, market, rates, pricesIdentity, candlesIdentity, marketIdentity, ratesIdentity, ticksIDs[schemas.TopicTicks]},
		priced, pegs, states), nil
}

// channelPasts are how far the store has the topics of channels, and which logs these are.
type channelPasts struct {
	prices                                                                *streamPast
	candles, market, rates                                                *storedTopic
	pricesIdentity, candlesIdentity, marketIdentity, ratesIdentity, ticks string
}

// declareChannels declares the channels. It reads nothing: with empty pasts they describe themselves alone.
func declareChannels(in *instance.Instance, past read.Reader, of channelPasts, priced *prices.Unit, pegs *stablecoins.Unit, states *providers.Unit) []query.Channel {
	return slices.Concat(
		charts.Channels(schemas.Coins(), past, of.candles, of.candlesIdentity),
		globalstats.Channels(past, of.market, of.marketIdentity),
		yields.Channels(schemas.Coins(), past, of.rates, of.ratesIdentity),
		pegs.Channels(of.prices, of.prices, of.pricesIdentity),
		priced.Channels(past, of.prices, of.pricesIdentity, in.Log),
		states.Channels(in.Clock.Now, in.Log),
		ticks.Channels(schemas.Coins(), func(ctx context.Context, rewind time.Duration, handle func(stream.TailRecord, bool) error) error {
			return stream.NewTail(stream.TailConfig{Brokers: in.Stream.Brokers, Topic: schemas.TopicTicks, Rewind: rewind, Raw: true, Dialer: in.Stream.Dialer, Log: in.Log}).RunSettled(ctx, handle)
		}, of.ticks, in.Log),
	)
}

// followChannels reads the topics of channels until the context ends, but for the prices, whose tail the hub is given by another.
func followChannels(ctx context.Context, in *instance.Instance, channels []query.Channel, hub *ws.Hub) error {
	var topics []string
	for _, c := range channels {
		if c.Follow == nil && c.Topic != schemas.TopicPrices && !slices.Contains(topics, c.Topic) {
			topics = append(topics, c.Topic)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, topic := range topics {
		g.Go(func() error { return in.Tail(topic, channelsTail).Run(ctx, hub.ApplyTo(topic)) })
	}
	return g.Wait()
}
