package query_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// closes are a history of which each minute has another price of bitcoin, and none of other coins.
type closes struct {
	away bool
	read int
}

func (c *closes) ClosesAt(_ context.Context, at time.Time) (map[string]float64, error) {
	if c.away {
		return nil, errors.New("away")
	}
	c.read++
	return map[string]float64{"bitcoin": float64(at.Unix() / 60)}, nil
}

func TestThePriceOfADayAgoFollowsTheLogOrIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coins := schemas.Coins()
		bitcoin, _ := coins.ByID("bitcoin")
		ethereum, _ := coins.ByID("ethereum")
		board, history := query.NewBoard(coins), &closes{}
		day := query.NewDayAgo(board, history)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- day.Run(ctx, slog.New(slog.DiscardHandler)) }()
		defer func() { cancel(); <-done }()
		start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		// reach brings the log to a time, and waits for as long as history may take to be looked at.
		reach := func(now time.Time) {
			pulse := &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{Pulse: &eventsv1.Pulse{Now: now.UnixNano()}}}
			if err := board.Apply(query.TailRecord{Marked: pulse}); err != nil {
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
		check("before the log told its now", bitcoin, start, 0)
		reach(start)
		check("the first minute", bitcoin, start.Add(30*time.Second), minute(start))
		check("a coin without history", ethereum, start, 0)
		reach(start.Add(59 * time.Second))
		if history.read != 1 {
			t.Errorf("history was read %d times in one minute, want once", history.read)
		}
		reach(start.Add(61 * time.Second))
		check("the next minute", bitcoin, start.Add(61*time.Second), minute(start.Add(time.Minute)))
		check("a price from long before the log's now", bitcoin, start.Add(-5*time.Minute), 0)
		history.away = true
		reach(start.Add(10 * time.Minute))
		check("while history is away", bitcoin, start.Add(10*time.Minute), 0)
		history.away = false
		reach(start.Add(11 * time.Minute))
		check("when it is back", bitcoin, start.Add(11*time.Minute), minute(start.Add(11*time.Minute)))
	})
}
