// Package usage shows callers what their plan allows, and how much of it they have used.
package usage

import (
	"context"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

// History is what the endpoint needs of the store.
type History interface {
	Usage(ctx context.Context, budget string, from, to time.Time) ([]limits.DayUsage, error)
}

// Limits reports the use of budgets.
type Limits interface {
	Windows(budget string, plan *limits.Plan, now time.Time) []limits.Standing
}

// Unit answers the endpoint.
type Unit struct {
	limits  Limits
	history History
	now     func() time.Time
}

// New makes the unit. Now is the clock of the limits.
func New(limits Limits, store History, now func() time.Time) *Unit {
	return &Unit{limits: limits, history: store, now: now}
}

// Body answers GET /api/v1/usage.
type Body struct {
	Data Data `json:"data"`
}

// Data is a plan and what was used of it.
type Data struct {
	Plan    string   `json:"plan" example:"pro" doc:"Name of the plan"`
	Windows []Window `json:"windows" doc:"Request limits; a kind without a limit is absent"`
	// HistoryDays and what follows are the plan's.
	HistoryDays int      `json:"historyDays" doc:"How many days of yield history the plan includes"`
	Sockets     int      `json:"sockets" doc:"Maximum number of open streams"`
	Features    Features `json:"features" doc:"What the plan includes besides requests"`
	Month       Month    `json:"month" doc:"Requests of the current calendar month (UTC)"`
	Timestamp   string   `json:"timestamp" format:"date-time" doc:"Time of this response"`
}

// Window is one limit.
type Window struct {
	Scope     string `json:"scope" enum:"minute,month,charts" doc:"minute: any 60 seconds; month: a calendar month (UTC); charts: requests for charts in any 60 seconds"`
	Limit     int64  `json:"limit" doc:"Maximum number of requests in the window"`
	Used      int64  `json:"used" doc:"Used by all keys that share the budget, as known to this replica"`
	Remaining int64  `json:"remaining" doc:"limit minus used, at least 0"`
	Reset     string `json:"reset" format:"date-time" doc:"When more requests become available"`
}

// Features are what only some plans have.
type Features struct {
	Bulk bool `json:"bulk" doc:"Batch requests"`
	MCP  bool `json:"mcp" doc:"The MCP endpoint"`
	SQL  bool `json:"sql" doc:"SQL over the API"`

	Details bool `json:"details" doc:"The channels of the stream that show what prices are made from"`
}

// Month is what was used of the calendar month, by day.
type Month struct {
	Month string `json:"month" example:"2026-11" doc:"Calendar month (UTC)"`
	Days  []Day  `json:"days" doc:"From the log, some seconds behind; days without use are left out"`
}

// Day is what was used on a day.
type Day struct {
	Date     string `json:"date" format:"date" doc:"Day (UTC)"`
	Requests uint64 `json:"requests" doc:"Requests that were counted, by all keys that share the budget"`
	Charts   uint64 `json:"charts" doc:"Chart requests among them"`
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{{
		Method: http.MethodGet, Path: "/api/v1/usage", ID: "getUsage", Tag: "usage", Summary: "The plan of the key, and its usage",
		Description: "This request counts against no limit.", Body: Body{}, Uncounted: true, Handle: u.answer,
	}}
}

func (u *Unit) answer(ctx context.Context, r *query.Request) (query.Answer, error) {
	now := u.now().UTC()
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	days, err := u.history.Usage(ctx, r.Budget, first, now)
	if err != nil {
		return query.Answer{}, err
	}
	p := r.Plan
	data := Data{Plan: p.Name, Windows: []Window{}, HistoryDays: p.HistoryDays, Sockets: p.Sockets, Features: Features{Bulk: p.Bulk, MCP: p.MCP, SQL: p.SQL, Details: p.Details},
		Month: Month{Month: first.Format("2006-01"), Days: []Day{}}, Timestamp: query.FormatTime(now.UnixNano())}
	logged := int64(0)
	for _, d := range days {
		logged += int64(d.Requests)
	}
	for _, w := range u.limits.Windows(r.Budget, p, now) {
		if w.Scope == limits.ScopeMonth {
			w.Used = max(w.Used, logged) // what other replicas counted is in the log before this one learns of it
		}
		data.Windows = append(data.Windows, Window{w.Scope, w.Limit, w.Used, max(0, w.Limit-w.Used), query.FormatTime(w.Reset.UnixNano())})
	}
	for _, d := range days {
		data.Month.Days = append(data.Month.Days, Day{d.Day.Format(time.DateOnly), d.Requests, d.Charts})
	}
	return query.Encode(Body{data})
}
