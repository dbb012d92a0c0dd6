package imports

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// maxBad is how many lines of a file may be bad: one with more is of another format.
	maxBad = 1000
	// maxMarkets bounds the markets of a file: some venues list 2,000.
	maxMarkets = 5000
	// maxHours bounds the prices that are held to be compared, of all markets of a file: 16 bytes each.
	maxHours = 4 << 20
)

// source is the source of the dead letters of bad lines.
const source = "import"

// decoderVersion goes into these. Raise it with every change of what is read.
const decoderVersion = 1

// marketKey distinguishes the markets of a file.
type marketKey struct {
	venue, symbol string
	interval      time.Duration
}

// surveyed is what the first reading found of a market.
type surveyed struct {
	*market
	rows        uint64
	first, last int64 // starts, Unix nanoseconds
	// spacing is the least distance of two starts, and even what divides all starts; both are for files that do not have the interval.
	spacing, even int64
	// closes are the last of each hour.
	closes []point
}

// point is a price at a time, Unix seconds.
type point struct {
	at    int64
	price float64
}

// survey is what the first reading found of a file.
type survey struct {
	// lines could be read, and bad could not; rows are candles.
	lines, bad, rows int64
	letters          []*eventsv1.DeadLetter
	order            []*surveyed
	markets          map[marketKey]*surveyed
	hours            int
	// wrongLength counts rows that end otherwise than after the interval.
	wrongLength int64
	// passed are the markets that are not known, in the order of their names, and passedLines how many lines are theirs.
	passed      []passedMarket
	passedLines int64
}

// passedMarket is a market that is passed over, since its coin or quote asset is not known.
type passedMarket struct {
	marketKey
	why error
}

// errPassed is of a line whose market is passed over.
var errPassed = errors.New("its market is not known")

// reading reads the candles of a file, twice in the same way: first a survey, then with what that has found.
type reading struct {
	request Request
	file    *opened
	now     int64
	// decoder reads lines of candles, or trades those of trades.
	decoder decoder
	trades  tradeDecoder
	// found has the markets of a survey that is complete, nil while that is made.
	found *survey
	begun bool
	// newest are the last starts.
	newest map[marketKey]int64
	// known and passed are the markets that were met, and those that were passed over.
	known  map[marketKey]*market
	passed map[marketKey]error
	// minutes are the candles that trades become, order their markets by their first trades.
	minutes map[marketKey]*minutes
	order   []marketKey
}

// completed is a candle of a file: that of a line, or what the trades of a minute come to.
type completed struct {
	row    row
	market *market
	candle *eventsv1.BackfillCandle
	// line is that of the candle, or of the last trade in it. Those of a market rise.
	line uint64
}

// newReading begins to read at the first line.
func newReading(r Request, file *opened, now time.Time, found *survey) (*reading, error) {
	format, err := formatNamed(r.Format)
	if err != nil {
		return nil, err
	}
	reading := &reading{
		request: r, file: file, now: now.UnixNano(), found: found,
		newest: map[marketKey]int64{}, known: map[marketKey]*market{}, passed: map[marketKey]error{}, minutes: map[marketKey]*minutes{},
	}
	if found != nil {
		for _, p := range found.passed {
			reading.passed[p.marketKey] = p.why
		}
	}
	if format.trades != nil {
		if r.Interval != "" && r.Interval != "1m" {
			return nil, errOtherLength
		}
		reading.trades, err = format.trades(r, file.path)
	} else {
		reading.decoder, err = format.decoder(r, file.path)
	}
	return reading, err
}

// next reads a line and hands over the candles that it completes; good is false for a header. An error that wraps a schemas.Reason is of
// this line, errPassed of its market, any other of the file or of visit.
func (r *reading) next(number uint64, fields []string, visit func(completed) error) (good bool, err error) {
	if !r.begun {
		r.begun = true
		if is, err := r.header(fields); is || err != nil {
			return false, err
		}
	}
	if r.trades != nil {
		return true, r.trade(number, fields, visit)
	}
	parsed, err := r.decoder.row(fields)
	if err != nil {
		return true, err
	}
	return true, r.candle(&parsed, number, visit)
}

func (r *reading) header(fields []string) (bool, error) {
	if r.trades != nil {
		return r.trades.header(fields)
	}
	return r.decoder.header(fields)
}

