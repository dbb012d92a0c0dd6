package query

import (
	"strconv"
	"time"

	"github.com/marketlog/marketlog/query/views"
)

// Age is how old a value was when it was asked for. Two that are equal read the same, so that an answer which holds one
// can be kept as long as it is unchanged.
type Age struct {
	at      int64
	minutes int64
	// Stale and Critical are by the limits that it was taken with.
	Stale, Critical bool
}

// AgeOf takes the age of a value of a time (Unix nanoseconds, 0 for none yet) by the query's clock. It is critical from
// CriticalAfter on.
func AgeOf(at int64, now time.Time, staleAfter time.Duration) Age {
	age := time.Duration(now.UnixNano() - at)
	return Age{at, int64(max(age, 0) / time.Minute), age > staleAfter, age > views.CriticalAfter}
}

// AgeMeta is an age as answers state it.
type AgeMeta struct {
	DataAge    string `json:"dataAge" example:"3 minutes"`
	IsStale    bool   `json:"isStale"`
	IsCritical bool   `json:"isCritical" doc:"Older than two hours"`
	LastUpdate string `json:"lastUpdate,omitempty" format:"date-time" doc:"Time of the oldest input of this response, on which its age is based; absent before the first input"`
}

// Meta writes it.
func (a Age) Meta() AgeMeta {
	if a.at == 0 {
		return AgeMeta{DataAge: "unknown", IsStale: true, IsCritical: true}
	}
	return AgeMeta{a.words(), a.Stale, a.Critical, FormatTime(a.at)}
}

func (a Age) words() string {
	const hour, day = 60, 24 * 60
	switch m := a.minutes; {
	case m < 1:
		return "less than a minute"
	case m < hour:
		return counted(m, "minute")
	case m < day:
		return counted(m/hour, "hour")
	default:
		return counted(m/day, "day")
	}
}

func counted(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.FormatInt(n, 10) + " " + unit + "s"
}
