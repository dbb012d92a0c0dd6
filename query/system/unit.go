// Package system answers how this process is doing: which venues and sources it reads and when it last received of them, and how far
// each stage that a tick passes is behind the log. All of it is what the process measures of itself anyway; nothing is measured for
// an answer, and nothing of it comes from other processes of the installation.
package system

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
)

// States of what is read.
const (
	stateUp    = "up"
	stateQuiet = "quiet"
	stateDown  = "down"
)

const (
	// reuse is how long an answer is given again: measuring asks the log.
	reuse = time.Second
	// rateSpan is the least time that a rate is taken over, rateAge the longest.
	rateSpan, rateAge = 4 * time.Second, time.Minute
)

// Body answers GET /api/v1/system.
type Body struct {
	Data System     `json:"data"`
	Meta query.Meta `json:"meta"`
}

// System is the state of one process.
type System struct {
	Venues  []Venue  `json:"venues" doc:"Venues that this process reads, by slug; empty in a process that reads none"`
	Sources []Source `json:"sources" doc:"Sources that this process polls, by slug"`
	Path    []Stage  `json:"path" doc:"Stages of this process in the order in which a tick passes them"`
}

// Venue is an exchange that is read.
type Venue struct {
	Slug                string           `json:"slug" example:"kraken" doc:"Slug of the exchange"`
	State               string           `json:"state" enum:"up,quiet,down" doc:"down: no connection is open; quiet: connected, and nothing was received for as long as a price counts as fresh"`
	Connections         int64            `json:"connections" doc:"Open connections"`
	Markets             int64            `json:"markets" doc:"Markets that are subscribed to"`
	EventsPerSecond     *float64         `json:"eventsPerSecond,omitempty" doc:"Trades and states of order books, since an earlier request of the last minute; absent without one"`
	LastEventAgeSeconds float64          `json:"lastEventAgeSeconds" doc:"Since the last event; since the start of the process before the first"`
	Gaps                map[string]int64 `json:"gaps" doc:"Gaps since the start, by reason: sequence, disconnect or silence"`
	OpenGaps            int64            `json:"openGaps" doc:"Gaps that have not ended"`
	Missed              int64            `json:"missed" doc:"Messages that are missing by the venue's own numbers"`
	Refused             map[string]int64 `json:"refused" doc:"Messages and rows that became no event, by reason"`
}

// Source is a source that is polled.
type Source struct {
	Slug                 string           `json:"slug" example:"ecb" doc:"Slug of the source"`
	State                string           `json:"state" enum:"up,down" doc:"Whether the last request brought something that could be read"`
	LastAnswerAgeSeconds float64          `json:"lastAnswerAgeSeconds" doc:"Since an answer was last read; since it is asked before the first"`
	Requests             int64            `json:"requests" doc:"Requests since the start of the process"`
	Failures             int64            `json:"failures" doc:"Requests that brought nothing which could be read"`
	Written              int64            `json:"written" doc:"Rows that were new or changed"`
	Refused              map[string]int64 `json:"refused" doc:"Rows that could not be read, by reason"`
}

// Stage is a part of the way from a venue to an answer.
type Stage struct {
	Kind       string  `json:"kind" enum:"fold,table" doc:"fold: reads a topic and writes another; table: inserts a topic into the tables"`
	Name       string  `json:"name" example:"resolve" doc:"Name of the fold, or topic of the table"`
	Topic      string  `json:"topic" doc:"The topic that it reads"`
	LagSeconds float64 `json:"lagSeconds" doc:"Since the newest record that it has read was written; 0 where nothing is left to read"`
	LagRecords int64   `json:"lagRecords" doc:"Records that it has not read"`
}

// Unit answers the endpoint of the system. Safe for concurrent use.
type Unit struct {
	measured  prometheus.Gatherer
	simulated bool

	mu    sync.Mutex
	at    time.Time
	data  System
	taken []sample // the oldest first
}

