// Package corrections answers what operators excluded of venues' ticks and took back: what, since when, why, and who is answerable.
package corrections

import (
	"context"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// History is what corrections are read from.
type History interface {
	// Corrections returns the newest, at most limit of them, the last one first.
	Corrections(ctx context.Context, filter views.CorrectionFilter, limit int) ([]views.Correction, error)
}

// Unit answers the endpoint.
type Unit struct {
	history   History
	simulated func() bool
}

// New makes the unit. Simulated reports whether what is in the log is invented.
func New(history History, simulated func() bool) *Unit { return &Unit{history, simulated} }

const (
	maxCorrections = 1000
	// maxVenue is the length of a venue's name, in bytes.
	maxVenue = 64
)

// Body answers GET /api/v1/corrections.
type Body struct {
	Corrections []Correction `json:"corrections" doc:"The last one first"`
	Meta        Meta         `json:"meta"`
}

// Meta describes corrections.
type Meta struct {
	query.Meta
	Next string `json:"next,omitempty" doc:"Cursor of the next page; absent on the last one"`
}

// Correction is an exclusion or a withdrawal.
type Correction struct {
	ID          string `json:"id" example:"20260131T120000.000Z" doc:"Name of the correction; restatements that follow from it have the cause correction ID"`
	Kind        string `json:"kind" enum:"exclude,withdraw" doc:"exclude: ticks are left out; withdraw: an exclusion is taken back"`
	Time        string `json:"time" format:"date-time" doc:"From when on new prices apply it"`
	Venue       string `json:"venue,omitempty" example:"poloniex" doc:"Whose ticks are left out"`
	Symbol      string `json:"symbol,omitempty" example:"ZEC_USDT" doc:"Which market, as the venue spells it, in upper case; absent for all of the venue"`
	From        string `json:"from,omitempty" format:"date-time" doc:"Ticks that were received then or later are left out"`
	To          string `json:"to,omitempty" format:"date-time" doc:"And before this; absent without an end"`
	Author      string `json:"author" doc:"Who is answerable"`
	Reason      string `json:"reason" doc:"Why the ticks are left out, or the exclusion is taken back"`
	Evidence    string `json:"evidence,omitempty" doc:"Address or text that shows it"`
	Withdraws   string `json:"withdraws,omitempty" doc:"Exclusion that a withdrawal takes back"`
	WithdrawnBy string `json:"withdrawnBy,omitempty" doc:"Withdrawal of this exclusion; absent while it holds"`
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{{
		Method: http.MethodGet, Path: "/api/v1/corrections", ID: "listCorrections", Tool: "list_corrections", ToolSet: query.FullTools, Tag: "log",
		Summary: "What was excluded of venues' ticks, and why",
		Description: "An operator may exclude the ticks of a venue, or of one of its markets, of a span of time, and take that back. New prices apply it from its time on: " +
			"the market is listed among the inputs with the reason excluded. Prices of before stay as they were published until a replay restates them, which /api/v1/restatements lists.",
		Params: []query.Param{
			{Name: "venue", Kind: query.Text, MaxLength: maxVenue, Example: "poloniex", Doc: "Only exclusions of this venue, and withdrawals of these."},
			{Name: "limit", Kind: query.Integer, Default: "100", Min: 1, Max: maxCorrections, Doc: "Maximum number of corrections."},
			query.CursorParam(),
			query.AsOfParam("Point in time. What had been written a minute before, as if nothing had been since. Default: now."),
		},
		Body: Body{}, Handle: u.list,
	}}
}

func (u *Unit) list(ctx context.Context, r *query.Request) (query.Answer, error) {
	filter := views.CorrectionFilter{}
	if r.Has("venue") {
		filter.Venue = schemas.VenueSlug(r.Text("venue"))
	}
	if at, past := r.Time("asOf"); past {
		filter.Recorded = at.Add(-query.RecordedFor)
	}
	if r.Has("cursor") {
		filter.Behind.Time, filter.Behind.Offset, _ = query.ParseCursor(r.Text("cursor")) // it was checked
	}
	limit := int(r.Integer("limit"))
	found, err := u.history.Corrections(ctx, filter, limit+1)
	if err != nil {
		return query.Answer{}, err
	}
	body := Body{Corrections: []Correction{}}
	if len(found) > limit {
		found = found[:limit]
		body.Meta.Next = query.FormatCursor(found[limit-1].Time, found[limit-1].Offset)
	}
	for _, c := range found {
		body.Corrections = append(body.Corrections, Correction{
			ID: c.ID, Kind: c.Kind, Time: query.FormatTime(c.Time.UnixNano()), Venue: c.Venue, Symbol: c.Symbol, From: bound(c.From), To: bound(c.To),
			Author: c.Author, Reason: c.Reason, Evidence: c.Evidence, Withdraws: c.Withdraws, WithdrawnBy: c.WithdrawnBy,
		})
	}
	body.Meta.Count, body.Meta.Clamped = len(found), r.Clamped()
	answer, err := query.Encode(body)
	answer.Simulated = u.simulated()
	return answer, err
}

func bound(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return query.FormatTime(at.UnixNano())
}
