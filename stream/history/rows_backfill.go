package history

import (
	"slices"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// backfillTable are the rows of venues' own candles.
type backfillTable struct {
	candles backfillRows
	marks   pastMarkRows
}

func (t *backfillTable) all() []rows { return []rows{&t.candles, &t.marks} }

func (t *backfillTable) add(p Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.BackfillRecord)
	candle := rec.GetCandle()
	if candle == nil {
		return false
	}
	t.candles.add(p, rec.Producer, candle)
	if coin, _, ok := schemas.Coins().Resolve(candle.Venue, candle.Base); ok {
		if part, ok := pastPartOf(coin.ID, candle.Interval, candle.Start/int64(time.Second)); ok {
			t.marks.add(p, part)
		}
	}
	return true
}

// backfillRows are rows of backfill. Their records have no marks: producers write them, and the offset orders them.
type backfillRows struct {
	coinID, quoteID         lowCardinality
	producer, venue, symbol lowCardinality
	seconds                 proto.ColUInt32
	start                   proto.ColDateTime
	base, quote             lowCardinality
	open, high, low, close  proto.ColDecimal128
	volume                  proto.ColDecimal256
	ingestTime              proto.ColInt64
	place                   place
}

func (r *backfillRows) table() string { return "backfill" }
func (r *backfillRows) len() int      { return len(r.open) }

func (r *backfillRows) add(p Place, producer string, c *eventsv1.BackfillCandle) {
	coins := schemas.Coins()
	coin, _, _ := coins.Resolve(c.Venue, c.Base)
	quote, _ := coins.ResolveQuote(c.Venue, c.Quote)
	r.coinID.add(coin.ID)
	r.quoteID.add(quote.ID)
	r.producer.add(producer)
	r.venue.add(c.Venue)
	r.symbol.add(c.Symbol)
	r.seconds = append(r.seconds, c.Interval)
	r.start.Data = append(r.start.Data, second(c.Start))
	r.base.add(c.Base)
	r.quote.add(c.Quote)
	r.open = append(r.open, decimal128(c.Open))
	r.high = append(r.high, decimal128(c.High))
	r.low = append(r.low, decimal128(c.Low))
	r.close = append(r.close, decimal128(c.Close))
	r.volume = append(r.volume, decimal256(c.Volume))
	r.ingestTime = append(r.ingestTime, c.IngestTime)
	r.place.add(0, p.Partition, p.Offset)
}

func (r *backfillRows) columns() []column {
	const (
		text  = "LowCardinality(String)"
		money = "Decimal(38, 18)"
	)
	return slices.Concat([]column{
		{"coin_id", text, &r.coinID},
		{"quote_id", text, &r.quoteID},
		{"producer", text, &r.producer},
		{"venue", text, &r.venue},
		{"symbol", text, &r.symbol},
		{"seconds", "UInt32", &r.seconds},
		{"start", "DateTime('UTC')", &r.start},
		{"base", text, &r.base},
		{"quote", text, &r.quote},
		{"open", money, &r.open},
		{"high", money, &r.high},
		{"low", money, &r.low},
		{"close", money, &r.close},
		{"volume", "Decimal(76, 18)", &r.volume},
		{"ingest_time", "DateTime64(9, 'UTC')", &r.ingestTime},
	}, r.place.columns())
}

func (r *backfillRows) reset() {
	reset(&r.coinID, &r.quoteID, &r.producer, &r.venue, &r.symbol, &r.seconds, &r.start, &r.base, &r.quote, &r.open, &r.high, &r.low, &r.close, &r.volume, &r.ingestTime)
	r.place.reset()
}
