package roles

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/charts"
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

// Identity is the topic and the table that is live: a log that is set up anew and a replay that was put in place each make
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

// candlesTail is how far before its end candles.v1 is read at a start, so that all who come back at once are served from memory,
// and so is the end of an hour.
const candlesTail = 65 * time.Minute

// streamChannels are the channels of the stream beside the prices.
func streamChannels(ctx context.Context, in *instance.Instance, store *history.Store) ([]query.Channel, error) {
	candles, err := newStoredTopic(ctx, in, store, schemas.TopicCandles)
	if err != nil {
		return nil, err
	}
	candles.view = read.Reader.CandlesView
	candles.oldest = func(read.Reader, context.Context, time.Time) (int64, error) { return 0, nil } // minutes are never dropped
	identity, err := candles.Identity(ctx)
	if err != nil {
		return nil, err
	}
	return charts.Channels(schemas.Coins(), read.From(store), candles, identity), nil
}
