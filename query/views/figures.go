package views

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

// StatisticsStaleAfter is the age from which statistics of the whole market are stale: three times their interval of
// refresh, of which the longest is five minutes.
const StatisticsStaleAfter = 15 * time.Minute

const (
	oneDay = 24 * time.Hour
	// figuresLook is how often the price cache is asked whether a new minute began, in real time: under an accelerated clock
	// history is read once in it all the same.
	figuresLook = time.Second
	// backfillLook is how often history is asked, in real time, whether more was back-filled. What was is read when it has
	// come to rest since the look before, or backfillWait after it was read last.
	backfillLook, backfillWait = 5 * time.Second, 2 * time.Minute
	// figuresPatience bounds one reading of history.
	figuresPatience = 5 * time.Minute
	// figuresHold is how far the instant asked for may lie from the one that was read: prices are written each minute, and
	// history is read once in it.
	figuresHold = 2 * time.Minute
	// dayAgoReach is how long before an instant a candle may end that still gives its price: a tenth of the span of the
	// change, as in the rows of markets.
	dayAgoReach = oneDay / 10
	// keptHours are those that 24 hours and dayAgoReach begin in.
	keptHours = 24 + 3
)

// FigureHistory is where candles of all coins are kept.
type FigureHistory interface {
	// AllIntervals returns the candles of all coins that start in [from, to), by coin id, oldest first, in intervals of a
	// minute, an hour or a day.
	AllIntervals(ctx context.Context, interval time.Duration, from, to time.Time) (map[string][]schemas.Candle, error)
	// BackfilledExtremes returns the highest and the lowest back-filled price, by coin id.
	BackfilledExtremes(ctx context.Context) (map[string]schemas.Extremes, error)
	// ClosedUntil returns the time up to which the candles of live minutes are there.
	ClosedUntil(ctx context.Context) (time.Time, error)
	// BackfillNext returns a number that grows when more is back-filled.
	BackfillNext(ctx context.Context) (int64, error)
}

// Figures holds in memory what the candles of charts, live and back-filled, show of each coin: what it cost 24 hours and longer
// ago, and its highest and lowest price in 24 hours and ever. Coin rows and the stream serve these numbers alike. Methods but Run and
// Refresh are safe for concurrent use.
type Figures struct {
	priceCache *PriceCache
	history    FigureHistory
	update     func(*AllFigures)
	held       atomic.Pointer[AllFigures]

	// What follows belongs to Run and Refresh.

	// at is the minute up to which minutes were read, lacking means that some of them were not closed yet.
	at      time.Time
	lacking bool
	// next is the number of what was back-filled when it was read, at which time; seen the one of the last look.
	next, seen     int64
	read, looked   time.Time
	extremes       map[string]schemas.Extremes
	extremesBehind bool
	// ago are the closes of long ago, by coin id, as of the day agoOf; agoBehind means that more was back-filled since.
	ago       map[string]schemas.LongCloses
	agoOf     time.Time
	agoBehind bool
	// hours are the closed ones, by start; first are the minutes of the hour before or in which 24 hours begin, last those of the
	// hour under way.
	hours       map[int64]map[string]schemas.Candle
	first, last map[string][]schemas.Candle
	firstHour   time.Time
	// closed is up to when live minutes were there when they were read.
	closed time.Time
}

// AllFigures are those of all coins at the end of a minute. They never change.
type AllFigures struct {
	// At is the end of the minute.
	At time.Time
	// byRank are those of coins, at rank-1.
	coins  []schemas.Coin
	byRank []schemas.CandleFigures
}

// NewFigures makes one that knows nothing until Run has read it. Tell gets what is known whenever it is new; nil is nobody.
func NewFigures(priceCache *PriceCache, history FigureHistory, update func(*AllFigures)) *Figures {
	return &Figures{priceCache: priceCache, history: history, update: update, hours: map[int64]map[string]schemas.Candle{}, next: -1}
}

