package providers

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/query"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Body answers GET /api/v1/providers.
type Body struct {
	Providers []Provider `json:"providers" doc:"By slug"`
	Meta      query.Meta `json:"meta"`
}

// Provider is a venue or a source.
type Provider struct {
	Slug                string   `json:"slug" example:"kraken"`
	Name                string   `json:"name" example:"Kraken"`
	Categories          []string `json:"categories" doc:"What it tells"`
	Kind                string   `json:"kind" enum:"exchange,reference"`
	Status              string   `json:"status" enum:"healthy,degraded,down,disabled" doc:"An exchange is healthy while a price was heard within 120 seconds, degraded within 10 minutes, else down. A source is down without a success in 7 days or when the last 3 requests failed, degraded when the last one failed or less than 95 % of 24 hours succeeded. What is not switched on is disabled"`
	SuccessRate24h      *float64 `json:"successRate24h,omitempty" doc:"Percent of the requests of 24 hours"`
	SuccessRate7d       *float64 `json:"successRate7d,omitempty" doc:"Percent of the requests of 7 days"`
	LastSuccess         string   `json:"lastSuccess,omitempty" format:"date-time" doc:"Of an exchange, when a price was last heard"`
	LastAttempt         string   `json:"lastAttempt,omitempty" format:"date-time"`
	LastError           *Failure `json:"lastError,omitempty"`
	ConsecutiveFailures int      `json:"consecutiveFailures"`
	LatencyMs           *Latency `json:"latencyMs,omitempty" doc:"Of the requests of 24 hours that succeeded"`
	SymbolCount         int      `json:"symbolCount,omitempty" doc:"Of an exchange, the coins that it tells a fresh price of"`
	Regions             *Regions `json:"regions,omitempty" doc:"Left out where it is not known, which counts as worldwide"`
	Source              Source   `json:"source"`
	Attribution         string   `json:"attribution,omitempty" doc:"To be shown with its values"`
	StaleAfterSeconds   int64    `json:"staleAfterSeconds,omitempty"`
	Simulated           bool     `json:"simulated,omitempty"`
}

// Failure is the newest request that failed.
type Failure struct {
	Code    string `json:"code" enum:"no_answer,refused,unreadable" doc:"refused: an HTTP status that is no success; unreadable: an answer that is not as documented"`
	Status  int    `json:"status,omitempty" doc:"HTTP status"`
	Message string `json:"message"`
	At      string `json:"at,omitempty" format:"date-time"`
}

// Latency is how long requests took, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
}

// Regions are countries, by ISO 3166-1.
type Regions struct {
	Serves  []string `json:"serves,omitempty" doc:"Only these"`
	Refuses []string `json:"refuses,omitempty" doc:"All but these"`
	Source  string   `json:"source,omitempty" doc:"The page that this was read on"`
}

// Source is how it is read, and under which terms.
type Source struct {
	Transport string `json:"transport" enum:"stream,poll"`
	URL       string `json:"url,omitempty"`
	Docs      string `json:"docs,omitempty" doc:"The page that its terms were read on"`
	License   string `json:"license,omitempty"`
}

const (
	categoryPrice = "price"
	kindExchange  = "exchange"
	kindReference = "reference"
)

// categories are all that a provider may tell. The first three have no provider yet.
var categories = []string{"lending", "borrowing", "staking", categoryPrice, "coin", "market", "stablecoin", "tvl", "fear_greed", "fiat", "global"}

func (u *Unit) list() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/providers", ID: "listProviders", Tag: "providers",
		Summary: "Every venue and source, with its terms and how reading it goes",
		Params: []query.Param{{Name: "category", Kind: query.Text, Allowed: categories, Example: categoryPrice,
			Doc: "Only the providers that tell this."}},
		Body: Body{}, Handle: u.getList,
	}
}

func (u *Unit) getList(ctx context.Context, r *query.Request) (query.Answer, error) {
	snapshot := u.catalog.Snapshot()
	health, err := u.healthAt(ctx, r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	heard, category, simulated := u.listen(r.Now), r.Text("category"), false
	body := Body{Providers: []Provider{}}
	for _, n := range u.declared(snapshot) {
		p := u.describe(n, health[n.Source], heard[n.Source], r.Now)
		if category != "" && !slices.Contains(p.Categories, category) {
			continue
		}
		simulated = simulated || p.Simulated
		body.Providers = append(body.Providers, p)
	}
	body.Meta.Count, body.Meta.LastUpdated = len(body.Providers), query.FormatTime(max(snapshot.SourcesTime, u.board.Now()))
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}

// declared are the notices of all providers by slug. A venue that no process has declared yet declares its name.
func (u *Unit) declared(snapshot *query.Snapshot) []*eventsv1.SourceNotice {
	var all []*eventsv1.SourceNotice
	for _, n := range snapshot.Notices {
		all = append(all, n)
	}
	for _, v := range u.venues {
		if snapshot.Notices[v.Slug] == nil {
			all = append(all, &eventsv1.SourceNotice{Source: v.Slug, Name: v.Name, Kinds: []string{categoryPrice}, Terms: v.Terms, Enabled: true})
		}
	}
	slices.SortFunc(all, func(a, b *eventsv1.SourceNotice) int { return cmp.Compare(a.Source, b.Source) })
	return all
}

// region is where a provider may be used.
func (u *Unit) region(slug string) *Regions {
	for _, v := range u.venues {
		if v.Slug == slug && len(v.Serves)+len(v.Refuses) > 0 {
			return &Regions{v.Serves, v.Refuses, v.Terms}
		}
	}
	return nil
}

// failure tells the newest request that failed, nil for none.
func failure(h query.SourceHealth) *Failure {
	if h.LastError == "" {
		return nil
	}
	f := &Failure{Code: "refused", Status: h.LastStatus, Message: strings.ToValidUTF8(h.LastError, "�")}
	switch {
	case h.LastStatus == 0:
		f.Code = "no_answer"
	case h.LastStatus < http.StatusMultipleChoices:
		f.Code = "unreadable"
	}
	if !h.LastErrorAt.IsZero() {
		f.At = query.FormatTime(h.LastErrorAt.UnixNano())
	}
	return f
}
