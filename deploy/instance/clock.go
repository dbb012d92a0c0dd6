package instance

import (
	"time"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/stream/faults"
)

// ShiftedClock is the machine's time, moved: a test of crashes lets minutes of log time pass between two lives.
type ShiftedClock struct {
	producers.WallClock
	By time.Duration
}

// Now returns the moved time.
func (c ShiftedClock) Now() time.Time { return c.WallClock.Now().Add(c.By + faults.ClockJump()) }

// AcceleratedPast is how far in the past an accelerated run begins: what the venues' minutes reach back.
const AcceleratedPast = 30 * 24 * time.Hour

// NewClock is the machine's, or one that runs ahead of it for an accelerated simulator.
func NewClock(cfg config.Config) producers.Clock {
	if shift := faults.ClockShift(); shift != 0 || faults.ClockJumps() {
		return ShiftedClock{By: shift}
	}
	if cfg.Feeds != "sim" || cfg.Sim.Speed <= 1 {
		return producers.WallClock{}
	}
	return producers.NewVirtualClock(time.Now().Add(-AcceleratedPast), cfg.Sim.Speed)
}
