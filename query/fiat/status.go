package fiat

import (
	"context"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/query"
)

// StatsBody answers GET /api/v1/fiat/stats.
type StatsBody struct {
	Data Stats      `json:"data"`
	Meta query.Meta `json:"meta"`
}

// Stats counts the currencies.
type Stats struct {
	TotalCurrencies int    `json:"totalCurrencies" doc:"Number of currencies with a rate, the US dollar among them"`
	LastUpdate      string `json:"lastUpdate" format:"date-time" doc:"Time of the newest rate"`
	StaleCurrencies int    `json:"staleCurrencies" doc:"Currencies for which no source has a fresh rate"`
}

// StatusBody answers GET /api/v1/fiat/status.
type StatusBody struct {
	Data Status     `json:"data"`
	Meta query.Meta `json:"meta"`
}

// Status is how the reading of rates goes, by the log.
type Status struct {
	IsRunning       bool   `json:"isRunning" doc:"A sync is due or running: its result is not in the log yet, and the process that polls the sources is up"`
	LastSync        string `json:"lastSync,omitempty" format:"date-time" doc:"When a source of exchange rates was last polled; absent before the first poll"`
	NextSync        string `json:"nextSync,omitempty" format:"date-time" doc:"lastSync plus the interval"`
	IntervalSeconds int64  `json:"intervalSeconds" doc:"Polling interval of the most frequently polled source; central banks are polled hourly"`
	Statistics      Stats  `json:"statistics" doc:"Number of currencies, and time of the newest rate"`
}

func (u *Unit) stats() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/fiat/stats", ID: "getFiatStats", Tag: tag,
		Summary:     "Number of currencies, and how many have no fresh rate",
		Description: "Counts every currency with a known name that a source has published a rate of, and the US dollar itself; a currency without a fresh rate keeps its newest one.",
		Params:      []query.Param{asOfParam},
		Body:        StatsBody{}, Hot: true, Handle: u.getStats,
	}
}

func (u *Unit) getStats(ctx context.Context, r *query.Request) (query.Answer, error) {
	return u.answer(ctx, r, key{operation: "stats"}, func(now *current) (any, error) {
		return StatsBody{now.stats(), now.meta(len(now.currencies)).Meta}, nil
	})
}

func (c *current) stats() Stats {
	return Stats{len(c.currencies), query.FormatTime(c.newest()), c.stale()}
}

func (u *Unit) status() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/fiat/status", ID: "getFiatStatus", Tag: tag,
		Summary:     "Time of the last and of the next poll of exchange rates",
		Description: "Times come from the log: the last poll is that of any source of exchange rates, and the next one follows it by the shortest interval of the sources.",
		Params:      []query.Param{asOfParam},
		Body:        StatusBody{}, Hot: true, Handle: u.getStatus,
	}
}

func (u *Unit) getStatus(ctx context.Context, r *query.Request) (query.Answer, error) {
	return u.answer(ctx, r, key{operation: "status"}, func(now *current) (any, error) {
		s := Status{IntervalSeconds: int64(now.sync.interval / time.Second), Statistics: now.stats(),
			IsRunning: now.sync.alive && !now.minute.Before(now.sync.next())}
		if !now.sync.last.IsZero() {
			s.LastSync, s.NextSync = query.FormatTime(now.sync.last.UnixNano()), query.FormatTime(now.sync.next().UnixNano())
		}
		return StatusBody{s, now.meta(len(now.currencies)).Meta}, nil
	})
}
