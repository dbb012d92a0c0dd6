package views

import (
	"time"
)

// StatisticsStaleAfter is the age from which statistics of the whole market are stale: three times their interval of
// refresh, of which the longest is five minutes.
const StatisticsStaleAfter = 15 * time.Minute
