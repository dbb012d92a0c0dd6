package reference

import (
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/poll"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// dailyFile is the past of a source that serves all of it in one answer, a value a day.
func dailyFile(id, symbol, path string, since time.Time, evidence producers.Evidence) *poll.Past {
	series := []poll.Series{{ID: id, Symbol: symbol}}
	return &poll.Past{
		Series:   func([]*eventsv1.ReferenceRecord) []poll.Series { return series },
		Path:     func(poll.Series, time.Time, time.Time) string { return path },
		Interval: 24 * time.Hour, Since: since,
		// The day's value is published within it, and corrected within the next if at all.
		Settle:   24 * time.Hour,
		Evidence: evidence,
	}
}
