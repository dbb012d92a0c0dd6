package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// ClosedCandle is a candle of a coin as the stream sends it: once, when its interval has closed.
type ClosedCandle struct {
	Symbol string `json:"symbol" example:"BTC"`
	CoinID string `json:"coinId" example:"bitcoin"`
	Point
}

// exampleCandle is one, for documents.
var exampleCandle = ClosedCandle{"BTC", "bitcoin", Point{Timestamp: "2026-03-01T09:58:00.000Z", Price: 101, Open: 100, High: 104, Low: 99.5, Close: 101,
	Volume: 2.5, VolumeUSD: 255.25, Trades: &exampleTrades, Complete: true, Origin: string(schemas.OriginLive)}}

var exampleTrades = uint64(7)

// ClosedHistory is where closed candles of many coins are kept.
type ClosedHistory interface {
	// ClosedCandles hands over the candles of an interval, folded from published prices, that end after one second and by another
	// (Unix), of the coins with these ids or of all, by end and coin, at most so many, with the partition of candles.v1 of each.
	ClosedCandles(ctx context.Context, interval time.Duration, after, until int64, coins []string, most int, visit func(coinID string, partition int32, c schemas.Candle)) error
}

// channelIntervals are the intervals whose closed candles the stream has, with their codes in cursors.
var channelIntervals = []struct {
	name string
	code byte
	step time.Duration
}{
	{"1m", 1, time.Minute},
	{"5m", 2, 5 * time.Minute},
	{"15m", 3, 15 * time.Minute},
	{"1h", 4, time.Hour},
	{"4h", 5, 4 * time.Hour},
	{"1d", 6, day},
}

// Channels declares the channels of closed candles, which are read from candles.v1. The coins are those that have candles;
// identity and store are of the log and of the table of minutes.
func Channels(coins *schemas.CoinTable, history ClosedHistory, store query.ChannelStore, identity string) []query.Channel {
	var all []query.Channel
	for _, of := range channelIntervals {
		fold := &candleFold{coins: coins, step: of.step, open: map[int32]*openInterval{}}
		all = append(all, query.Channel{
			Name: "candles:" + of.name, Code: of.code, Event: "candle_update",
			Doc: fmt.Sprintf("The candle of %s of each coin, once, some seconds after it has closed. It is folded from published prices only; "+
				"an interval without one has no candle.", of.name),
			Topic: schemas.TopicCandles, Step: of.step, Element: exampleCandle, Identity: identity, Store: store, Read: fold.read,
			Past: func(ctx context.Context, after, until int64, ids []string, most int, visit func(int32, query.ChannelElement)) error {
				var failed error
				err := history.ClosedCandles(ctx, of.step, after, until, ids, most, func(coinID string, partition int32, c schemas.Candle) {
					element, err := fold.element(coinID, c)
					if err != nil {
						failed = err
						return
					}
					visit(partition, element)
				})
				if err != nil {
					return err
				}
				return failed
			},
		})
	}
	return all
}

// candleFold folds the minutes of candles.v1 into closed candles of an interval.
type candleFold struct {
	coins *schemas.CoinTable
	step  time.Duration
	open  map[int32]*openInterval
}

// openInterval is what one partition has of the intervals that have not closed.
type openInterval struct {
	// from is the second (Unix) after which all minutes were read; 0 before the first pulse.
	from int64
	// closed is the end of the last interval that has closed.
	closed  int64
	candles []openCandle // in the order of the log
	places  map[openKey]int
}

type openKey struct {
	coinID string
	start  int64
}

// openCandle has its volume in USD as a decimal, as the views do: a sum of floats depends on its order.
type openCandle struct {
	coinID    string
	volumeUSD decimal.Decimal
	schemas.Candle
}

// end is the second (Unix) at which a candle's interval ends.
func (f *candleFold) end(c *schemas.Candle) int64 { return c.Start.Add(f.step).Unix() }

func (f *candleFold) read(partition int32, record eventsv1.Marked) (read query.ChannelRecord, err error) {
	rec, ok := record.(*eventsv1.CandleRecord)
	if !ok {
		return read, nil
	}
	open := f.open[partition]
	if open == nil {
		open = &openInterval{places: map[openKey]int{}}
		f.open[partition] = open
	}
	switch body := rec.Body.(type) {
	case *eventsv1.CandleRecord_Candle:
		return read, open.join(body.Candle, f.step)
	case *eventsv1.CandleRecord_Pulse:
		minutes := schemas.Minute(body.Pulse.Watermark-int64(schemas.AllowedLateness)) / int64(time.Second)
		return f.close(open, minutes)
	}
	return read, nil
}

// join takes a closed minute.
func (o *openInterval) join(minute *eventsv1.Candle, step time.Duration) error {
	volume, err := decimal.NewFromString(minute.Volume)
	if err != nil {
		return fmt.Errorf("reading the volume %q of %s: %w", minute.Volume, minute.CoinId, err)
	}
	at := time.Unix(0, minute.Start).UTC()
	c := schemas.Candle{
		Start: at.Truncate(step), Open: minute.Open, High: minute.High, Low: minute.Low, Close: minute.Close, Volume: volume, VolumeUSD: minute.VolumeUsd,
		Trades: minute.Trades, Minutes: 1, Newest: at, Origin: schemas.OriginLive,
	}
	usd := decimal.NewFromFloat(minute.VolumeUsd)
	key := openKey{minute.CoinId, c.Start.UnixNano()}
	i, known := o.places[key]
	if !known {
		o.places[key] = len(o.candles)
		o.candles = append(o.candles, openCandle{minute.CoinId, usd, c})
		return nil
	}
	joined := &o.candles[i]
	joined.Join(c)
	joined.volumeUSD = joined.volumeUSD.Add(usd)
	joined.VolumeUSD = joined.volumeUSD.InexactFloat64()
	return nil
}

// close hands over the candles of the intervals that have ended once all minutes up to a second are closed.
func (f *candleFold) close(o *openInterval, minutes int64) (read query.ChannelRecord, err error) {
	if o.from == 0 {
		o.from = minutes // what was read of those before may be a part
	}
	step := int64(f.step / time.Second)
	until := minutes - minutes%step
	if until <= o.closed {
		return read, nil
	}
	// The first interval began before the minutes that were read.
	read.Until, read.Partial = until, o.closed < (o.from+step-1)/step*step
	o.closed = until
	rest := o.candles[:0]
	clear(o.places)
	for _, c := range o.candles {
		if f.end(&c.Candle) > until {
			o.places[openKey{c.coinID, c.Start.UnixNano()}] = len(rest)
			rest = append(rest, c)
			continue
		}
		element, err := f.element(c.coinID, c.Candle)
		if err != nil {
			return read, err
		}
		read.Elements = append(read.Elements, element)
	}
	clear(o.candles[len(rest):])
	o.candles = rest
	return read, nil
}

// element is a closed candle as it is sent.
func (f *candleFold) element(coinID string, c schemas.Candle) (query.ChannelElement, error) {
	coin, _ := f.coins.ByID(coinID)
	encoded, err := json.Marshal(ClosedCandle{coin.Symbol, coinID, pointOf(joined{c, 1}, f.step)})
	if err != nil {
		return query.ChannelElement{}, fmt.Errorf("encoding a candle of %s: %w", coinID, err)
	}
	return query.ChannelElement{Second: f.end(&c), CoinID: coinID, JSON: encoded}, nil
}
