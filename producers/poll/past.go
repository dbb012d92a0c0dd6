package poll

import (
	"fmt"
	"time"

	"github.com/marketlog/marketlog/producers"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Past reports what a source reports of the past when it is asked for it, and how it is asked. The answers to Listing have to be
// decoded by the same declaration first: some decoders know what a past is of by them alone.
type Past struct {
	// Listing are paths that are read before all others, in this order: their responses name the series. Nil means none.
	Listing []string
	// Series are what has a history, the best known first, according to the responses to Listing.
	Series func(records []*eventsv1.ReferenceRecord) []Series
	// Path asks for what a series was in [from, to), which are whole intervals.
	Path func(s Series, from, to time.Time) string
	// Interval is the time between two values of a series, at least.
	Interval time.Duration
	// Rows is the maximum number of intervals in a response: the newest of what was asked for, with OldestFirst the oldest. 0
	// is the whole past, whatever was asked for.
	Rows        int
	OldestFirst bool
	// Since is when the oldest value is of, zero if that is not known; Back is how long the source keeps a value, 0 for
	// ever.
	Since time.Time
	Back  time.Duration
	// Settle is how long after the end of an interval its value may still be missing or change.
	Settle time.Duration
	// Evidence is how the format of the answers about the past is known.
	Evidence producers.Evidence
}

// Series names what a source has a past of.
type Series struct {
	// ID is the source's own, of a pool, a product or a currency.
	ID string
	// Symbol is the source's own of what is supplied, staked or borrowed; Coin is the id of the coin whose rates it is
	// among, empty if it is among none.
	Symbol, Coin string
	// Category is that of its rate, the first one of several; empty if it is not known.
	Category string
}

// ReadPast decodes the answer to a path of Past, and returns what it reports of the past, each with a time by EventTime, and
// why the rows were refused that could not be read. Of an error nothing counts.
func (s Source) ReadPast(path string, body []byte) (records []*eventsv1.ReferenceRecord, refused []error, err error) {
	var out Readings
	if err := s.Decode(path, body, &out); err != nil {
		return nil, out.Refused, fmt.Errorf("reading the answer to %s: %w", path, err)
	}
	for _, f := range out.Fixings {
		if !f.Now { // what holds now is no past
			records = append(records, s.fixing(f))
		}
	}
	for _, rec := range out.Records {
		if _, of := EventTime(rec); of {
			setSource(rec, s.Slug)
			records = append(records, rec)
		}
	}
	return records, out.Refused, nil
}

// EventTime is the moment of the past that a record of a source speaks of, in Unix nanoseconds; false if it speaks of no
// such moment.
func EventTime(rec *eventsv1.ReferenceRecord) (at int64, ok bool) {
	switch b := rec.Body.(type) {
	case *eventsv1.ReferenceRecord_Rate:
		return b.Rate.EventTime, b.Rate.Past
	case *eventsv1.ReferenceRecord_FearGreed:
		return b.FearGreed.EventTime, true
	case *eventsv1.ReferenceRecord_DefiPast:
		return b.DefiPast.EventTime, true
	case *eventsv1.ReferenceRecord_Fixing:
		day, err := time.Parse(time.DateOnly, b.Fixing.Date)
		return day.UnixNano(), err == nil
	}
	return 0, false
}

// fixing is the record of a rate.
func (s Source) fixing(f Fixing) *eventsv1.ReferenceRecord {
	record := &eventsv1.Fixing{Source: s.Slug, Base: f.Base, Quote: f.Quote, Rate: f.Rate, Date: f.Date, Providers: f.Providers}
	if !f.Event.IsZero() {
		record.EventTime = f.Event.UnixNano()
	}
	return &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: record}}
}
