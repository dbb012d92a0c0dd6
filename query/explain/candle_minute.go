package explain

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/shopspring/decimal"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// closedWithin is how long after its end a candle is looked for in the log.
const closedWithin = 10 * time.Minute

// loggedMinute is what candles.v1 has of a minute of a coin: its candle, and what each market traded.
type loggedMinute struct {
	candle *Place
	logic  uint32
	venues []*eventsv1.VenueCandle
	places []Place // of the venues
}

// has reports whether a market's candle is there: of two records of one the first counts.
func (m *loggedMinute) has(c *eventsv1.VenueCandle) bool {
	return slices.ContainsFunc(m.venues, func(known *eventsv1.VenueCandle) bool { return known.Venue == c.Venue && known.Symbol == c.Symbol })
}

// loggedMinute reads what a fold wrote of a minute when it closed, up to the pulse that closed it.
func (w *work) loggedMinute(ctx context.Context, coinID string, start time.Time) (*loggedMinute, error) {
	topic, _ := schemas.TopicNamed(schemas.TopicCandles)
	p := partition(coinID, topic.Partitions)
	closes := start.Add(time.Minute + schemas.AllowedLateness)
	m := &loggedMinute{}
	_, err := w.scan(ctx, topic.Name, p, start.UnixNano(), endless, func(r *kgo.Record) bool {
		if len(r.Key) > 0 && string(r.Key) != coinID {
			return true
		}
		record, err := schemas.DecodeRecord(topic.Name, r.Value)
		if err != nil {
			return true
		}
		if pulse := record.GetPulse(); pulse != nil {
			return pulse.Watermark < closes.UnixNano() && r.Timestamp.Before(closes.Add(closedWithin))
		}
		of, ok := record.(*eventsv1.CandleRecord)
		at := place(topic.Name, p, r.Offset)
		switch {
		case !ok:
		case of.GetCandle() != nil && of.GetCandle().Start == start.UnixNano() && m.candle == nil:
			m.candle, m.logic = &at, of.Mark.GetLogicVersion()
		case of.GetVenueCandle() != nil && of.GetVenueCandle().Start == start.UnixNano() && !m.has(of.GetVenueCandle()):
			m.venues, m.places = append(m.venues, of.GetVenueCandle()), append(m.places, at)
		}
		return true
	})
	return m, err
}

// liveMinute explains a minute that was folded from published prices and trades.
func (w *work) liveMinute(ctx context.Context, n *Node, coin *views.CatalogCoin, c schemas.Candle, field candleField, depth int) error {
	logged, err := w.loggedMinute(ctx, coin.ID, c.Start)
	if err != nil {
		return err
	}
	if logged.candle != nil {
		n.Records, n.Method.Version = []Place{*logged.candle}, logged.logic
	}
	if depth <= 0 {
		return nil
	}
	prices, whole, err := w.loggedPrices(ctx, coin.ID, c.Start, c.Start.Add(time.Minute))
	switch {
	case err != nil:
		return err
	case logged.candle == nil || !whole || len(prices) == 0:
		n.Note = "not computed again: the log no longer has all prices and candles of the minute"
	case field.name == fieldVolumeUSD:
		return w.turnoverMinute(ctx, n, coin, logged, prices[len(prices)-1].accepted, c)
	case field.name == "volume" || field.name == "trades":
		tradedMinute(n, logged, prices[len(prices)-1].accepted, c, field)
	default:
		pricedMinute(n, coin, prices, c, field)
	}
	return nil
}

// loggedPrice is a published price of a minute, and which providers it accepted.
type loggedPrice struct {
	second   int64
	price    float64
	accepted []string
	at       Place
}

// loggedPrices reads the prices of the seconds in [start, end), in the order of the log, which is theirs. It is not whole if the log began later.
func (w *work) loggedPrices(ctx context.Context, coinID string, start, end time.Time) (prices []loggedPrice, whole bool, err error) {
	topic, _ := schemas.TopicNamed(schemas.TopicPrices)
	p := partition(coinID, topic.Partitions)
	first, err := w.scan(ctx, topic.Name, p, start.UnixNano(), end.Add(views.PublishedWithin).UnixNano(), func(r *kgo.Record) bool {
		if string(r.Key) != coinID {
			return true
		}
		record, err := schemas.DecodeRecord(topic.Name, r.Value)
		of, ok := record.(*eventsv1.PriceRecord)
		if err != nil || !ok || of.GetPrice() == nil || of.GetPrice().Reason != "" {
			return true // the fold of candles takes neither
		}
		price := of.GetPrice()
		known := slices.ContainsFunc(prices, func(before loggedPrice) bool { return before.second == price.Time/int64(time.Second) })
		if price.Time < start.UnixNano() || price.Time >= end.UnixNano() || known { // of two of a second the first counts
			return true
		}
		l := loggedPrice{second: price.Time / int64(time.Second), price: price.Price, at: place(topic.Name, p, r.Offset)}
		for _, in := range price.Inputs {
			if in.Accepted {
				l.accepted = append(l.accepted, in.Provider)
			}
		}
		prices = append(prices, l)
		return true
	})
	return prices, err == nil && w.reachesBack(ctx, topic.Name, p, first), err
}

// pricedMinute folds the prices of a minute again.
func pricedMinute(n *Node, coin *views.CatalogCoin, prices []loggedPrice, c schemas.Candle, field candleField) {
	again := schemas.Candle{Open: prices[0].price, High: prices[0].price, Low: prices[0].price}
	for _, p := range prices {
		again.High, again.Low, again.Close = max(again.High, p.price), min(again.Low, p.price), p.price
	}
	recomputed := field.value(again)
	n.compare(&recomputed)
	value := field.value(c)
	slices.SortStableFunc(prices, func(a, b loggedPrice) int { return decidesFirst(a.price, b.price, value) })
	for _, p := range prices {
		n.Inputs = append(n.Inputs, stated("price/"+coin.ID, &p.price, usd, p.second*int64(time.Second), p.at))
	}
	n.fewer(false)
}

// tradedMinute adds again what the accepted venues traded in a minute.
func tradedMinute(n *Node, logged *loggedMinute, accepted []string, c schemas.Candle, field candleField) {
	again := schemas.Candle{}
	for i, m := range logged.venues {
		volume, err := decimal.NewFromString(m.Volume)
		if err != nil {
			n.notReproduced("a venue's candle has the volume " + strconv.Quote(m.Volume))
			return
		}
		value := float64(m.Trades)
		if field.name == "volume" {
			value = volume.InexactFloat64()
		}
		in := stated("venue-candle/"+m.Venue+"/"+m.Symbol+"/"+field.name, &value, field.unit, c.Start.UnixNano(), logged.places[i])
		if slices.Contains(accepted, m.Venue) {
			again.Volume, again.Trades = again.Volume.Add(volume), again.Trades+m.Trades
		} else {
			in.Note = "does not count: the venue was not accepted in the last price of the minute"
		}
		n.Inputs = append(n.Inputs, in)
	}
	recomputed := field.value(again)
	n.compare(&recomputed)
	n.fewer(false)
}
