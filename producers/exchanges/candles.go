package exchanges

import (
	"cmp"
	"net/url"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/adapter"
)

// candleColumns says which place of a row holds what of a candle, where a venue sends candles as lists.
type candleColumns struct {
	// Start counts Unit since 1970; without Unit, its digits show what it counts.
	Start, Open, High, Low, Close, Volume int
	Unit                                  time.Duration
	// Closed is the place of what says that the candle is complete, by "true" or "1"; 0: the row does not say.
	Closed int
	// Least is how many places a row has at least, where old answers lack the last ones; 0: up to the volume.
	Least int
}

// add reads rows into candles like e, which has what they share: market, channel, interval, and state where no place has it.
func (c candleColumns) add(rows [][]producers.Num, e adapter.Event, out *adapter.Out) error {
	e.Kind = adapter.Candle
	least := cmp.Or(c.Least, max(c.Start, c.Open, c.High, c.Low, c.Close, c.Volume)+1)
	for _, row := range rows {
		if len(row) < least {
			return producers.Unreadable("a candle of %d fields", len(row))
		}
		if c.Unit == 0 {
			e.Start = unixByDigits(row[c.Start])
		} else {
			e.Start = producers.Unix(row[c.Start], c.Unit)
		}
		e.OpenPrice, e.High, e.Low, e.ClosePrice = row[c.Open], row[c.High], row[c.Low], row[c.Close]
		if e.Volume = ""; len(row) > c.Volume {
			e.Volume = row[c.Volume]
		}
		if c.Closed > 0 {
			if e.State = ""; len(row) > c.Closed {
				e.State = stateOf(row[c.Closed])
			}
		}
		out.Add(e)
	}
	return nil
}

// stateOf reads whether a candle is complete; what is neither yes nor no leaves it open to doubt.
func stateOf(closed producers.Num) adapter.CandleState {
	switch closed {
	case "true", "1":
		return adapter.Closed
	case "false", "0":
		return adapter.Open
	}
	return ""
}

// candleState is of a field that is always sent.
func candleState(closed bool) adapter.CandleState {
	if closed {
		return adapter.Closed
	}
	return adapter.Open
}

// seconds spells an interval that a request gives in seconds, by a parameter.
func seconds(parameter string) func(url.Values) string {
	return func(query url.Values) string {
		d := producers.Unix(producers.Num(query.Get(parameter)), time.Second)
		if d == producers.BadTime {
			return ""
		}
		return adapter.Interval(time.Duration(d))
	}
}
