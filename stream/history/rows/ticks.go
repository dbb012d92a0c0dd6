package rows

import (
	"slices"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/native"
)

// tickTables are the rows of resolved ticks, and of the gaps between them.
type tickTables struct {
	ticks tickRows
	gaps  gapRows
}

func (t *tickTables) all() []native.Rows { return []native.Rows{&t.ticks, &t.gaps} }

func (t *tickTables) add(p Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.ResolvedRecord)
	switch body := rec.Body.(type) {
	case *eventsv1.ResolvedRecord_Tick:
		t.ticks.add(p, rec.Mark, body.Tick)
	case *eventsv1.ResolvedRecord_Gap:
		t.gaps.add(p, body.Gap)
	default:
		return false
	}
	return true
}

// tickRows are rows of ticks. A repeated state adds none.
type tickRows struct {
	coinID, venue, symbol                   native.LowCardinality
	kind                                    proto.ColEnum8
	day                                     proto.ColDate
	eventTime                               proto.ColInt64
	eventID                                 proto.ColFixedStr16
	ingestTime                              proto.ColInt64
	base, quote, quoteID                    native.LowCardinality
	price, size                             native.NullableDecimal
	side                                    proto.ColEnum8
	tradeID                                 proto.ColStr
	bid, ask, last, volumeBase, volumeQuote native.NullableDecimal
	rate                                    proto.ColFloat64
	rateTime, rateOffset                    proto.ColInt64
	flags                                   proto.ColUInt32
	snapshot, simulated                     proto.ColBool
	rawPartition                            proto.ColInt32
	rawOffset                               proto.ColInt64
	place                                   place
}

func (r *tickRows) Table() string { return "ticks" }
func (r *tickRows) Len() int      { return len(r.day) }

func (r *tickRows) add(p Place, mark *eventsv1.Mark, t *eventsv1.ResolvedTick) {
	if schemas.Flag(t.Flags)&schemas.Repeat != 0 {
		return
	}
	k := t.Tick
	r.coinID.Add(t.CoinId)
	r.venue.Add(k.Venue)
	r.symbol.Add(k.Symbol)
	r.kind.Append(proto.Enum8(k.Kind))
	r.day = append(r.day, date(k.IngestTime))
	r.eventTime = append(r.eventTime, schemas.TradeTime(k))
	var id [16]byte
	copy(id[:], k.EventId)
	r.eventID = append(r.eventID, id)
	r.ingestTime = append(r.ingestTime, k.IngestTime)
	r.base.Add(k.Base)
	r.quote.Add(k.Quote)
	r.quoteID.Add(t.QuoteId)
	r.price.Add(k.Price)
	r.size.Add(k.Size)
	r.side.Append(proto.Enum8(k.Side))
	r.tradeID.Append(k.TradeId)
	r.bid.Add(k.Bid)
	r.ask.Add(k.Ask)
	r.last.Add(k.Last)
	r.volumeBase.Add(k.VolumeBase)
	r.volumeQuote.Add(k.VolumeQuote)
	r.rate = append(r.rate, t.Rate)
	r.rateTime = append(r.rateTime, t.RateTime)
	r.rateOffset = append(r.rateOffset, t.RateOffset)
	r.flags = append(r.flags, t.Flags)
	r.snapshot = append(r.snapshot, k.Snapshot)
	r.simulated = append(r.simulated, k.Simulated)
	r.rawPartition = append(r.rawPartition, mark.Partition)
	r.rawOffset = append(r.rawOffset, mark.Offset)
	r.place.add(mark.LogicVersion, p.Partition, p.Offset)
}

func (r *tickRows) Columns() []native.Column {
	const (
		text  = "LowCardinality(String)"
		time  = "DateTime64(9, 'UTC')"
		money = "Nullable(Decimal(38, 18))"
	)
	return slices.Concat([]native.Column{
		native.Col("coin_id", text, &r.coinID),
		native.Col("venue", text, &r.venue),
		native.Col("symbol", text, &r.symbol),
		native.Col("kind", "Enum8('trade' = 1, 'quote' = 2, 'ticker' = 3)", &r.kind),
		native.Col("day", "Date", &r.day),
		native.Col("event_time", time, &r.eventTime),
		native.Col("event_id", "FixedString(16)", &r.eventID),
		native.Col("ingest_time", time, &r.ingestTime),
		native.Col("base", text, &r.base),
		native.Col("quote", text, &r.quote),
		native.Col("quote_id", text, &r.quoteID),
		native.Col("price", money, &r.price),
		native.Col("size", money, &r.size),
		native.Col("side", "Enum8('' = 0, 'buy' = 1, 'sell' = 2)", &r.side),
		native.Col("trade_id", "String", &r.tradeID),
		native.Col("bid", money, &r.bid),
		native.Col("ask", money, &r.ask),
		native.Col("last", money, &r.last),
		native.Col("volume_base", money, &r.volumeBase),
		native.Col("volume_quote", money, &r.volumeQuote),
		native.Col("rate", "Float64", &r.rate),
		native.Col("rate_time", time, &r.rateTime),
		native.Col("rate_offset", "Int64", &r.rateOffset),
		native.Col("flags", "UInt32", &r.flags),
		native.Col("snapshot", "Bool", &r.snapshot),
		native.Col("simulated", "Bool", &r.simulated),
		native.Col("raw_partition", "Int32", &r.rawPartition),
		native.Col("raw_offset", "Int64", &r.rawOffset),
	}, r.place.columns())
}

func (r *tickRows) Reset() {
	native.Reset(&r.coinID, &r.venue, &r.symbol, &r.kind, &r.day, &r.eventTime, &r.eventID, &r.ingestTime, &r.base, &r.quote, &r.quoteID,
		&r.price, &r.size, &r.side, &r.tradeID, &r.bid, &r.ask, &r.last, &r.volumeBase, &r.volumeQuote,
		&r.rate, &r.rateTime, &r.rateOffset, &r.flags, &r.snapshot, &r.simulated, &r.rawPartition, &r.rawOffset)
	r.place.reset()
}
