package instance

import (
	"context"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history/read"
)

// MarketsTail is how far before its end the topic of market rows is read at the start: each row was repeated within it.
const MarketsTail = processors.StateEvery + 5*time.Minute

// PriceCacheRewind is how far before its end the topic of prices is read where neither the cache nor the ledger knows an
// offset: every current price was written within it.
const PriceCacheRewind = time.Minute

// FillPriceCache loads the latest prices from the cache and returns where the tail of prices.v1 begins; nil where the cache is
// empty: then the tail begins PriceCacheRewind before the end, and FillAbsentPrices has what is older.
func (in *Instance) FillPriceCache(ctx context.Context, priceCache *views.PriceCache) (map[int32]stream.TailStart, error) {
	cache, err := in.Latest()
	if err != nil {
		return nil, err
	}
	topic, err := schemas.TopicNamed(schemas.TopicPrices)
	if err != nil {
		return nil, err
	}
	snapshot, err := cache.Load(ctx, topic.Partitions)
	if err != nil || len(snapshot.Records) == 0 {
		return nil, err
	}
	for _, r := range snapshot.Records {
		record := &eventsv1.PriceRecord{Mark: r.Mark, Body: &eventsv1.PriceRecord_Price{Price: r.Price}}
		if err := priceCache.Apply(stream.TailRecord{Partition: r.Partition, Offset: r.Offset, Marked: record}); err != nil {
			return nil, err
		}
	}
	start := map[int32]stream.TailStart{}
	for p, next := range snapshot.Next {
		start[p] = stream.TailStart{Offset: next}
	}
	return start, nil
}

// beforeAll is the offset given to what history holds: of records of one second, any of the topic is newer.
const beforeAll = -1

// FillAbsentPrices loads the last prices of the coins that have none in the cache from ClickHouse. A current price is in the
// end of the log, where it costs a tenth of what it costs there: its row has all inputs.
func (in *Instance) FillAbsentPrices(ctx context.Context, priceCache *views.PriceCache) error {
	store, err := in.History(ctx)
	if err != nil {
		return err
	}
	records, err := read.From(store).LatestPrices(ctx, priceCache.Priced())
	if err != nil {
		return err
	}
	for _, rec := range records {
		if err := priceCache.Apply(stream.TailRecord{Partition: rec.Mark.GetPartition(), Offset: beforeAll, Marked: rec}); err != nil {
			return err
		}
	}
	return nil
}