// Run reads history once in each minute of log time until the context ends. What cannot be read is read again; until then the
// prices of 24 hours ago grow unknown.
func (f *Figures) Run(ctx context.Context, log *slog.Logger) error {
	const failure = "loading the candles of the last 24 hours failed, continuing without them"
	return KeepRead(ctx, log, failure, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		err := f.Refresh(ctx)
		return figuresLook - time.Since(began), err
	})
}

// Refresh reads what is new since it was read: of the log's minutes, and of what was back-filled.
func (f *Figures) Refresh(ctx context.Context) error {
	now := f.priceCache.Now()
	if now == 0 {
		return nil
	}
	at := time.Unix(0, now).UTC().Truncate(time.Minute)
	ctx, cancel := context.WithTimeout(ctx, figuresPatience)
	defer cancel()
	more, err := f.backfilled(ctx)
	if err != nil || !more && !f.lacking && at.Equal(f.at) {
		return err
	}
	closed, err := f.history.ClosedUntil(ctx)
	if err != nil || !more && at.Equal(f.at) && closed.Equal(f.closed) {
		return err
	}
	if err := f.readMinutes(ctx, at, closed); err != nil {
		return err
	}
	f.compute(at)
	f.publish()
	// After the others: what follows takes longer, and changes more slowly.
	if today := at.Truncate(oneDay); f.agoBehind || !f.agoOf.Equal(today) {
		if err := f.readAgo(ctx, today); err != nil {
			return err
		}
		f.publish()
	}
	if f.extremesBehind {
		extremes, err := f.history.BackfilledExtremes(ctx)
		if err != nil {
			return err
		}
		f.extremes, f.extremesBehind = extremes, false
		f.publish()
	}
	return nil
}

// backfilled reports whether what is held lacks something that was back-filled, which is read next.
func (f *Figures) backfilled(ctx context.Context) (bool, error) {
	if time.Since(f.looked) < backfillLook {
		return false, nil
	}
	next, err := f.history.BackfillNext(ctx)
	if err != nil {
		return false, err
	}
	f.looked = time.Now()
	rests := next == f.seen || f.next < 0
	f.seen = next
	if next == f.next || !rests && time.Since(f.read) < backfillWait {
		return false, nil
	}
	f.next, f.read, f.extremesBehind, f.agoBehind = next, f.looked, true, true
	clear(f.hours)
	f.first, f.last = nil, nil
	return true, nil
}

// readMinutes reads the candles that are not held yet, for the 24 hours before a time. Live minutes are closed up to another.
func (f *Figures) readMinutes(ctx context.Context, at, closed time.Time) (err error) {
	hour := at.Truncate(time.Hour)
	for start := range f.hours {
		// One that was not closed when it was read may lack its last minutes.
		if start < hour.Add(-keptHours*time.Hour).Unix() || start+int64(time.Hour/time.Second) > f.closed.Unix() {
			delete(f.hours, start)
		}
	}
	for start := hour.Add(-keptHours * time.Hour); start.Before(hour); start = start.Add(time.Hour) {
		if f.hours[start.Unix()] != nil {
			continue
		}
		candles, err := f.history.AllIntervals(ctx, time.Hour, start, start.Add(time.Hour))
		if err != nil {
			return err
		}
		f.hours[start.Unix()] = make(map[string]schemas.Candle, len(candles))
		for coin, list := range candles {
			f.hours[start.Unix()][coin] = list[0]
		}
	}
	// The last minute that ended by the instant is in it, also where an hour begins then.
	if begins := at.Add(-oneDay - 1).Truncate(time.Hour); f.first == nil || !f.firstHour.Equal(begins) {
		if f.first, err = f.history.AllIntervals(ctx, time.Minute, begins, begins.Add(time.Hour)); err != nil {
			return err
		}
		f.firstHour = begins
	}
	if f.last, err = f.history.AllIntervals(ctx, time.Minute, hour, at); err != nil {
		return err
	}
	f.at, f.closed, f.lacking = at, closed, closed.Before(at)
	return nil
}

