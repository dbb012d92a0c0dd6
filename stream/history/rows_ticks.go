package history

import (
	"slices"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// tickTables are the rows of resolved ticks, and of the gaps between them.
type tickTables struct {
	ticks tickRows
	gaps  gapRows
}

func (t *tickTables) all() []rows { return []rows{&t.ticks, &t.gaps} }

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
	coinID, venue, symbol                   lowCardinality
	kind                                    proto.ColEnum8
	day                                     proto.ColDate
	eventTime                               proto.ColInt64
	eventID                                 proto.ColFixedStr16
	ingestTime                              proto.ColInt64
	base, quote, quoteID                    lowCardinality
	price, size                             decimalColumn
	side                                    proto.ColEnum8
	tradeID                                 proto.ColStr
	bid, ask, last, volumeBase, volumeQuote decimalColumn
	rate                                    proto.ColFloat64
	rateTime, rateOffset                    proto.ColInt64
	flags                                   proto.ColUInt32
	snapshot, simulated                     proto.ColBool
	rawPartition                            proto.ColInt32
	rawOffset                               proto.ColInt64
	place                                   place
}

func (r *tickRows) table() string { return "ticks" }
func (r *tickRows) len() int      { return len(r.day) }

func (r *tickRows) add(p Place, mark *eventsv1.Mark, t *eventsv1.ResolvedTick) {
	if schemas.Flag(t.Flags)&schemas.Repeat != 0 {
		return
	}
	k := t.Tick
	r.coinID.add(t.CoinId)
	r.venue.add(k.Venue)
	r.symbol.add(k.Symbol)
	r.kind.Append(proto.Enum8(k.Kind))
	r.day = append(r.day, date(k.IngestTime))
	r.eventTime = append(r.eventTime, schemas.TradeTime(k))
	var id [16]byte
	copy(id[:], k.EventId)
	r.eventID = append(r.eventID, id)
	r.ingestTime = append(r.ingestTime, k.IngestTime)
	r.base.add(k.Base)
	r.quote.add(k.Quote)
	r.quoteID.add(t.QuoteId)
	r.price.add(k.Price)
	r.size.add(k.Size)
	r.side.Append(proto.Enum8(k.Side))
	r.tradeID.Append(k.TradeId)
	r.bid.add(k.Bid)
	r.ask.add(k.Ask)
	r.last.add(k.Last)
	r.volumeBase.add(k.VolumeBase)
	r.volumeQuote.add(k.VolumeQuote)
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

func (r *tickRows) columns() []column {
	const (
		text  = "LowCardinality(String)"
		time  = "DateTime64(9, 'UTC')"
		money = "Nullable(Decimal(38, 18))"
	)
	return slices.Concat([]column{
		{"coin_id", text, &r.coinID},
		{"venue", text, &r.venue},
		{"symbol", text, &r.symbol},
		{"kind", "Enum8('trade' = 1, 'quote' = 2, 'ticker' = 3)", &r.kind},
		{"day", "Date", &r.day},
		{"event_time", time, &r.eventTime},
		{"event_id", "FixedString(16)", &r.eventID},
		{"ingest_time", time, &r.ingestTime},
		{"base", text, &r.base},
		{"quote", text, &r.quote},
		{"quote_id", text, &r.quoteID},
		{"price", money, &r.price},
		{"size", money, &r.size},
		{"side", "Enum8('' = 0, 'buy' = 1, 'sell' = 2)", &r.side},
		{"trade_id", "String", &r.tradeID},
		{"bid", money, &r.bid},
		{"ask", money, &r.ask},
		{"last", money, &r.last},
		{"volume_base", money, &r.volumeBase},
		{"volume_quote", money, &r.volumeQuote},
		{"rate", "Float64", &r.rate},
		{"rate_time", time, &r.rateTime},
		{"rate_offset", "Int64", &r.rateOffset},
		{"flags", "UInt32", &r.flags},
		{"snapshot", "Bool", &r.snapshot},
		{"simulated", "Bool", &r.simulated},
		{"raw_partition", "Int32", &r.rawPartition},
		{"raw_offset", "Int64", &r.rawOffset},
	}, r.place.columns())
}

func (r *tickRows) reset() {
	reset(&r.coinID, &r.venue, &r.symbol, &r.kind, &r.day, &r.eventTime, &r.eventID, &r.ingestTime, &r.base, &r.quote, &r.quoteID,
		&r.price, &r.size, &r.side, &r.tradeID, &r.bid, &r.ask, &r.last, &r.volumeBase, &r.volumeQuote,
		&r.rate, &r.rateTime, &r.rateOffset, &r.flags, &r.snapshot, &r.simulated, &r.rawPartition, &r.rawOffset)
	r.place.reset()
}
