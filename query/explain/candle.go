package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// intervals are the lengths of candles, by name.
var intervals = map[string]time.Duration{
	"1m": time.Minute, "5m": 5 * time.Minute, "15m": 15 * time.Minute, "1h": time.Hour, "4h": 4 * time.Hour, "1d": oneDay,
}

var intervalNames = []string{"1m", "5m", "15m", "1h", "4h", "1d"}

// candleField is a number of a candle.
type candleField struct {
	name, unit string
	// minute and longer say how it is made of the prices and trades of a minute, and of minutes.
	minute, longer string
	value          func(schemas.Candle) float64
}

const fieldVolumeUSD = "volumeUsd"

var candleFields = []candleField{
	{"open", usd, "the first published price of the minute", "open of the first minute", func(c schemas.Candle) float64 { return c.Open }},
	{"high", usd, "the highest published price of the minute", "greatest high of the minutes", func(c schemas.Candle) float64 { return c.High }},
	{"low", usd, "the lowest published price of the minute", "smallest low of the minutes", func(c schemas.Candle) float64 { return c.Low }},
	{"close", usd, "the last published price of the minute", "close of the last minute", func(c schemas.Candle) float64 { return c.Close }},
	{"volume", "", "exact sum of what the venues traded that are accepted in the last price of the minute", "exact sum over the minutes", func(c schemas.Candle) float64 { return c.Volume.InexactFloat64() }},
	{fieldVolumeUSD, usd, "sum of price x size x exchange rate over the trades of these venues", "sum over the minutes", func(c schemas.Candle) float64 { return c.VolumeUSD }},
	{"trades", "", "number of trades of the venues that are accepted in the last price of the minute", "sum over the minutes", func(c schemas.Candle) float64 { return float64(c.Trades) }},
}

func candleFieldNames() []string {
	names := make([]string, len(candleFields))
	for i, f := range candleFields {
		names[i] = f.name
	}
	return names
}

func candleNumber(coinID, interval string, start time.Time) string {
	return "candle/" + coinID + "/" + interval + "/" + start.UTC().Format(time.RFC3339)
}

// candleNamed explains the number of a candle that a name means.
func (w *work) candleNamed(ctx context.Context, coin *views.CatalogCoin, name string, parts []string, depth int) (*Node, error) {
	step, ok := intervals[parts[2]]
	if !ok {
		return nil, w.nearField(name, parts, 2, intervalNames)
	}
	start, err := time.Parse(time.RFC3339, strings.ToUpper(parts[3]))
	if err != nil || !start.Truncate(step).Equal(start) || start.Unix() < 0 {
		return nil, query.Invalid("number", "the start of a candle of %s must be the beginning of one, as in %s", parts[2], w.now.UTC().Truncate(step).Add(-step).Format(time.RFC3339))
	}
	field := "close"
	if len(parts) == 5 {
		if field = parts[4]; !slices.Contains(candleFieldNames(), field) {
			return nil, w.nearField(name, parts, 4, candleFieldNames())
		}
	}
	if w.past && w.asOf.Before(start.Add(step)) {
		return nil, query.NotFound("the candle had not closed by %s", query.FormatTime(w.asOf.UnixNano()))
	}
	return w.candle(ctx, coin, parts[2], start.UTC(), field, depth)
}

// candle explains a number of a closed candle.
func (w *work) candle(ctx context.Context, coin *views.CatalogCoin, interval string, start time.Time, field string, depth int) (*Node, error) {
	step := intervals[interval]
	closed, err := w.History.ClosedUntil(ctx)
	if err != nil {
		return nil, err
	}
	if end := start.Add(step); end.After(closed) {
		return nil, query.NotFound("the candle of %s that starts at %s has not closed: live minutes are there up to %s", coin.ID, start.Format(time.RFC3339), closed.Format(time.RFC3339))
	}
	c, ok, err := w.storedCandle(ctx, coin.ID, step, start)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, query.NotFound("there is no candle of %s that starts at %s: it had no price then", coin.ID, start.Format(time.RFC3339))
	}
	of := candleFields[slices.IndexFunc(candleFields, func(f candleField) bool { return f.name == field })]
	value := of.value(c)
	n := headline(candleNumber(coin.ID, interval, start)+"/"+field, &value, of.unit, start.UnixNano())
	n.Method = &Method{Name: "joined-candles", Version: 1, Formula: of.longer}
	if interval == "1m" {
		n.Method = &Method{Name: "candle", Version: logic(schemas.TopicCandles), Formula: of.minute}
	}
	if c.Origin != schemas.OriginLive {
		n.Method.Name += "-" + string(c.Origin)
	}
	switch {
	case interval == "1m" && c.Origin == schemas.OriginLive:
		return n, w.liveMinute(ctx, n, coin, c, of, depth)
	case interval == "1m":
		n.Note = "from candles of venues (" + string(c.Origin) + "), which are not folded again for an explanation"
		return n, nil
	case depth <= 0:
		return n, nil
	}
	return n, w.longerCandle(ctx, n, coin, c, of, step, depth)
}

