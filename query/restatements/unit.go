// Package restatements answers which rows of the past have become others after they may have been read, by a replay or by another statement of their source: from what to what, when and why.
package restatements

import (
	"context"
	"net/http"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// History is what restatements are read from.
type History interface {
	// Restatements returns the newest, at most limit of them: the last run first, within it as they were recorded.
	Restatements(ctx context.Context, filter views.RestatementFilter, limit int) ([]views.Restatement, error)
	// Unlisted returns of which tables more rows were restated than are listed, the last first.
	Unlisted(ctx context.Context, filter views.RestatementFilter, limit int) ([]views.RestatedTable, error)
}

// Unit answers the endpoint.
type Unit struct {
	catalog   *views.Catalog
	history   History
	simulated func() bool
}

// New makes the unit. Simulated reports whether what is in the log is invented.
func New(catalog *views.Catalog, history History, simulated func() bool) *Unit {
	return &Unit{catalog, history, simulated}
}

const (
	maxRestatements = 1000
	// maxTables is how many tables of which not all is listed an answer names.
	maxTables = 100
)

// Body answers GET /api/v1/restatements.
type Body struct {
	Restatements []Restatement `json:"restatements" doc:"The last first; those of one replay by table and time of the row"`
	Unlisted     []Table       `json:"unlisted,omitempty" doc:"Tables of which replays in the range changed more rows than are listed one by one; of each the first by time are. Not narrowed by coin"`
	Meta         Meta          `json:"meta"`
}

// Meta describes restatements.
type Meta struct {
	query.Meta
	Since string `json:"since" format:"date-time" doc:"Start of the range"`
	Until string `json:"until" format:"date-time" doc:"End of the range"`
	Next  string `json:"next,omitempty" doc:"Cursor of the next page; absent on the last one"`
}

// Restatement is a row that was added, removed or changed.
type Restatement struct {
	Time      string            `json:"time" format:"date-time" doc:"When it was restated; by a source, when its later statement was received"`
	Run       string            `json:"run" example:"replay-7-20260131T120000.000000000" doc:"Which replay did it; of a source, topic/partition/offset of its later statement, which GET /api/v1/log/… shows"`
	Cause     string            `json:"cause" example:"logic 4" doc:"correction ID: by a replay that applies corrections; logic N: by version N of the processor; symbols: by another coin table; replay: the log gives another row than there was, by the same version; source NAME: the source or venue stated the past otherwise later; import SHA256: an imported file did"`
	View      string            `json:"view" example:"candles" doc:"View that was replayed; reference or backfill where a source stated something else"`
	Table     string            `json:"table" example:"candles_1m" doc:"Table of the row"`
	Kind      string            `json:"kind" enum:"changed,added,removed" doc:"added: there was no such row; removed: there is none any more"`
	CoinID    string            `json:"coinId,omitempty" doc:"Absent where the row is not of one coin"`
	EventTime string            `json:"eventTime" format:"date-time" doc:"What the row is of"`
	Key       map[string]string `json:"key" doc:"What the row is known by"`
	Before    map[string]string `json:"before,omitempty" doc:"Values before by column, as exact text: of a changed row those that differ, of a removed one all. A value that was not known is left out"`
	After     map[string]string `json:"after,omitempty" doc:"Values after; of an added row all"`
	Others    []string          `json:"others,omitempty" doc:"Columns with lists that differ too, of which no value is recorded"`

	LogicBefore  uint32 `json:"logicBefore,omitempty" doc:"Version of the processor that made the row before"`
	LogicAfter   uint32 `json:"logicAfter,omitempty" doc:"Version that made the row after"`
	DigestBefore string `json:"digestBefore,omitempty" doc:"Hash of all values before, lists too, in hexadecimal"`
	DigestAfter  string `json:"digestAfter,omitempty" doc:"Hash of all values after"`
}

// Table is a table of which not every restated row is listed.
type Table struct {
	Time  string `json:"time" format:"date-time" doc:"When the rows were restated"`
	Run   string `json:"run" doc:"Which replay"`
	View  string `json:"view" doc:"View that was replayed"`
	Table string `json:"table" doc:"Table of the rows"`
	Rows  int64  `json:"rows" doc:"How many rows more were added, removed or changed than are listed"`
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{{
		Method: http.MethodGet, Path: "/api/v1/restatements", ID: "listRestatements", Tool: "list_restatements", ToolSet: query.FullTools, Tag: "log",
		Summary: "Rows of the past that were changed after they may have been read",
		Description: "A replay of the log by another version of a processor, or after a damage, replaces rows of the past; so does a source that states another value of the same " +
			"day or minute later, and a file that is imported again. Each row that is added, removed or changed is listed with its values before and after, and why. The plan limits how far back since may be.",
		Params: []query.Param{
			query.CoinParam("coin", query.Query, "BTC"),
			// Every operation has a parameter view, for the form of the answer.
			{Name: "replay", Kind: query.Text, Allowed: replayed(), Example: schemas.ViewCandles, Doc: "Only rows of this view, as marketlog replay --view names it; reference and backfill are what sources stated otherwise."},
			{Name: "since", Kind: query.Time, Past: true, Planned: true, Example: "2026-01-31T12:00:00Z", Doc: "Restated then or later; default as far back as the plan allows."},
			{Name: "until", Kind: query.Time, Example: "2026-01-31T12:00:00Z", Doc: "Restated then or before; default now."},
			{Name: "limit", Kind: query.Integer, Default: "100", Min: 1, Max: maxRestatements, Doc: "Maximum number of restatements."},
			query.CursorParam(),
			query.AsOfParam("Point in time. What had come to be a minute before, and until is at most that. Default: now."),
		},
		Body: Body{}, Handle: u.list,
	}}
}

// replayed are the views of which a replay may change rows, and those that sources state.
func replayed() []string {
	return append(schemas.FoldedViews(), schemas.ViewTicks, schemas.ViewReference, schemas.ViewBackfill)
}

func (u *Unit) list(ctx context.Context, r *query.Request) (query.Answer, error) {
	filter := views.RestatementFilter{View: strings.ToLower(r.Text("replay")), Since: r.Now.UTC().AddDate(0, 0, -r.Plan.HistoryDays), Until: r.Now}
	if at, past := r.Time("asOf"); past {
		filter.Since, filter.Until, filter.Recorded = r.OldestAsOf(at), at, at.Add(-query.RecordedFor)
	}
	if since, given := r.Time("since"); given {
		filter.Since = since
	}
	if until, given := r.Time("until"); given && (until.Before(filter.Until) || filter.Recorded.IsZero()) {
		filter.Until = until
	}
	if filter.Until.Before(filter.Since) {
		return query.Answer{}, query.Invalid("until", "is before since, %s", query.FormatTime(filter.Since.UnixNano()))
	}
	if r.Has("coin") {
		filter.CoinID = u.coinID(r.Text("coin"))
	}
	if r.Has("cursor") {
		filter.Behind.Time, filter.Behind.Offset, _ = query.ParseCursor(r.Text("cursor")) // it was checked
	}
	limit := int(r.Integer("limit"))
	found, err := u.history.Restatements(ctx, filter, limit+1)
	if err != nil {
		return query.Answer{}, err
	}
	body := Body{Restatements: []Restatement{}}
	if len(found) > limit {
		found = found[:limit]
		body.Meta.Next = query.FormatCursor(found[limit-1].Time, found[limit-1].Offset)
	}
	for _, f := range found {
		body.Restatements = append(body.Restatements, Restatement{
			Time: query.FormatTime(f.Time.UnixNano()), Run: f.Run, Cause: f.Cause, View: f.View, Table: f.Table, Kind: f.Kind, CoinID: f.CoinID,
			EventTime: query.FormatTime(f.EventTime.UnixNano()), Key: f.Key, Before: f.Before, After: f.After, Others: f.Others,
			LogicBefore: f.LogicBefore, LogicAfter: f.LogicAfter, DigestBefore: f.DigestBefore, DigestAfter: f.DigestAfter,
		})
	}
	unlisted, err := u.history.Unlisted(ctx, filter, maxTables)
	if err != nil {
		return query.Answer{}, err
	}
	for _, t := range unlisted {
		body.Unlisted = append(body.Unlisted, Table{query.FormatTime(t.Time.UnixNano()), t.Run, t.View, t.Table, t.Rows})
	}
	body.Meta.Count, body.Meta.Clamped = len(found), r.Clamped()
	body.Meta.Since, body.Meta.Until = query.FormatTime(filter.Since.UnixNano()), query.FormatTime(filter.Until.UnixNano())
	answer, err := query.Encode(body)
	answer.Simulated = u.simulated()
	return answer, err
}

// coinID is the id of the coin that a name means. A name that nothing is called by is taken for an id, of which no row is.
func (u *Unit) coinID(name string) string {
	if coin, ok := u.catalog.Snapshot().Find(name); ok {
		return coin.ID
	}
	return strings.ToLower(name)
}
