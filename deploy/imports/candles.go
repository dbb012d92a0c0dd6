package imports

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// candles reads CSV with a header, in any order of columns. Others than these are passed over.
type candles struct {
	venue, symbol string
	interval      time.Duration
	columns       int
	// Where the columns are; -1 where the file has none.
	atVenue, atSymbol, atInterval, atTime, atOpen, atHigh, atLow, atClose, atVolume int
}

func newCandles(r Request, _ string) (decoder, error) {
	c := &candles{venue: r.Venue, symbol: r.Market}
	if r.Interval != "" {
		c.interval, _ = intervalNamed(r.Interval) // Validate has read it
	}
	return c, nil
}

// columnNames are the columns, each by its names, of which the first that is there counts: our own exports have start and volume_exact.
var columnNames = [...][]string{{"venue"}, {"symbol"}, {"interval"}, {"start", "open_time"}, {"open"}, {"high"}, {"low"}, {"close"}, {"volume_exact", "volume"}}

func (c *candles) header(fields []string) (bool, error) {
	c.columns = len(fields)
	missing := placeColumns(headerNames(fields), columnNames[:], &c.atVenue, &c.atSymbol, &c.atInterval, &c.atTime, &c.atOpen, &c.atHigh, &c.atLow, &c.atClose, &c.atVolume)
	missing = slices.DeleteFunc(missing, func(name string) bool { return name == "venue" || name == "symbol" || name == "interval" })
	if len(missing) > 0 {
		return false, fmt.Errorf("its first line has no column %s: it must name venue, symbol, open_time, open, high, low, close and volume", strings.Join(missing, ", "))
	}
	if err := marketColumns(c.atVenue, c.atSymbol, c.venue, c.symbol); err != nil {
		return false, err
	}
	if c.atInterval >= 0 && c.interval != 0 {
		return false, errors.New("it has a column interval: leave out --interval")
	}
	return true, nil
}

// headerNames are the names of columns as they are compared.
func headerNames(fields []string) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = strings.ToLower(strings.TrimSpace(f))
	}
	return names
}

// placeColumns finds where columns are, each by the first of its names that is there, and returns the last name of those that are
// nowhere, whose place is -1.
func placeColumns(names []string, columns [][]string, places ...*int) (missing []string) {
	for i, place := range places {
		*place = -1
		for _, name := range columns[i] {
			if *place < 0 {
				*place = slices.Index(names, name)
			}
		}
		if *place < 0 {
			missing = append(missing, columns[i][len(columns[i])-1])
		}
	}
	return missing
}

// marketColumns fails unless venue and symbol are each given by a column or by a flag, and not by both.
func marketColumns(atVenue, atSymbol int, venue, symbol string) error {
	for _, of := range [...]struct {
		place int
		value string
		name  string
		flag  string
	}{{atVenue, venue, "venue", "--venue"}, {atSymbol, symbol, "symbol", "--market"}} {
		switch {
		case of.place < 0 && of.value == "":
			return fmt.Errorf("it has no column %s: name it with %s", of.name, of.flag)
		case of.place >= 0 && of.value != "":
			return fmt.Errorf("it has a column %s: leave out %s", of.name, of.flag)
		}
	}
	return nil
}

func (c *candles) row(fields []string) (row, error) {
	if len(fields) != c.columns {
		return row{}, bad(schemas.Undecodable, "it has %d columns and not %d", len(fields), c.columns)
	}
	r := row{venue: c.venue, symbol: c.symbol, interval: c.interval, open: fields[c.atOpen], high: fields[c.atHigh], low: fields[c.atLow], close: fields[c.atClose], volume: fields[c.atVolume]}
	if c.atVenue >= 0 {
		r.venue = fields[c.atVenue]
	}
	if c.atSymbol >= 0 {
		r.symbol = fields[c.atSymbol]
	}
	if r.venue == "" || r.symbol == "" || len(r.venue)+len(r.symbol) > maxName {
		return row{}, bad(schemas.Undecodable, "venue %.80q and symbol %.80q name no market", r.venue, r.symbol)
	}
	var err error
	if c.atInterval >= 0 {
		if r.interval, err = intervalNamed(fields[c.atInterval]); err != nil {
			return row{}, bad(schemas.Undecodable, "interval %v", err)
		}
	}
	r.start, err = moment(fields[c.atTime])
	return r, err
}

// maxName bounds the names of a market.
const maxName = 100

// moment reads a time: Unix seconds, milli-, micro- or nanoseconds by their number of digits, RFC 3339, or a date and time of UTC.
func moment(text string) (int64, error) {
	if strings.Trim(text, "0123456789") == "" {
		return unix(text)
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			if t.Year() < 1970 || t.Year() > 2200 { // beyond, nanoseconds have no number
				break
			}
			return t.UnixNano(), nil
		}
	}
	return 0, bad(schemas.Undecodable, "open time %.40q is not a time", text)
}
