package providers

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Body answers GET /api/v1/providers.
type Body struct {
	Providers []views.ProviderState `json:"providers" doc:"Sorted by slug"`
	Meta      query.Meta            `json:"meta"`
}

// ToolBody is the tool's form: what a model chooses a provider by. The reference view says how reading each goes.
type ToolBody struct {
	Providers []ToolProvider `json:"providers" doc:"Sorted by slug"`
	Meta      query.Meta     `json:"meta"`
}

// ToolProvider is a provider in the tool's form.
type ToolProvider struct {
	Slug       string   `json:"slug" example:"kraken" doc:"Identifies the provider in all responses"`
	Name       string   `json:"name" example:"Kraken" doc:"Name of the provider"`
	Categories []string `json:"categories" doc:"Kinds of data it provides"`
	Kind       string   `json:"kind" enum:"exchange,cefi,defi,reference" doc:"defi: a protocol; cefi: another company that pays or charges interest; reference: a source that only reports data of others"`
	Status     string   `json:"status" enum:"healthy,degraded,down,disabled" doc:"degraded: silent or partly failing; down: no recent data; disabled: switched off"`
	Simulated  bool     `json:"simulated,omitempty"`
}

const (
	categoryPrice = "price"
	categoryRate  = "rate"
	kindExchange  = "exchange"
	kindCefi      = "cefi"
	kindDefi      = "defi"
	kindReference = "reference"
)

// categories are all that a provider may report; categoryRate is of sources that report the rates of others.
var categories = []string{"lending", "borrowing", "staking", categoryPrice, categoryRate, "coin", "market", "stablecoin", "tvl", "fear_greed", "fiat", "global"}

var asOfParam = query.AsOfParam("Point in time. The answer that was given then. Default: now.")

func (u *Unit) list() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/providers", ID: "listProviders", Tool: "list_providers", Tag: "providers",
		Summary:     "All venues and sources, with terms and health",
		Description: "Health is by our own requests and prices.",
		Params: []query.Param{{Name: "category", Kind: query.Text, Allowed: categories, Example: categoryPrice,
			Doc: "Only providers of this kind of data."}, asOfParam},
		Body: Body{}, ToolBody: ToolBody{}, Handle: u.getList,
	}
}

func (u *Unit) getList(ctx context.Context, r *query.Request) (query.Answer, error) {
	k, err := u.asked(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	category, simulated := r.Text("category"), false
	body := Body{Providers: []views.ProviderState{}}
	for _, p := range u.states(k) {
		if category != "" && !slices.Contains(p.Categories, category) {
			continue
		}
		simulated = simulated || p.Simulated
		body.Providers = append(body.Providers, p)
	}
	body.Meta.Count, body.Meta.LastUpdated = len(body.Providers), query.FormatTime(k.time())
	shown := any(body)
	if r.View == query.Tool {
		short := ToolBody{Providers: make([]ToolProvider, len(body.Providers)), Meta: body.Meta}
		for i, p := range body.Providers {
			short.Providers[i] = ToolProvider{p.Slug, p.Name, p.Categories, p.Kind, p.Status, p.Simulated}
		}
		shown = short
	}
	answer, err := query.Encode(shown)
	answer.Simulated = simulated
	return answer, err
}

// asked is what is known at the instant that a request asks for.
func (u *Unit) asked(ctx context.Context, r *query.Request) (*known, error) {
	at, past := r.Time("asOf")
	if !past {
		return u.now(ctx, r.Now)
	}
	k, err := u.asOf(ctx, at)
	return k, query.FaultOfPast(err, at)
}

// All are the providers with their current states, by slug.
func (u *Unit) All(ctx context.Context, now time.Time) ([]views.ProviderState, error) {
	k, err := u.now(ctx, now)
	if err != nil {
		return nil, err
	}
	return u.states(k), nil
}

// AllAsOf are they with the states that they had at an instant. It fails with an *views.AgedOutError where these are not kept.
func (u *Unit) AllAsOf(ctx context.Context, at time.Time) ([]views.ProviderState, error) {
	k, err := u.asOf(ctx, at)
	if err != nil {
		return nil, err
	}
	return u.states(k), nil
}

func (u *Unit) states(k *known) []views.ProviderState {
	received, rated := k.listen(), k.rated()
	all := []views.ProviderState{}
	for _, n := range u.declared(k.sources) {
		if rated[n.Source] == nil || slices.Contains(n.Kinds, categoryPrice) {
			p := u.describe(n, k.health[n.Source], received[n.Source], k.at)
			rated[n.Source].join(&p, k, received[n.Source])
			all = append(all, p)
			delete(rated, n.Source)
		}
	}
	for slug, r := range rated {
		all = append(all, u.describeRated(slug, r, k))
	}
	slices.SortFunc(all, func(a, b views.ProviderState) int { return cmp.Compare(a.Slug, b.Slug) })
	return all
}

// declared are the notices of all providers by slug. A venue that no process has declared yet declares its name.
func (u *Unit) declared(snapshot *views.Snapshot) []*eventsv1.SourceNotice {
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

// region is where a provider may be used, as far as that is known.
func (u *Unit) region(slug string) views.Provider {
	i := slices.IndexFunc(u.venues, func(v views.Provider) bool { return v.Slug == slug })
	if i < 0 {
		return views.Provider{}
	}
	return u.venues[i]
}

// failure reports the newest request that failed, nil for none.
func failure(h views.SourceHealth) *views.ProviderFailure {
	if h.LastError == "" {
		return nil
	}
	f := &views.ProviderFailure{Code: "refused", Status: h.LastStatus, Message: strings.ToValidUTF8(h.LastError, "�")}
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
