package imports

import (
	"cmp"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// trade is a line of a file of trades.
type trade struct {
	venue, symbol string
	// time is when it happened, Unix nanoseconds.
	time        int64
	price, size string
}

// tradeDecoder reads the lines of a file of trades, as decoder those of candles.
type tradeDecoder interface {
	header(fields []string) (bool, error)
	trade(fields []string) (trade, error)
}

// lateTrades is how far behind the newest trade of its market a trade may come in a file. Recorded files are in the order of their
// recording, in which an exchange's times go back by milliseconds; after a connection some send their latest trades, which are older.
const lateTrades = time.Hour

// minutes makes candles of a market's trades: a minute ends when a trade comes that is later than its end by lateTrades, or with
// the file. Its open and close are the first and the last trade by time, and in the order of the file at the same time.
type minutes struct {
	open   []*minute // by start, and none of them ended
	newest int64     // the time of the newest trade
	ended  int64     // the end of the last minute that ended, 0 at first
	line   uint64    // that of the last candle
}

// minute is the candle of a minute that may get more trades.
type minute struct {
	start                  int64
	first, last            int64 // times of the trades of open and close
	open, high, low, close priced
	volume                 decimal.Decimal
	line                   uint64 // of its last trade in the file
}

// priced is a price with its text in the file.
type priced struct {
	value decimal.Decimal
	text  string
}

// add takes a trade into its minute. An error wraps a schemas.Reason.
func (m *minutes) add(t trade, line uint64, now int64) error {
	start := t.time - t.time%int64(time.Minute)
	switch {
	case t.time < earliest:
		return bad(schemas.Absurd, "time %s lies before the first block", at(t.time))
	case start > now-int64(time.Minute):
		return bad(schemas.Future, "the minute of %s has not ended", at(t.time))
	case start < m.ended:
		return bad(schemas.Undecodable, "time %s is more than %s behind %s, that of a trade before: sort the file by it", at(t.time), lateTrades, at(m.newest))
	}
	price, text, err := number("price", t.price)
	if err != nil {
		return err
	}
	size, sizeText, err := number("size", t.size)
	if err != nil {
		return err
	}
	tick := eventsv1.Tick{Kind: eventsv1.TickKind_TICK_KIND_TRADE, Price: text, Size: sizeText}
	if reason, detail := schemas.CheckTick(&tick); reason != "" {
		return bad(reason, "%s", detail)
	}
	m.newest = max(m.newest, t.time)
	p := priced{price, text}
	i, found := slices.BinarySearchFunc(m.open, start, func(of *minute, start int64) int { return cmp.Compare(of.start, start) })
	if !found {
		m.open = slices.Insert(m.open, i, &minute{start: start, first: t.time, last: t.time, open: p, high: p, low: p, close: p, volume: size, line: line})
		return nil
	}
	of := m.open[i]
	if t.time < of.first {
		of.first, of.open = t.time, p
	}
	if t.time >= of.last {
		of.last, of.close = t.time, p
	}
	if price.GreaterThan(of.high.value) {
		of.high = p
	}
	if price.LessThan(of.low.value) {
		of.low = p
	}
	of.volume = of.volume.Add(size)
	of.line = line
	return nil
}

// end takes out the minutes that no trade will come to any more, with all: those that are left.
func (m *minutes) end(all bool) (ended []*minute) {
	for len(m.open) > 0 && (all || m.open[0].start+int64(time.Minute+lateTrades) <= m.newest) {
		of := m.open[0]
		m.open = m.open[1:]
		m.ended = of.start + int64(time.Minute)
		// An import goes on after the last line that the log has, so that lines of candles must rise as their starts do.
		m.line = max(m.line+1, of.line)
		of.line = m.line
		ended = append(ended, of)
	}
	return ended
}

// row is the candle of a minute as a file of candles would have it.
func (m *minute) row(venue, symbol string) row {
	return row{
		venue: venue, symbol: symbol, interval: time.Minute, start: m.start,
		open: m.open.text, high: m.high.text, low: m.low.text, close: m.close.text, volume: m.volume.String(),
	}
}