// sample is how many events there were at a time, by venue.
type sample struct {
	at     time.Time
	events map[string]float64
}

// New makes the unit of what a process measures. Simulated means that invented data is read.
func New(measured prometheus.Gatherer, simulated bool) *Unit {
	return &Unit{measured: measured, simulated: simulated}
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{{
		Method: http.MethodGet, Path: "/api/v1/system", ID: "getSystem", Tag: "operations",
		Summary:     "State of this process: venues, sources, and how far each stage is behind",
		Description: "What the process that answers measures of itself. Where roles run apart, each process knows its own part.",
		Body:        Body{}, Handle: u.get,
	}}
}

func (u *Unit) get(_ context.Context, _ *query.Request) (query.Answer, error) {
	body := Body{}
	var err error
	var at time.Time
	if body.Data, at, err = u.read(time.Now()); err != nil {
		return query.Answer{}, err
	}
	body.Meta = query.Meta{Count: len(body.Data.Venues) + len(body.Data.Sources) + len(body.Data.Path), LastUpdated: query.FormatTime(at.UnixNano())}
	answer, err := query.Encode(body)
	answer.Simulated = u.simulated
	return answer, err
}

func (u *Unit) read(now time.Time) (System, time.Time, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.at.IsZero() && now.Sub(u.at) < reuse {
		return u.data, u.at, nil
	}
	families, err := u.measured.Gather()
	if err != nil && len(families) == 0 {
		return System{}, now, fmt.Errorf("reading what the process measures: %w", err)
	}
	u.at, u.data = now, u.describe(indexed(families), now)
	return u.data, u.at, nil
}

// series are the measured values of a metric.
type series []*dto.Metric

func indexed(families []*dto.MetricFamily) map[string]series {
	found := map[string]series{}
	for _, f := range families {
		if name, ours := strings.CutPrefix(f.GetName(), "marketlog_"); ours {
			found[name] = f.GetMetric()
		}
	}
	return found
}

// each calls visit with the value of every series and its labels by name.
func (s series) each(visit func(labels map[string]string, value float64)) {
	for _, m := range s {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		visit(labels, cmp.Or(m.GetGauge().GetValue(), m.GetCounter().GetValue()))
	}
}

