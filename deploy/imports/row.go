package imports

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// row is a candle as a line of a file has it.
type row struct {
	venue, symbol string
	// interval is 0 where the file does not have it.
	interval time.Duration
	// start is in Unix nanoseconds, and ends the close of the candle by the file, 0 where it does not have it.
	start, ends                    int64
	open, high, low, close, volume string
}

// decoder reads the lines of one file. What it returns of a line it cannot read wraps a schemas.Reason; an error of header is of the
// whole file.
type decoder interface {
	// header reports whether the first line is not a candle.
	header(fields []string) (bool, error)
	row(fields []string) (row, error)
}

// bad is why a line is not a candle.
func bad(reason schemas.Reason, format string, args ...any) error {
	return fmt.Errorf("%w: %s", reason, fmt.Sprintf(format, args...))
}

// earliest is before any market of a coin: the day of the first block.
var earliest = time.Date(2009, 1, 3, 0, 0, 0, 0, time.UTC).UnixNano()

// maxExponent bounds numbers that are written with a power of ten: decimals of greater ones would fill the memory.
const maxExponent = 30

// number reads a decimal and returns it without an exponent.
func number(name, text string) (decimal.Decimal, string, error) {
	mantissa, exponent, powered := strings.Cut(strings.ToLower(text), "e")
	text = strings.TrimPrefix(text, "+")
	if powered {
		if n, err := strconv.Atoi(exponent); err != nil || n > maxExponent || n < -maxExponent {
			return decimal.Decimal{}, "", bad(schemas.NotANumber, "%s %.80q is not a decimal number", name, text)
		}
	}
	if len(text) > 64 || strings.Trim(mantissa, "-+.0123456789") != "" || mantissa == "" {
		return decimal.Decimal{}, "", bad(schemas.NotANumber, "%s %.80q is not a decimal number", name, text)
	}
	d, err := decimal.NewFromString(text)
	if err != nil {
		return d, "", bad(schemas.NotANumber, "%s %.80q is not a decimal number", name, text)
	}
	if powered {
		text = d.String()
	}
	return d, text, nil
}

// candle makes the record's candle of a row, if its values can be those of one. now is a time by which it must have ended.
func (r *row) candle(m *market, now int64) (*eventsv1.BackfillCandle, error) {
	length := int64(m.interval)
	if length == 0 { // not known yet: every length is a number of minutes
		length = int64(time.Minute)
	}
	switch {
	case r.start < earliest:
		return nil, bad(schemas.Absurd, "open time %s lies before the first block", at(r.start))
	case r.start > now-length:
		return nil, bad(schemas.Future, "the candle of %s has not ended", at(r.start))
	case r.start%length != 0:
		return nil, bad(schemas.Absurd, "open time %s is not the start of an interval of %s", at(r.start), time.Duration(length))
	}
	c := &eventsv1.BackfillCandle{
		Venue: m.venue, Symbol: m.symbol, Base: m.base, Quote: m.quote, Start: r.start, Interval: uint32(m.interval / time.Second), Origin: string(schemas.OriginImport),
	}
	var prices [4]decimal.Decimal
	for i, f := range [...]struct {
		name, text string
		kept       *string
	}{{"open", r.open, &c.Open}, {"high", r.high, &c.High}, {"low", r.low, &c.Low}, {"close", r.close, &c.Close}} {
		var err error
		if prices[i], *f.kept, err = number(f.name, f.text); err != nil {
			return nil, err
		}
	}
	var err error
	if _, c.Volume, err = number("volume", r.volume); err != nil {
		return nil, err
	}
	if reason, detail := schemas.CheckCandle(c); reason != "" {
		return nil, bad(reason, "%s", detail)
	}
	open, high, low, closed := prices[0], prices[1], prices[2], prices[3]
	if high.LessThan(decimal.Max(open, low, closed)) || low.GreaterThan(decimal.Min(open, closed)) {
		return nil, bad(schemas.Absurd, "high %s and low %s do not hold open %s and close %s", c.High, c.Low, c.Open, c.Close)
	}
	return c, nil
}

// at shows a time of Unix nanoseconds.
func at(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }

// unix reads a time since 1970 by its number of digits: seconds, milli-, micro- or nanoseconds.
func unix(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, bad(schemas.Undecodable, "open time %.40q is not a time", text)
	}
	unit := time.Nanosecond
	switch {
	case n < 1e11:
		unit = time.Second
	case n < 1e14:
		unit = time.Millisecond
	case n < 1e17:
		unit = time.Microsecond
	}
	if n > math.MaxInt64/int64(unit) {
		return 0, bad(schemas.Absurd, "open time %.40q lies beyond the year 2262", text)
	}
	return n * int64(unit), nil
}
