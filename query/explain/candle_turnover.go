package explain

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/shopspring/decimal"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// tradedAhead is how long before a minute a trade of it may have come: clocks of venues may be ahead.
	tradedAhead = 2 * time.Minute
	// tradedAfter is how long after the end of a minute the last trades of it are looked for.
	tradedAfter = 2 * time.Minute
)

// tradeID names a trade that was read: by the raw record that it was made of, of which a fold that began again may have written it twice.
type tradeID struct {
	partition int32
	offset    int64
	index     uint32
}

// turnover is what a venue traded of a coin in a minute.
type turnover struct {
	usd    float64
	trades []*Node
}

// turnoverMinute adds up again what the accepted venues traded in a minute, trade by trade, in USD.
func (w *work) turnoverMinute(ctx context.Context, n *Node, coin *views.CatalogCoin, logged *loggedMinute, accepted []string, c schemas.Candle) error {
	missing := uint64(0)
	counts, left := map[[2]string]uint64{}, map[[2]string]decimal.Decimal{}
	for _, v := range logged.venues {
		volume, err := decimal.NewFromString(v.Volume)
		if err != nil {
			n.notReproduced("a venue's candle has the volume " + strconv.Quote(v.Volume))
			return nil
		}
		market := [2]string{v.Venue, v.Symbol}
		counts[market], left[market] = v.Trades, volume
		missing += v.Trades
	}
	topic, _ := schemas.TopicNamed(schemas.TopicTicks)
	p := partition(coin.ID, topic.Partitions)
	venues, seen := map[string]*turnover{}, map[tradeID]bool{}
	from, to := c.Start.Add(-tradedAhead), c.Start.Add(time.Minute+tradedAfter)
	_, err := w.scan(ctx, topic.Name, p, from.UnixNano(), to.UnixNano(), func(r *kgo.Record) bool {
		t := tradeOf(r, coin.ID, c.Start)
		if t == nil {
			return missing > 0
		}
		id, market := tradeID{t.Mark.GetPartition(), t.Mark.GetOffset(), t.Mark.GetIndex()}, [2]string{t.GetTick().Tick.Venue, t.GetTick().Tick.Symbol}
		if seen[id] || counts[market] == 0 { // what came after the minute had closed does not count
			return true
		}
		seen[id] = true
		counts[market]--
		missing--
		size, _ := decimal.NewFromString(t.GetTick().Tick.Size)
		left[market] = left[market].Sub(size)
		v := venues[market[0]]
		if v == nil {
			v = &turnover{}
			venues[market[0]] = v
		}
		v.add(t.GetTick(), place(topic.Name, p, r.Offset))
		return missing > 0
	})
	switch {
	case err != nil && lacks(err) == "":
		return err
	case err != nil || missing > 0:
		n.Note = "not computed again: the log no longer has all trades of the minute"
		return nil
	}
	for market, volume := range left {
		if !volume.IsZero() { // of a trade that came too far ahead of the clock no record says whether it counted
			n.Note = fmt.Sprintf("not computed again: which trades of %s at %s counted cannot be told from the log", market[1], market[0])
			return nil
		}
	}
	sum, parts := 0.0, 0
	for _, venue := range accepted {
		v := venues[venue]
		if v == nil {
			continue
		}
		sum += v.usd
		parts += len(v.trades)
		in := headline("venue-turnover/"+venue+"/"+coin.ID, &v.usd, usd, c.Start.UnixNano())
		in.Inputs = v.trades
		in.fewer(true)
		n.Inputs = append(n.Inputs, in)
	}
	// Trades that came more than a minute ahead of the clock are counted later than they stand in the log.
	n.compareSum(sum, parts)
	n.fewer(true)
	return nil
}

// tradeOf is a trade of a coin that counts in a minute; nil for another record.
func tradeOf(r *kgo.Record, coinID string, start time.Time) *eventsv1.ResolvedRecord {
	record, err := schemas.DecodeRecord(schemas.TopicTicks, r.Value)
	of, is := record.(*eventsv1.ResolvedRecord)
	if err != nil || !is {
		return nil
	}
	t := of.GetTick()
	if t.GetTick() == nil || t.CoinId != coinID || !schemas.Traded(t) || schemas.Minute(schemas.TradeTime(t.Tick)) != start.UnixNano() {
		return nil
	}
	return of
}

// add adds a trade as the fold of candles does: price x size as a decimal, times the rate.
func (v *turnover) add(t *eventsv1.ResolvedTick, at Place) {
	price, errPrice := decimal.NewFromString(t.Tick.Price)
	size, errSize := decimal.NewFromString(t.Tick.Size)
	if errPrice != nil || errSize != nil {
		return // it is in no candle either
	}
	value := float64(price.Mul(size).InexactFloat64() * t.Rate)
	v.usd += value
	v.trades = append(v.trades, stated("trade/"+t.Tick.Venue+"/"+t.Tick.Symbol, &value, usd, schemas.TradeTime(t.Tick), at))
}
