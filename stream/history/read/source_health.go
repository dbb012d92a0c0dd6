package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream/history"
)

// SourceHealth is how requests to a source went that had ended by an instant, up to the newest of any source.
type SourceHealth struct {
	Source string
	// Requests of the last 24 hours and 7 days, and how many of them succeeded.
	Requests24h, Succeeded24h, Requests7d, Succeeded7d int
	// LastAttempt and LastSuccess are when the request began; LastSuccess is zero for none in 7 days.
	LastAttempt, LastSuccess time.Time
	// LastError is of the newest request that failed, empty for none; LastStatus its HTTP status, 0 for no answer.
	LastError   string
	LastStatus  int
	LastErrorAt time.Time
	// ConsecutiveFailures since the last success.
	ConsecutiveFailures int
	// Latencies are of the successful requests of 24 hours; 0 without one.
	LatencyP50, LatencyP95 time.Duration
	// Readings are what the answers of the last 24 hours held.
	Readings int64
	// Stood is when the last request began whose answer held other values than the one from the same address before, else the first whose answer
	// is compared with another, and Compared the newest; zero where none is.
	Stood, Compared time.Time
	// HeldSince is when the last request began whose answer held a value, else the first that succeeded, and Heard the newest of these; zero for none.
	HeldSince, Heard time.Time
}

// Ways in which a source makes no progress.
const (
	// StandstillEmpty is that no answer has held any value for three intervals of the source's most frequent feed.
	StandstillEmpty = "empty"
	// StandstillUnmoved is that each answer has held the same values as the one before from the same address for three times as
	// long as the source's values are expected to move in.
	StandstillUnmoved = "unmoved"
)

// standstillAfter is how many intervals, or times that values are expected to move in, make a standstill.
const standstillAfter = 3

// Standstill is how a source that answers serves nothing new, StandstillEmpty or StandstillUnmoved, and when the last request began whose answer
// held a value, or another value; empty text and zero for no standstill. Interval is that of its most frequent feed, moves in what time its values are expected to
// move; zero for none. The view source_health judges the same.
func (h SourceHealth) Standstill(interval, moves time.Duration) (what string, since time.Time) {
	switch {
	case interval > 0 && !h.HeldSince.IsZero() && h.Heard.Sub(h.HeldSince) >= standstillAfter*interval:
		return StandstillEmpty, h.HeldSince
	case moves > 0 && !h.Stood.IsZero() && h.Compared.Sub(h.Stood) >= standstillAfter*moves:
		return StandstillUnmoved, h.Stood
	}
	return "", time.Time{}
}

// SourceHealth reads how requests to each source went that had ended by an instant, by source.
func (r Reader) SourceHealth(ctx context.Context, at time.Time) ([]SourceHealth, error) {
	health, err := history.Select(ctx, r.store, `SELECT source, requests_24h, succeeded_24h, requests_7d, succeeded_7d, last_attempt, last_success,
			last_error, last_status, last_error_at, consecutive_failures, latency_p50_ns, latency_p95_ns, readings_24h, stood, last_compared, held_since, last_heard
		FROM source_requests(at = ?) ORDER BY source`, []any{at.UTC().Format("2006-01-02 15:04:05.000000000")},
		func(rows driver.Rows) (h SourceHealth, err error) {
			var requests, succeeded, requests7d, succeeded7d, failures uint64
			var success, failed, stood, compared, held, heard *time.Time
			var status int32
			var p50, p95 int64
			err = rows.Scan(&h.Source, &requests, &succeeded, &requests7d, &succeeded7d, &h.LastAttempt, &success,
				&h.LastError, &status, &failed, &failures, &p50, &p95, &h.Readings, &stood, &compared, &held, &heard)
			h.Requests24h, h.Succeeded24h, h.Requests7d, h.Succeeded7d = int(requests), int(succeeded), int(requests7d), int(succeeded7d)
			h.LastAttempt, h.LastSuccess, h.LastErrorAt = h.LastAttempt.UTC(), orZero(success), orZero(failed)
			h.Stood, h.Compared, h.HeldSince, h.Heard = orZero(stood), orZero(compared), orZero(held), orZero(heard)
			h.LastStatus, h.ConsecutiveFailures = int(status), int(failures)
			h.LatencyP50, h.LatencyP95 = time.Duration(p50), time.Duration(p95)
			return h, err
		})
	if err != nil {
		return nil, fmt.Errorf("reading the health of sources: %w", err)
	}
	return health, nil
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
