package roles

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/query/ws"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/read"
)

// streamPast is the past of prices as the stream reads it: the store, and how far it has come.
type streamPast struct {
	store *history.Store
	// topic is the id that the broker gave prices.v1.
	topic string
}

func newStreamPast(ctx context.Context, in *instance.Instance, store *history.Store) (*streamPast, error) {
	ids, err := stream.TopicIDs(ctx, in.Stream, schemas.TopicPrices)
	if err != nil {
		return nil, err
	}
	return &streamPast{store: store, topic: ids[schemas.TopicPrices]}, nil
}

// Identity is the topic and the table that is live: a log that is set up anew and a replay that was put in place each make
// another one. The topic stays the same as long as its tail is read.
func (p *streamPast) Identity(ctx context.Context) (string, error) {
	view, err := read.From(p.store).PricesView(ctx)
	return p.topic + "/" + view, err
}

func (p *streamPast) Materialized(ctx context.Context) (map[int32]int64, error) {
	progress, err := p.store.Progress(ctx, schemas.TopicPrices, 0)
	next := make(map[int32]int64, len(progress))
	for partition, at := range progress {
		next[partition] = at.Next
	}
	return next, err
}

func (p *streamPast) Oldest(ctx context.Context, at time.Time) (int64, error) {
	return read.From(p.store).OldestPrice(ctx, at)
}

func (p *streamPast) Prices(ctx context.Context, after, until int64, coins []string, most int, visit func(ws.PastPrice)) error {
	return read.From(p.store).PricesBetween(ctx, after, until, coins, most, func(of read.SpanPrice) {
		visit(ws.PastPrice{CoinID: of.CoinID, Source: of.Source, Price: of.Price, Volume: of.Volume24h, Second: of.Second, Partition: of.Partition})
	})
}