// candle hands over the candle of a row.
func (r *reading) candle(parsed *row, line uint64, visit func(completed) error) error {
	m, err := r.market(parsed)
	if err != nil {
		return err
	}
	c, err := parsed.candle(m, r.now)
	if err != nil {
		return err
	}
	key := parsed.key()
	if last, ok := r.newest[key]; ok && c.Start <= last {
		return bad(schemas.Undecodable, "open time %s does not come after %s, that of the row before: sort the file by it", at(c.Start), at(last))
	}
	r.newest[key] = c.Start
	return visit(completed{*parsed, m, c, line})
}

// trade takes a trade into the candle of its minute, and hands over those that have ended.
func (r *reading) trade(number uint64, fields []string, visit func(completed) error) error {
	t, err := r.trades.trade(fields)
	if err != nil {
		return err
	}
	of := row{venue: t.venue, symbol: t.symbol, interval: time.Minute}
	if _, err := r.market(&of); err != nil {
		return err
	}
	key := of.key()
	open := r.minutes[key]
	if open == nil {
		open = &minutes{}
		r.minutes[key] = open
		r.order = append(r.order, key)
	}
	if err := open.add(t, number, r.now); err != nil {
		return err
	}
	return r.hand(key, open.end(false), visit)
}

// hand hands over candles of minutes that have ended.
func (r *reading) hand(key marketKey, ended []*minute, visit func(completed) error) error {
	var fault error
	for _, of := range ended {
		parsed := of.row(key.venue, key.symbol)
		if err := r.candle(&parsed, of.line, visit); isLine(err) {
			fault = err // of this candle; the others are handed over
		} else if err != nil {
			return err
		}
	}
	return fault
}

// finish hands over the candles that the end of the file completes. Its errors are as those of next.
func (r *reading) finish(visit func(completed) error) error {
	var fault error
	for _, key := range r.order {
		if err := r.hand(key, r.minutes[key].end(true), visit); isLine(err) {
			fault = err
		} else if err != nil {
			return err
		}
	}
	return fault
}

func (r *row) key() marketKey { return marketKey{r.venue, r.symbol, r.interval} }

// market finds the market of a row.
func (r *reading) market(of *row) (*market, error) {
	key := of.key()
	if r.found != nil {
		if found := r.found.markets[key]; found != nil {
			return found.market, nil
		}
		if r.passed[key] != nil {
			return nil, errPassed
		}
		return nil, fmt.Errorf("it was changed while it was read: there is a market %s %s", of.venue, of.symbol)
	}
	if m := r.known[key]; m != nil {
		return m, nil
	}
	if r.passed[key] != nil {
		return nil, errPassed
	}
	if len(r.known)+len(r.passed) == maxMarkets {
		return nil, fmt.Errorf("it has more than %d markets: split it", maxMarkets)
	}
	if r.request.Base != "" && len(r.known) > 0 {
		return nil, errors.New("it has several markets: leave out --base and --quote")
	}
	m, err := findMarket(of.venue, of.symbol, r.request.Base, r.request.Quote)
	var unknown unknownMarket
	if errors.As(err, &unknown) && r.request.Base == "" {
		r.passed[key] = err
		return nil, errPassed
	}
	if err != nil {
		return nil, err
	}
	m.interval = of.interval
	r.known[key] = m
	return m, nil
}

// isLine reports whether an error is of one line.
func isLine(err error) bool {
	var reason schemas.Reason
	return errors.As(err, &reason)
}

// newSurvey reads a file to its end. An error says why it is not to be imported, as it is or at all.
func newSurvey(ctx context.Context, r Request, file *opened, now time.Time, report func(rows, done int64) error) (*survey, error) {
	reading, err := newReading(r, file, now, nil)
	if err != nil {
		return nil, err
	}
	s := &survey{markets: map[marketKey]*surveyed{}}
	add := func(c completed) error {
		if before := int64(c.market.interval) - (c.row.ends - c.row.start); c.row.ends != 0 && (before <= 0 || before > int64(time.Millisecond)) {
			s.wrongLength++
		}
		return s.add(c.row.key(), c.market, c.candle)
	}
	last, text := uint64(0), ""
	err = file.lines(ctx, func(number uint64, fields []string, line string, done int64) error {
		last, text = number, line
		good, err := reading.next(number, fields, add)
		switch {
		case isLine(err):
			return s.refuse(file, number, line, err)
		case errors.Is(err, errPassed):
			s.passedLines++
		case err != nil:
			return fmt.Errorf("line %d: %w", number, err)
		case good:
			s.lines++
		}
		return report(s.lines, done)
	})
	if err == nil {
		if err = reading.finish(add); isLine(err) {
			err = s.refuse(file, last, text, err)
		}
	}
	if err == nil {
		s.pass(reading)
		err = s.check()
	}
	return s, err
}