// storedCandle is the candle that charts show.
func (w *work) storedCandle(ctx context.Context, coinID string, step time.Duration, start time.Time) (c schemas.Candle, ok bool, err error) {
	length := step
	if step != oneDay && step != time.Hour {
		length = time.Minute
	}
	candles, err := w.History.Intervals(ctx, coinID, length, start, start.Add(step))
	if err != nil {
		return c, false, err
	}
	if length != step {
		candles = schemas.JoinCandles(candles, step)
	}
	if len(candles) == 0 {
		return c, false, nil
	}
	return candles[0], true, nil
}

const (
	// closedWithin is how long after its end a candle is looked for in the log.
	closedWithin = 10 * time.Minute
	// mostPrices bounds the prices of a minute: one a second.
	mostPrices = 60
)

// liveMinute explains a minute that was folded from published prices and trades.
func (w *work) liveMinute(ctx context.Context, n *Node, coin *views.CatalogCoin, c schemas.Candle, field candleField, depth int) error {
	topic, _ := schemas.TopicNamed(schemas.TopicCandles)
	closes := c.Start.Add(time.Minute + schemas.AllowedLateness)
	p := partition(coin.ID, topic.Partitions)
	_, err := w.scan(ctx, topic.Name, p, c.Start.UnixNano(), endless, func(r *kgo.Record) bool {
		if string(r.Key) == coin.ID && len(n.Records) == 0 {
			record, err := schemas.DecodeRecord(topic.Name, r.Value)
			if candle, ok := record.(*eventsv1.CandleRecord); err == nil && ok && candle.GetCandle().GetStart() == c.Start.UnixNano() && candle.GetCandle() != nil {
				n.Records, n.Method.Version = []Place{place(topic.Name, p, r.Offset)}, candle.Mark.GetLogicVersion()
			}
		}
		return len(n.Records) == 0 && r.Timestamp.Before(closes.Add(closedWithin))
	})
	if err != nil || depth <= 0 {
		return err
	}
	oldest, err := w.History.OldestPrice(ctx, w.now)
	if err != nil {
		return err
	}
	switch {
	case c.Start.Unix() < oldest:
		n.Note = "not computed again: the prices of every second are not kept so long"
	case field.name == fieldVolumeUSD:
		n.Note = "not computed again: it is a sum over single trades"
	case field.name == "volume" || field.name == "trades":
		return w.tradedMinute(ctx, n, coin, c, field)
	default:
		return w.pricedMinute(ctx, n, coin, c, field)
	}
	return nil
}

