package views_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// closes are a history of which each minute has another price of bitcoin, and none of other coins.
type closes struct {
	mu     sync.Mutex
	away   bool
	read   int // how often the minutes of the hour under way were read
	next   int64
	folded int // how often the extremes were
	ever   schemas.Extremes
}

var errAway = errors.New("away")

// change scripts what the next readings find.
func (c *closes) change(how func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	how()
}

func (c *closes) AllIntervals(_ context.Context, interval time.Duration, from, to time.Time) (map[string][]schemas.Candle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return nil, errAway
	}
	if interval == time.Minute && to.Sub(from) < time.Hour {
		c.read++
	}
	var candles []schemas.Candle
	for at := from; at.Before(to); at = at.Add(interval) {
		end := float64(at.Add(interval).Unix() / 60)
		candles = append(candles, schemas.Candle{Start: at, Open: end, High: end + 1000, Low: end - 1000, Close: end, Newest: at.Add(interval - time.Minute)})
	}
	return map[string][]schemas.Candle{"bitcoin": candles}, nil
}

func (c *closes) BackfilledExtremes(context.Context) (map[string]schemas.Extremes, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.folded++
	return map[string]schemas.Extremes{"bitcoin": c.ever}, nil
}

func (c *closes) ClosedUntil(context.Context) (time.Time, error) {
	return time.Date(2106, 1, 1, 0, 0, 0, 0, time.UTC), nil
}

func (c *closes) BackfillNext(context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return 0, errAway
	}
	return c.next, nil
}

func TestThePriceOfADayAgoFollowsTheLogOrIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coins := schemas.Coins()
		bitcoin, _ := coins.ByID("bitcoin")
		ethereum, _ := coins.ByID("ethereum")
		priceCache, history := views.NewPriceCache(coins), &closes{}
		var figures *views.AllFigures
		day := views.NewFigures(priceCache, history, func(next *views.AllFigures) { figures = next })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- day.Run(ctx, slog.New(slog.DiscardHandler)) }()
		defer func() { cancel(); <-done }()
		start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		// reach brings the log to a time, and waits for as long as history may take to be looked at.
		reach := func(now time.Time) {
			pulse := &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: now.UnixNano()}}}
			if err := priceCache.Apply(views.TailRecord{Marked: pulse}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second) // of the bubble's clock
			synctest.Wait()
		}
		minute := func(at time.Time) float64 { return float64(at.Add(-24*time.Hour).Unix() / 60) }
		check := func(what string, coin schemas.Coin, at time.Time, want float64) {
			t.Helper()
			got, known := day.DayAgo(coin, at.UnixNano())
			if known != (want > 0) || got != want {
				t.Errorf("%s: got %g, %t, want %g", what, got, known, want)
			}
		}
		check("before the log had its now", bitcoin, start, 0)
		reach(start)
		check("the first minute", bitcoin, start.Add(30*time.Second), minute(start))
		check("a coin without history", ethereum, start, 0)
		reach(start.Add(59 * time.Second))
		high, low := float64(start.Add(59*time.Second).Unix()/60)+1000, float64(start.Add(-24*time.Hour).Unix()/60)-1000
		if f := figures.Of(bitcoin); f.High != high || f.Low != low+60 || !f.Whole {
			t.Errorf("got %+v, want a high of %g and a low of %g, of all 24 hours", f, high, low+60)
		}
		midnight := start.Truncate(24 * time.Hour)
		for i, span := range schemas.LongSpans() {
			if got, want := figures.Of(bitcoin).Ago[i], float64(midnight.Add(-span).Unix()/60); got != want {
				t.Errorf("the close %s ago: got %g, want %g, of the last day that ended before", span, got, want)
			}
		}
		if history.read != 1 {
			t.Errorf("history was read %d times in one minute, want once", history.read)
		}
		reach(start.Add(61 * time.Second))
		check("the next minute", bitcoin, start.Add(61*time.Second), minute(start.Add(time.Minute)))
		check("a price from long before the log's now", bitcoin, start.Add(-5*time.Minute), 0)
		history.change(func() { history.away = true })
		reach(start.Add(10 * time.Minute))
		check("while history is away", bitcoin, start.Add(10*time.Minute), 0)
		history.change(func() { history.away = false })
		reach(start.Add(11 * time.Minute))
		check("when it is back", bitcoin, start.Add(11*time.Minute), minute(start.Add(11*time.Minute)))
		history.change(func() {
			history.next, history.ever = 7, schemas.Extremes{High: 9e9, HighAt: start, Low: 1, LowAt: start}
		})
		var folded int
		history.change(func() { folded = history.folded })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if f := figures.Of(bitcoin); f.Ever != history.ever || history.folded != folded+1 {
			t.Errorf("got the extremes %+v, read %d times, want %+v, read once", f.Ever, history.folded-folded, history.ever)
		}
	})
}
