package history

import (
	"slices"

	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// candleTables are the rows of closed minutes, of the published price and of each venue.
type candleTables struct {
	candles candleRows
	venues  venueCandleRows
}

func (t *candleTables) all() []rows { return []rows{&t.candles, &t.venues} }

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
	coinID                 lowCardinality
	start                  proto.ColDateTime
	open, high, low, close proto.ColFloat64
	volume                 proto.ColDecimal256
	volumeUSD              proto.ColFloat64
	trades                 proto.ColUInt64
	place                  place
}

func (r *candleRows) table() string { return "candles_1m" }
func (r *candleRows) len() int      { return len(r.open) }

func (r *candleRows) add(mark *eventsv1.Mark, c *eventsv1.Candle) {
	r.coinID.add(c.CoinId)
	r.start.Data = append(r.start.Data, second(c.Start))
	r.open = append(r.open, c.Open)
	r.high = append(r.high, c.High)
	r.low = append(r.low, c.Low)
	r.close = append(r.close, c.Close)
	r.volume = append(r.volume, decimal256(c.Volume))
	r.volumeUSD = append(r.volumeUSD, c.VolumeUsd)
	r.trades = append(r.trades, c.Trades)
	r.place.mark(mark)
}

func (r *candleRows) columns() []column {
	return slices.Concat([]column{
		{"coin_id", "LowCardinality(String)", &r.coinID},
		{"start", "DateTime('UTC')", &r.start},
		{"open", "Float64", &r.open},
		{"high", "Float64", &r.high},
		{"low", "Float64", &r.low},
		{"close", "Float64", &r.close},
		{"volume", "Decimal(76, 18)", &r.volume},
		{"volume_usd", "Float64", &r.volumeUSD},
		{"trades", "UInt64", &r.trades},
	}, r.place.columns())
}

func (r *candleRows) reset() {
	reset(&r.coinID, &r.start, &r.open, &r.high, &r.low, &r.close, &r.volume, &r.volumeUSD, &r.trades)
	r.place.reset()
}

// venueCandleRows are rows of venue_candles_1m.
type venueCandleRows struct {
	venue, symbol          lowCardinality
	start                  proto.ColDateTime
	coinID, quoteID        lowCardinality
	open, high, low, close proto.ColDecimal128
	volume                 proto.ColDecimal256
	trades                 proto.ColUInt64
	place                  place
}

func (r *venueCandleRows) table() string { return "venue_candles_1m" }
func (r *venueCandleRows) len() int      { return len(r.open) }

func (r *venueCandleRows) add(mark *eventsv1.Mark, c *eventsv1.VenueCandle) {
	r.venue.add(c.Venue)
	r.symbol.add(c.Symbol)
	r.start.Data = append(r.start.Data, second(c.Start))
	r.coinID.add(c.CoinId)
	r.quoteID.add(c.QuoteId)
	r.open = append(r.open, decimal128(c.Open))
	r.high = append(r.high, decimal128(c.High))
	r.low = append(r.low, decimal128(c.Low))
	r.close = append(r.close, decimal128(c.Close))
	r.volume = append(r.volume, decimal256(c.Volume))
	r.trades = append(r.trades, c.Trades)
	r.place.mark(mark)
}

func (r *venueCandleRows) columns() []column {
	const (
		text  = "LowCardinality(String)"
		money = "Decimal(38, 18)"
	)
	return slices.Concat([]column{
		{"venue", text, &r.venue},
		{"symbol", text, &r.symbol},
		{"start", "DateTime('UTC')", &r.start},
		{"coin_id", text, &r.coinID},
		{"quote_id", text, &r.quoteID},
		{"open", money, &r.open},
		{"high", money, &r.high},
		{"low", money, &r.low},
		{"close", money, &r.close},
		{"volume", "Decimal(76, 18)", &r.volume},
		{"trades", "UInt64", &r.trades},
	}, r.place.columns())
}

func (r *venueCandleRows) reset() {
	reset(&r.venue, &r.symbol, &r.start, &r.coinID, &r.quoteID, &r.open, &r.high, &r.low, &r.close, &r.volume, &r.trades)
	r.place.reset()
}
