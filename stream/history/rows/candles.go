package rows

import (
	"slices"

	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// candleTables are the rows of closed minutes, of the published price and of each venue.
type candleTables struct {
	candles candleRows
	venues  venueCandleRows
}

func (t *candleTables) all() []native.Rows { return []native.Rows{&t.candles, &t.venues} }

func (t *candleTables) add(_ Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.CandleRecord)
	switch body := rec.Body.(type) {
	case *eventsv1.CandleRecord_Candle:
		t.candles.add(rec.Mark, body.Candle)
	case *eventsv1.CandleRecord_VenueCandle:
		t.venues.add(rec.Mark, body.VenueCandle)
	default:
		return false
	}
	return true
}

// candleRows are rows of candles_1m.
type candleRows struct {
	coinID                 native.LowCardinality
	start                  proto.ColDateTime
	open, high, low, close proto.ColFloat64
	volume                 proto.ColDecimal256
	volumeUSD              proto.ColFloat64
	trades                 proto.ColUInt64
	place                  place
}

func (r *candleRows) Table() string { return "candles_1m" }
func (r *candleRows) Len() int      { return len(r.open) }

func (r *candleRows) add(mark *eventsv1.Mark, c *eventsv1.Candle) {
	r.coinID.Add(c.CoinId)
	r.start.Data = append(r.start.Data, native.Second(c.Start))
	r.open = append(r.open, c.Open)
	r.high = append(r.high, c.High)
	r.low = append(r.low, c.Low)
	r.close = append(r.close, c.Close)
	r.volume = append(r.volume, native.Decimal256(c.Volume))
	r.volumeUSD = append(r.volumeUSD, c.VolumeUsd)
	r.trades = append(r.trades, c.Trades)
	r.place.mark(mark)
}

func (r *candleRows) Columns() []native.Column {
	return slices.Concat([]native.Column{
		native.Col("coin_id", "LowCardinality(String)", &r.coinID),
		native.Col("start", "DateTime('UTC')", &r.start),
		native.Col("open", "Float64", &r.open),
		native.Col("high", "Float64", &r.high),
		native.Col("low", "Float64", &r.low),
		native.Col("close", "Float64", &r.close),
		native.Col("volume", "Decimal(76, 18)", &r.volume),
		native.Col("volume_usd", "Float64", &r.volumeUSD),
		native.Col("trades", "UInt64", &r.trades),
	}, r.place.columns())
}

func (r *candleRows) Reset() {
	native.Reset(&r.coinID, &r.start, &r.open, &r.high, &r.low, &r.close, &r.volume, &r.volumeUSD, &r.trades)
	r.place.reset()
}

// venueCandleRows are rows of venue_candles_1m.
type venueCandleRows struct {
	venue, symbol          native.LowCardinality
	start                  proto.ColDateTime
	coinID, quoteID        native.LowCardinality
	open, high, low, close proto.ColDecimal128
	volume                 proto.ColDecimal256
	trades                 proto.ColUInt64
	place                  place
}

func (r *venueCandleRows) Table() string { return "venue_candles_1m" }
func (r *venueCandleRows) Len() int      { return len(r.open) }

func (r *venueCandleRows) add(mark *eventsv1.Mark, c *eventsv1.VenueCandle) {
	r.venue.Add(c.Venue)
	r.symbol.Add(c.Symbol)
	r.start.Data = append(r.start.Data, native.Second(c.Start))
	r.coinID.Add(c.CoinId)
	r.quoteID.Add(c.QuoteId)
	r.open = append(r.open, native.Decimal128(c.Open))
	r.high = append(r.high, native.Decimal128(c.High))
	r.low = append(r.low, native.Decimal128(c.Low))
	r.close = append(r.close, native.Decimal128(c.Close))
	r.volume = append(r.volume, native.Decimal256(c.Volume))
	r.trades = append(r.trades, c.Trades)
	r.place.mark(mark)
}

func (r *venueCandleRows) Columns() []native.Column {
	const (
		text  = "LowCardinality(String)"
		money = "Decimal(38, 18)"
	)
	return slices.Concat([]native.Column{
		native.Col("venue", text, &r.venue),
		native.Col("symbol", text, &r.symbol),
		native.Col("start", "DateTime('UTC')", &r.start),
		native.Col("coin_id", text, &r.coinID),
		native.Col("quote_id", text, &r.quoteID),
		native.Col("open", money, &r.open),
		native.Col("high", money, &r.high),
		native.Col("low", money, &r.low),
		native.Col("close", money, &r.close),
		native.Col("volume", "Decimal(76, 18)", &r.volume),
		native.Col("trades", "UInt64", &r.trades),
	}, r.place.columns())
}

func (r *venueCandleRows) Reset() {
	native.Reset(&r.venue, &r.symbol, &r.start, &r.coinID, &r.quoteID, &r.open, &r.high, &r.low, &r.close, &r.volume, &r.trades)
	r.place.reset()
}
