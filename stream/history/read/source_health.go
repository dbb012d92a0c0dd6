package read

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/marketlog/marketlog/stream/history"
)

// SourceHealth is how requests to a source went, up to the newest request of any source.
type SourceHealth struct {
	Source string
	// Requests of the last 24 hours and 7 days, and how many of them succeeded.
	Requests24h, Succeeded24h, Requests7d, Succeeded7d int
	// LastAttempt and LastSuccess are when the request began; LastSuccess is zero for none in 90 days.
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
	// Standstill is how a source that answers serves nothing new: StandstillEmpty, StandstillUnmoved, or empty text.
	Standstill string
	// StandstillSince is when the last request began whose answer held a value, or another value; zero for no standstill.
	StandstillSince time.Time
}

// Ways in which a source makes no progress.
const (
	// StandstillEmpty is that no answer has held any value for three intervals of the source's most frequent feed.
	StandstillEmpty = "empty"
	// StandstillUnmoved is that each answer has held the same values as the one before from the same address for three times as
	// long as the source's values are expected to move in.
	StandstillUnmoved = "unmoved"
)

// SourceHealth reads how requests to each source went, by source.
func (r Reader) SourceHealth(ctx context.Context) ([]SourceHealth, error) {
	health, err := history.Select(ctx, r.store, `SELECT source, requests_24h, succeeded_24h, requests_7d, succeeded_7d, last_attempt, last_success,
			last_error, last_status, last_error_at, consecutive_failures, latency_p50_ns, latency_p95_ns, readings_24h, standstill, standstill_since
		FROM source_health ORDER BY source`, nil,
		func(rows driver.Rows) (h SourceHealth, err error) {
			var requests, succeeded, requests7d, succeeded7d, failures uint64
			var success, failed, standing *time.Time
			var status int32
			var p50, p95 int64
			err = rows.Scan(&h.Source, &requests, &succeeded, &requests7d, &succeeded7d, &h.LastAttempt, &success,
				&h.LastError, &status, &failed, &failures, &p50, &p95, &h.Readings, &h.Standstill, &standing)
			h.Requests24h, h.Succeeded24h, h.Requests7d, h.Succeeded7d = int(requests), int(succeeded), int(requests7d), int(succeeded7d)
			h.LastAttempt, h.LastSuccess, h.LastErrorAt = h.LastAttempt.UTC(), orZero(success), orZero(failed)
			h.StandstillSince = orZero(standing)
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
