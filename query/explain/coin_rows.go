package explain

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// loggedRow is the newest row of a coin as the log has it.
type loggedRow struct {
	row *eventsv1.Market
	at  Place
}

// servedRows reads the rows of all coins that are served, of which each is of the last hour, from the log.
func (w *work) servedRows(ctx context.Context) (map[string]loggedRow, error) {
	if w.served != nil {
		return w.served, nil
	}
	written, from, to := map[string]int64{}, int64(endless), int64(0)
	for _, coin := range w.snapshot.Coins {
		if row := coin.FoldedRow; row != nil {
			written[coin.ID] = row.Time
			from, to = min(from, row.Time), max(to, row.Time)
		}
	}
	logged := make(map[string]loggedRow, len(written))
	if len(written) > 0 {
		_, err := w.scan(ctx, schemas.TopicMarkets, 0, from, to, func(rec *kgo.Record) bool {
			if rec.Timestamp.UnixNano() != written[string(rec.Key)] {
				return true // the row is written at the end of its minute: no other needs to be decoded
			}
			record, err := schemas.DecodeRecord(schemas.TopicMarkets, rec.Value)
			if market, ok := record.(*eventsv1.MarketRecord); err == nil && ok && market.GetMarket() != nil {
				logged[market.GetMarket().CoinId] = loggedRow{market.GetMarket(), place(schemas.TopicMarkets, 0, rec.Offset)}
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	w.served = logged
	return logged, nil
}

// measuredAgain is a row of the log as it is served: where candles give the change over 24 hours, these are read again for it.
func (w *work) measuredAgain(ctx context.Context, coin *views.CatalogCoin, row *eventsv1.Market) (*eventsv1.Market, error) {
	if coin.Figures.DayAgo == 0 {
		return row, nil
	}
	closes, err := w.closesDayAgo(ctx, coin.FiguresAt)
	return schemas.CandleFigures{DayAgo: closes[coin.ID]}.Measure(row), err
}

// closesDayAgo are the closes of all coins 24 hours before a time: of the last minute, or where there is none of the last hour, that
// ended by then, and not long before.
func (w *work) closesDayAgo(ctx context.Context, at time.Time) (map[string]float64, error) {
	if closes, ok := w.dayAgo[at]; ok {
		return closes, nil
	}
	from := at.Add(-oneDay)
	hours, err := w.History.AllIntervals(ctx, time.Hour, from.Add(-dayAgoReach).Truncate(time.Hour), from)
	if err != nil {
		return nil, err
	}
	minutes, err := w.History.AllIntervals(ctx, time.Minute, from.Add(-1).Truncate(time.Hour), from)
	if err != nil {
		return nil, err
	}
	closes := map[string]float64{}
	for id, candles := range hours {
		for _, c := range candles {
			if ended := c.Newest.Add(time.Minute); !ended.After(from) && !ended.Before(from.Add(-dayAgoReach)) {
				closes[id] = c.Close
			}
		}
	}
	for id, candles := range minutes {
		closes[id] = candles[len(candles)-1].Close
	}
	if w.dayAgo == nil {
		w.dayAgo = map[time.Time]map[string]float64{}
	}
	w.dayAgo[at] = closes
	return closes, nil
}

// rowInput is a field of a coin's row as it is served, among the inputs of what is made of many rows.
func rowInput(coin *views.CatalogCoin, field marketField) *Node {
	return headline("market/"+coin.ID+"/"+field.name, field.value(coin.Market), field.unit, coin.Market.Time)
}

// traceRows gives inputs that are fields of rows the places of these or, with levels left, their own inputs.
func (w *work) traceRows(ctx context.Context, inputs []*Node, depth int) error {
	for i, in := range inputs {
		parts, err := parse(in.Number)
		if err != nil {
			return err
		}
		if field, _ := marketFieldNamed(parts[2]); w.expands(depth) {
			if inputs[i], err = w.market(ctx, w.snapshot.ByID(parts[1]), field, depth); err != nil {
				return err
			}
		} else if logged, ok := w.served[parts[1]]; ok {
			in.Records = []Place{logged.at}
		}
	}
	return nil
}
