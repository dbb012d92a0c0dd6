package deploy

import (
	"time"

	"github.com/marketlog/marketlog/producers"
)

// shiftedClock is the machine's time, moved: a test of crashes lets minutes of log time pass between two lives.
type shiftedClock struct {
	producers.WallClock
	by time.Duration
}

// Now returns the moved time.
func (c shiftedClock) Now() time.Time { return c.WallClock.Now().Add(c.by) }