// pricedMinute folds the prices of a minute again.
func (w *work) pricedMinute(ctx context.Context, n *Node, coin *views.CatalogCoin, c schemas.Candle, field candleField) error {
	var again schemas.Candle
	var prices []views.SpanPrice
	start := c.Start.Unix()
	err := w.History.PricesBetween(ctx, start-1, start+59, []string{coin.ID}, mostPrices, func(p views.SpanPrice) {
		if len(prices) == 0 {
			again.Open, again.High, again.Low = p.Price, p.Price, p.Price
		}
		again.High, again.Low, again.Close = max(again.High, p.Price), min(again.Low, p.Price), p.Price
		prices = append(prices, p)
	})
	if err != nil {
		return err
	}
	recomputed := field.value(again)
	n.compare(&recomputed)
	// The price that decides comes first.
	slices.SortStableFunc(prices, func(a, b views.SpanPrice) int {
		switch value := field.value(c); {
		case (a.Price == value) == (b.Price == value):
			return 0
		case a.Price == value:
			return -1
		}
		return 1
	})
	// The places of all prices of the minute are found at once.
	places, err := w.pricePlaces(ctx, coin.ID, c.Start)
	if err != nil {
		return err
	}
	for _, p := range prices {
		in := headline("price/"+coin.ID, &p.Price, usd, p.Second*int64(time.Second))
		if at, ok := places[p.Second]; ok {
			in.Records = []Place{at}
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(false)
	return nil
}

// pricePlaces are where the prices of a minute lie in the log, by second.
func (w *work) pricePlaces(ctx context.Context, coinID string, start time.Time) (map[int64]Place, error) {
	topic, _ := schemas.TopicNamed(schemas.TopicPrices)
	p := partition(coinID, topic.Partitions)
	places := map[int64]Place{}
	end := start.Add(time.Minute).UnixNano()
	_, err := w.scan(ctx, topic.Name, p, start.UnixNano(), end+int64(publishedWithin), func(r *kgo.Record) bool {
		if string(r.Key) == coinID {
			record, err := schemas.DecodeRecord(topic.Name, r.Value)
			if price, ok := record.(*eventsv1.PriceRecord); err == nil && ok && price.GetPrice() != nil && price.GetPrice().Time < end {
				places[price.GetPrice().Time/int64(time.Second)] = place(topic.Name, p, r.Offset)
			}
		}
		return true
	})
	return places, err
}

// tradedMinute adds again what the accepted venues traded in a minute.
func (w *work) tradedMinute(ctx context.Context, n *Node, coin *views.CatalogCoin, c schemas.Candle, field candleField) error {
	last, err := w.History.PriceAt(ctx, coin.ID, c.Start.Add(59*time.Second))
	if err != nil {
		return err
	}
	traded, err := w.History.VenueMinutes(ctx, coin.ID, c.Start)
	if err != nil {
		return err
	}
	var accepted []string
	for _, in := range last.GetPrice().GetInputs() {
		if in.Accepted {
			accepted = append(accepted, in.Provider)
		}
	}
	again := schemas.Candle{}
	for _, m := range traded {
		value := float64(m.Trades)
		if field.name == "volume" {
			value = m.Volume.InexactFloat64()
		}
		in := stated("venue-candle/"+m.Venue+"/"+m.Symbol+"/"+field.name, &value, field.unit, c.Start.UnixNano(), n.Records...)
		if slices.Contains(accepted, m.Venue) {
			again.Volume, again.Trades = again.Volume.Add(m.Volume), again.Trades+m.Trades
		} else {
			in.Note = "does not count: the venue was not accepted in the last price of the minute"
		}
		n.Inputs = append(n.Inputs, in)
	}
	recomputed := field.value(again)
	n.compare(&recomputed)
	n.fewer(false)
	return nil
}

// longerCandle folds the minutes of a longer candle again.
func (w *work) longerCandle(ctx context.Context, n *Node, coin *views.CatalogCoin, c schemas.Candle, field candleField, step time.Duration, depth int) error {
	minutes, err := w.History.Intervals(ctx, coin.ID, time.Minute, c.Start, c.Start.Add(step))
	if err != nil {
		return err
	}
	joined := schemas.JoinCandles(minutes, step)
	switch {
	case field.name == fieldVolumeUSD:
		n.Note = "not computed again: a sum of floats depends on the order of its parts"
	case len(joined) != 1 || joined[0].Minutes != c.Minutes:
		n.Note = fmt.Sprintf("not computed again: it is a candle of venues of its own length (%s), not one of minutes", c.Origin)
		return nil
	default:
		recomputed := field.value(joined[0])
		n.compare(&recomputed)
	}
	value := field.value(c)
	slices.SortStableFunc(minutes, func(a, b schemas.Candle) int { // the minute that decides comes first
		switch same := field.value(a) == value; {
		case same == (field.value(b) == value) || field.name == "volume" || field.name == "trades":
			return 0
		case same:
			return -1
		}
		return 1
	})
	for i, m := range minutes {
		v := field.value(m)
		if i >= shown {
			n.Inputs = append(n.Inputs, &Node{Value: &v})
			continue
		}
		in := headline(candleNumber(coin.ID, "1m", m.Start)+"/"+field.name, &v, field.unit, m.Start.UnixNano())
		if w.expands(depth - 1) {
			if in, err = w.candle(ctx, coin, "1m", m.Start, field.name, depth-1); err != nil {
				return err
			}
		}
		n.Inputs = append(n.Inputs, in)
	}
	n.fewer(field.name == "volume" || field.name == "trades")
	return nil
}