func (u *Unit) describe(found map[string]series, now time.Time) System {
	venues, sources := map[string]*Venue{}, map[string]*Source{}
	events := map[string]float64{}
	ofVenues := func(metric string, set func(v *Venue, reason string, value float64)) {
		found["venue_"+metric].each(func(labels map[string]string, value float64) {
			slug := labels["venue"]
			if venues[slug] == nil {
				venues[slug] = &Venue{Slug: slug, Gaps: map[string]int64{}, Refused: map[string]int64{}}
			}
			set(venues[slug], labels["reason"], value)
		})
	}
	ofVenues("connections", func(v *Venue, _ string, n float64) { v.Connections = int64(n) })
	ofVenues("markets", func(v *Venue, _ string, n float64) { v.Markets = int64(n) })
	ofVenues("last_event_age_seconds", func(v *Venue, _ string, n float64) { v.LastEventAgeSeconds = n })
	ofVenues("missed_messages_total", func(v *Venue, _ string, n float64) { v.Missed = int64(n) })
	ofVenues("events_total", func(v *Venue, _ string, n float64) { events[v.Slug] = n })
	ofVenues("gaps_total", func(v *Venue, reason string, n float64) { count(v.Gaps, reason, n) })
	ofVenues("refused_total", func(v *Venue, reason string, n float64) { count(v.Refused, reason, n) })
	found["open_gaps"].each(func(labels map[string]string, n float64) {
		if v := venues[labels["source"]]; v != nil {
			v.OpenGaps += int64(n)
		}
	})
	ofSources := func(metric string, set func(s *Source, reason string, value float64)) {
		found["source_"+metric].each(func(labels map[string]string, value float64) {
			slug := labels["source"]
			if sources[slug] == nil {
				sources[slug] = &Source{Slug: slug, State: stateDown, Refused: map[string]int64{}}
			}
			set(sources[slug], labels["reason"], value)
		})
	}
	ofSources("up", func(s *Source, _ string, n float64) {
		if n == 1 {
			s.State = stateUp
		}
	})
	ofSources("last_answer_age_seconds", func(s *Source, _ string, n float64) { s.LastAnswerAgeSeconds = n })
	ofSources("requests_total", func(s *Source, _ string, n float64) { s.Requests = int64(n) })
	ofSources("failures_total", func(s *Source, _ string, n float64) { s.Failures = int64(n) })
	ofSources("written_total", func(s *Source, _ string, n float64) { s.Written = int64(n) })
	ofSources("refused_total", func(s *Source, reason string, n float64) { count(s.Refused, reason, n) })

	system := System{Venues: []Venue{}, Sources: []Source{}, Path: path(found)}
	before := u.sampled(sample{now, events})
	for slug, v := range venues {
		switch {
		case v.Connections == 0:
			v.State = stateDown
		case v.LastEventAgeSeconds > schemas.FreshFor.Seconds():
			v.State = stateQuiet
		default:
			v.State = stateUp
		}
		if was, known := before.events[slug]; known && events[slug] >= was {
			rate := math.Round((events[slug]-was)/now.Sub(before.at).Seconds()*10) / 10
			v.EventsPerSecond = &rate
		}
		system.Venues = append(system.Venues, *v)
	}
	for _, s := range sources {
		system.Sources = append(system.Sources, *s)
	}
	slices.SortFunc(system.Venues, func(a, b Venue) int { return cmp.Compare(a.Slug, b.Slug) })
	slices.SortFunc(system.Sources, func(a, b Source) int { return cmp.Compare(a.Slug, b.Slug) })
	return system
}

// count keeps what there is of a reason.
func count(by map[string]int64, reason string, n float64) {
	if n > 0 {
		by[reason] = int64(n)
	}
}

// sampled keeps a sample and returns the newest one that is old enough for a rate; the zero sample where there is none.
func (u *Unit) sampled(s sample) (before sample) {
	u.taken = slices.DeleteFunc(u.taken, func(old sample) bool { return s.at.Sub(old.at) > rateAge })
	for _, old := range u.taken {
		if s.at.Sub(old.at) >= rateSpan {
			before = old
		}
	}
	u.taken = append(u.taken, s)
	return before
}

// passed are the folds in the order in which a tick passes them; those of other data come after.
var passed = []string{"quotes", "resolve", "prices", "candles", "markets", "apy", "earn", "defi"}

func path(found map[string]series) []Stage {
	stages := map[string]*Stage{}
	of := func(metric, kind, label string, set func(*Stage, float64)) {
		found[metric].each(func(labels map[string]string, value float64) {
			key := kind + " " + labels[label] + " " + labels["topic"]
			if stages[key] == nil {
				stages[key] = &Stage{Kind: kind, Name: labels[label], Topic: labels["topic"]}
			}
			set(stages[key], value)
		})
	}
	seconds := func(s *Stage, v float64) { s.LagSeconds = math.Round(v*1000) / 1000 }
	records := func(s *Stage, v float64) { s.LagRecords = int64(v) }
	of("fold_lag_seconds", "fold", "fold", seconds)
	of("fold_lag_records", "fold", "fold", records)
	of("sink_lag_seconds", "table", "topic", seconds)
	of("sink_lag_records", "table", "topic", records)
	list := []Stage{}
	for _, s := range stages {
		list = append(list, *s)
	}
	place := func(s Stage) int {
		if i := slices.Index(passed, s.Name); i >= 0 {
			return i
		}
		return len(passed)
	}
	slices.SortFunc(list, func(a, b Stage) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(place(a), place(b)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Topic, b.Topic))
	})
	return list
}
