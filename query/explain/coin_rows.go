package explain

import (
	"cmp"
	"context"
	"fmt"
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

// coinRows are the rows of all coins that are served, of which each is of the last hour, as the log has them.
type coinRows struct {
	of     *views.Snapshot
	logged map[string]loggedRow
	// lacks counts the coins whose row, or what candles showed of them, could not be read again; why is the reason, where that is known.
	lacks int
	why   string
}

// notReproduced reports that a number was not made of them again.
func (r *coinRows) notReproduced(n *Node) {
	n.notReproduced("not computed again: " + cmp.Or(r.why, fmt.Sprintf("the log no longer has the rows of %d of the coins", r.lacks)))
}

// servedRows reads the rows of the coins of a snapshot.
func (w *work) servedRows(ctx context.Context, snapshot *views.Snapshot) (*coinRows, error) {
	rows := &coinRows{of: snapshot, logged: w.served}
	if rows.logged != nil {
		return rows, nil
	}
	written, from, to := map[string]int64{}, int64(endless), int64(0)
	for _, coin := range snapshot.Coins {
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
		if rows.why = lacks(err); rows.why != "" {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
	}
	w.served, rows.logged = logged, logged
	return rows, nil
}

// rowAgain is a row of the log as it is served, nil where it lacks: where candles give the change over 24 hours, these are read again for it. As of an instant what
// candles showed is what served.v1 has of it, since they have gone on.
func (w *work) rowAgain(ctx context.Context, rows *coinRows, coin *views.CatalogCoin) (*eventsv1.Market, error) {
	held, ok := rows.logged[coin.ID]
	switch {
	case !ok:
		rows.lacks++
		return nil, nil
	case coin.Figures.DayAgo == 0:
		return held.row, nil
	case !w.past:
		closes, err := w.closesDayAgo(ctx, coin.FiguresAt)
		return schemas.CandleFigures{DayAgo: closes[coin.ID]}.Measure(held.row), err
	}
	at, err := w.figuresRecord(ctx, coin)
	if err == nil && at == nil {
		rows.lacks, rows.why = rows.lacks+1, noFigures
		return nil, nil
	}
	return coin.Figures.Measure(held.row), err
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
func (w *work) traceRows(ctx context.Context, rows *coinRows, inputs []*Node, depth int) error {
	for i, in := range inputs {
		parts, err := parse(in.Number)
		if err != nil {
			return err
		}
		coin := rows.of.ByID(parts[1])
		if field, _ := marketFieldNamed(parts[2]); w.expands(depth) {
			if inputs[i], err = w.marketServed(ctx, coin, field, depth); err != nil {
				return err
			}
		} else if logged, ok := rows.logged[parts[1]]; ok {
			in.Records = []Place{logged.at}
		}
	}
	return nil
}