// pass lists the markets that were passed over.
func (s *survey) pass(r *reading) {
	for key, why := range r.passed {
		s.passed = append(s.passed, passedMarket{key, why})
	}
	slices.SortFunc(s.passed, func(a, b passedMarket) int {
		return cmp.Or(strings.Compare(a.venue, b.venue), strings.Compare(a.symbol, b.symbol), cmp.Compare(a.interval, b.interval))
	})
}

func (s *survey) add(key marketKey, m *market, c *eventsv1.BackfillCandle) error {
	s.rows++
	of := s.markets[key]
	if of == nil {
		of = &surveyed{market: m, first: c.Start}
		s.markets[key] = of
		s.order = append(s.order, of)
	} else if spacing := c.Start - of.last; of.spacing == 0 || spacing < of.spacing {
		of.spacing = spacing
	}
	of.rows++
	of.last, of.even = c.Start, divisor(of.even, c.Start)
	price, err := strconv.ParseFloat(c.Close, 64)
	if err != nil {
		return fmt.Errorf("reading the close %q: %w", c.Close, err)
	}
	end := c.Start/int64(time.Second) + int64(c.Interval)
	if n := len(of.closes); n > 0 && of.closes[n-1].at/3600 == end/3600 {
		of.closes[n-1] = point{end, price}
		return nil
	}
	if s.hours++; s.hours > maxHours {
		return fmt.Errorf("it has more than %d hours of markets: split it", maxHours)
	}
	of.closes = append(of.closes, point{end, price})
	return nil
}

// divisor is the greatest number that divides both.
func divisor(a, b int64) int64 {
	for a != 0 {
		a, b = b%a, a
	}
	return b
}

// refuse keeps the dead letter of a line.
func (s *survey) refuse(file *opened, number uint64, line string, why error) error {
	if s.bad++; s.bad > maxBad {
		return fmt.Errorf("more than %d lines could not be read; the last is line %d: %w", maxBad, number, why)
	}
	var reason schemas.Reason
	errors.As(why, &reason)
	// A letter has an id of its own, so that it is not written twice.
	h := sha256.New()
	h.Write(file.sha256[:])
	_ = binary.Write(h, binary.BigEndian, number) // a hash takes all
	s.letters = append(s.letters, &eventsv1.DeadLetter{
		Reason: string(reason), Source: source, AdapterVersion: decoderVersion, Payload: []byte(line), EventId: h.Sum(nil)[:16],
		Detail: fmt.Sprintf("line %d of %s (SHA-256 %s): %v", number, file.name, file.sha256, why),
	})
	return nil
}

// check reports what speaks against the file as a whole, and finds the intervals that the file does not have.
func (s *survey) check() error {
	switch {
	case s.bad*2 > s.lines+s.bad:
		return fmt.Errorf("%d of its %d lines could not be read; the first: %s", s.bad, s.lines+s.bad, s.letters[0].Detail)
	case s.rows == 0 && len(s.passed) > 0:
		return s.passed[0].why
	case s.rows == 0:
		return errors.New("it has no candles")
	case s.wrongLength*2 > s.rows:
		return fmt.Errorf("most of its candles are not of %s by their close times: name their length with --interval", s.order[0].interval)
	}
	for _, of := range s.order {
		if of.interval != 0 {
			continue
		}
		for _, length := range lengths {
			if of.spacing == int64(length) && of.even%int64(length) == 0 {
				of.interval = length
			}
		}
		if of.interval == 0 {
			return fmt.Errorf("its candles of %s do not say whether they are of 1m, 1h or 1d: name it with --interval", of.market)
		}
	}
	return nil
}
