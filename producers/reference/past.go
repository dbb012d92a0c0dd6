package reference

import (
	"time"

	"github.com/marketlog/marketlog/producers"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// dailyFile is the past of a source that tells all of it in one answer, a value a day.
func dailyFile(id, symbol, path string, since time.Time, evidence producers.Evidence) *producers.Past {
	series := []producers.Series{{ID: id, Symbol: symbol}}
	return &producers.Past{
		Series:   func([]*eventsv1.ReferenceRecord) []producers.Series { return series },
		Path:     func(producers.Series, time.Time, time.Time) string { return path },
		Interval: 24 * time.Hour, Since: since,
		// The day's value is published within it, and corrected within the next if at all.
		Settle:   24 * time.Hour,
		Evidence: evidence,
	}
}
