package rows

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/native"
	"github.com/marketlog/marketlog/stream/history/past"
)

// backfillTable are the rows of venues' own candles, and of the files that some of them are of.
type backfillTable struct {
	candles backfillRows
	marks   past.Marks
	files   importRows
}

func (t *backfillTable) all() []native.Rows { return []native.Rows{&t.candles, &t.marks, &t.files} }

func (t *backfillTable) add(p Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.BackfillRecord)
	if file := rec.GetImportFile(); file != nil {
		t.files.add(p, file)
		return true
	}
	candle := rec.GetCandle()
	if candle == nil {
		return false
	}
	t.candles.add(p, rec.Producer, candle)
	if coin, _, ok := schemas.Coins().Resolve(candle.Venue, candle.Base); ok {
		t.marks.AddCandle(coin.ID, candle.Interval, candle.Start/int64(time.Second), p.Partition, p.Offset)
	}
	return true
}

// backfillRows are rows of backfill. Their records have no marks: producers write them, and the offset orders them.
type backfillRows struct {
	coinID, quoteID         native.LowCardinality
	producer, venue, symbol native.LowCardinality
	seconds                 proto.ColUInt32
	start                   proto.ColDateTime
	base, quote             native.LowCardinality
	open, high, low, close  proto.ColDecimal128
	volume                  proto.ColDecimal256
	ingestTime              proto.ColInt64
	file                    native.LowCardinality
	line                    proto.ColUInt64
	withdrawn               proto.ColBool
	place                   place
}

func (r *backfillRows) Table() string { return "backfill" }
func (r *backfillRows) Len() int      { return len(r.open) }

func (r *backfillRows) add(p Place, producer string, c *eventsv1.BackfillCandle) {
	coins := schemas.Coins()
	coin, _, _ := coins.Resolve(c.Venue, c.Base)
	quote, _ := coins.ResolveQuote(c.Venue, c.Quote)
	r.coinID.Add(coin.ID)
	r.quoteID.Add(quote.ID)
	r.producer.Add(producer)
	r.venue.Add(c.Venue)
	r.symbol.Add(c.Symbol)
	r.seconds = append(r.seconds, c.Interval)
	r.start.Data = append(r.start.Data, native.Second(c.Start))
	r.base.Add(c.Base)
	r.quote.Add(c.Quote)
	r.open = append(r.open, native.Decimal128(c.Open))
	r.high = append(r.high, native.Decimal128(c.High))
	r.low = append(r.low, native.Decimal128(c.Low))
	r.close = append(r.close, native.Decimal128(c.Close))
	r.volume = append(r.volume, native.Decimal256(c.Volume))
	r.ingestTime = append(r.ingestTime, c.IngestTime)
	r.file.Add(hex.EncodeToString(c.File))
	r.line = append(r.line, c.Line)
	r.withdrawn = append(r.withdrawn, c.Withdrawn)
	r.place.add(0, p.Partition, p.Offset)
}

func (r *backfillRows) Columns() []native.Column {
	const (
		text  = "LowCardinality(String)"
		money = "Decimal(38, 18)"
	)
	return slices.Concat([]native.Column{
		native.Col("coin_id", text, &r.coinID),
		native.Col("quote_id", text, &r.quoteID),
		native.Col("producer", text, &r.producer),
		native.Col("venue", text, &r.venue),
		native.Col("symbol", text, &r.symbol),
		native.Col("seconds", "UInt32", &r.seconds),
		native.Col("start", "DateTime('UTC')", &r.start),
		native.Col("base", text, &r.base),
		native.Col("quote", text, &r.quote),
		native.Col("open", money, &r.open),
		native.Col("high", money, &r.high),
		native.Col("low", money, &r.low),
		native.Col("close", money, &r.close),
		native.Col("volume", "Decimal(76, 18)", &r.volume),
		native.Col("ingest_time", "DateTime64(9, 'UTC')", &r.ingestTime),
		native.Col("file", text, &r.file),
		native.Col("line", "UInt64", &r.line),
		native.Col("withdrawn", "Bool", &r.withdrawn),
	}, r.place.columns())
}

func (r *backfillRows) Reset() {
	native.Reset(&r.coinID, &r.quoteID, &r.producer, &r.venue, &r.symbol, &r.seconds, &r.start, &r.base, &r.quote, &r.open, &r.high, &r.low, &r.close, &r.volume, &r.ingestTime,
		&r.file, &r.line, &r.withdrawn)
	r.place.reset()
}