// readAgo reads what each coin cost the long spans before a day.
func (f *Figures) readAgo(ctx context.Context, today time.Time) error {
	ago := map[string]schemas.LongCloses{}
	for i, span := range schemas.LongSpans() {
		before := today.Add(-span)
		days, err := f.history.AllIntervals(ctx, oneDay, before.Add(-span/10).Truncate(oneDay), before)
		if err != nil {
			return err
		}
		for coin, candles := range days {
			closes := ago[coin]
			closes[i] = candles[len(candles)-1].Close
			ago[coin] = closes
		}
	}
	f.ago, f.agoOf, f.agoBehind = ago, today, false
	return nil
}

// compute makes the figures of all coins at the end of a minute.
func (f *Figures) compute(at time.Time) {
	coins := f.priceCache.Coins().All()
	next := &AllFigures{At: at, coins: coins, byRank: make([]schemas.CandleFigures, len(coins))}
	for i, coin := range coins {
		next.byRank[i] = f.figures(coin.ID, at)
	}
	f.held.Store(next)
}

func (f *Figures) figures(coin string, at time.Time) schemas.CandleFigures {
	hour, from := at.Truncate(time.Hour), at.Add(-oneDay)
	own := schemas.CandleFigures{High: math.Inf(-1), Low: math.Inf(1)}
	reach := func(c schemas.Candle) { own.High, own.Low = max(own.High, c.High), min(own.Low, c.Low) }
	oldest := from.Add(-dayAgoReach)
	for start := hour.Add(-keptHours * time.Hour); start.Before(hour); start = start.Add(time.Hour) {
		c, ok := f.hours[start.Unix()][coin]
		if !ok {
			continue
		}
		ended := c.Newest.Add(time.Minute)
		if !ended.After(from) && !ended.Before(oldest) {
			own.DayAgo = c.Close
		}
		if !start.Before(from) {
			reach(c)
		}
	}
	for _, c := range f.first[coin] {
		if c.Start.Before(from) {
			own.DayAgo = c.Close // it ended by then
		} else {
			reach(c)
		}
	}
	for _, c := range f.last[coin] {
		reach(c)
	}
	own.Whole = own.DayAgo > 0
	if own.High < own.Low {
		own.High, own.Low = 0, 0
	}
	return own
}

// publish makes what is held known to all.
func (f *Figures) publish() {
	next := *f.held.Load()
	next.byRank = append([]schemas.CandleFigures(nil), next.byRank...)
	for i, coin := range f.priceCache.Coins().All() {
		next.byRank[i].Ever, next.byRank[i].Ago = f.extremes[coin.ID], f.ago[coin.ID]
	}
	f.held.Store(&next)
	if f.update != nil {
		f.update(&next)
	}
}

// Of returns the figures of a coin of the table; those of none are zero.
func (f *AllFigures) Of(coin schemas.Coin) schemas.CandleFigures {
	if f == nil || coin.Rank < 1 || coin.Rank > len(f.byRank) {
		return schemas.CandleFigures{}
	}
	return f.byRank[coin.Rank-1]
}

// Near reports whether the figures of 24 hours hold at a time too: those of a minute beside it do.
func (f *AllFigures) Near(at time.Time) bool {
	return f != nil && at.Sub(f.At).Abs() <= figuresHold
}

// DayAgo reports what a coin cost 24 hours before a time (Unix nanoseconds); false where that is not known. It never waits.
func (f *Figures) DayAgo(coin schemas.Coin, at int64) (float64, bool) {
	held := f.held.Load()
	if !held.Near(time.Unix(0, at)) {
		return 0, false
	}
	price := held.Of(coin).DayAgo
	return price, price > 0
}

// Mean is that of n numbers, of which the sum, the least and the greatest are known. It is within these: rounding would put
// that of three times 0.1 at 0.10000000000000002.
func Mean(sum float64, n int, least, greatest float64) float64 {
	return min(max(sum/float64(n), least), greatest)
}
