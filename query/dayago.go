package query

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/marketlog/marketlog/schemas"
)

const (
	oneDay = 24 * time.Hour
	// closesLook is how often the board is asked whether a new minute began, in real time: under an
	// accelerated clock history is read once in it all the same.
	closesLook = time.Second
	// closesPatience bounds one reading of history.
	closesPatience = 10 * time.Second
	// closesHold is how far the instant asked for may lie from the one that was read: prices are written
	// each minute, and history is read once in it.
	closesHold = 2 * time.Minute
)

// Closes tells what coins cost at an instant, by coin id; a coin is left out where that is not known.
type Closes interface {
	ClosesAt(ctx context.Context, at time.Time) (map[string]float64, error)
}

// DayAgo holds in memory what each coin cost 24 hours before the board's now. Safe for concurrent use.
type DayAgo struct {
	board   *Board
	history Closes
	held    atomic.Pointer[heldCloses]
}

// heldCloses never changes.
type heldCloses struct {
	at     time.Time
	byRank []float64 // at rank-1; 0 where it is not known
}

// NewDayAgo makes one that knows nothing until Run has read it.
func NewDayAgo(board *Board, history Closes) *DayAgo { return &DayAgo{board: board, history: history} }

// Run reads history once in each minute of log time until the context ends. What cannot be read is read
// again; until then the prices of 24 hours ago grow unknown.
func (d *DayAgo) Run(ctx context.Context, log *slog.Logger) error {
	ticker := time.NewTicker(closesLook)
	defer ticker.Stop()
	failing := false
	for {
		err := d.refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !failing:
			log.Warn("going on without the prices of 24 hours ago", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// refresh reads history if a minute began since it was read.
func (d *DayAgo) refresh(ctx context.Context) error {
	now := d.board.Now()
	at := time.Unix(0, now).Add(-oneDay).Truncate(time.Minute)
	if held := d.held.Load(); now == 0 || held != nil && held.at.Equal(at) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closesPatience)
	defer cancel()
	closes, err := d.history.ClosesAt(ctx, at)
	if err != nil {
		return err
	}
	coins := d.board.Coins().All()
	byRank := make([]float64, len(coins))
	for i, coin := range coins {
		byRank[i] = closes[coin.ID]
	}
	d.held.Store(&heldCloses{at, byRank})
	return nil
}

// DayAgo tells what a coin cost 24 hours before a time (Unix nanoseconds); false where that is not
// known. It never waits.
func (d *DayAgo) DayAgo(coin schemas.Coin, at int64) (float64, bool) {
	held := d.held.Load()
	if held == nil || time.Unix(0, at).Add(-oneDay).Sub(held.at).Abs() > closesHold {
		return 0, false
	}
	price := held.byRank[coin.Rank-1]
	return price, price > 0
}
