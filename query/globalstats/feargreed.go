package globalstats

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// fearGreedFor is how long the source's value of a day counts, from the day's beginning: the next one is published soon
	// after a day.
	fearGreedFor = 26 * time.Hour
	// fearGreedDays is how many days the history has.
	fearGreedDays = 30
	// sourceComputed is what our own index is called.
	sourceComputed = "computed"
)

// FearGreedBody answers GET /api/v1/global-stats/fear-greed.
type FearGreedBody struct {
	Data FearGreed `json:"data"`
}

// FearGreed is an index from 0, extreme fear, to 100, extreme greed.
type FearGreed struct {
	Value           uint32        `json:"value" explain:"fear-greed" doc:"0 to 100"`
	Classification  string        `json:"classification" example:"Fear" doc:"The value in words, from Extreme Fear to Extreme Greed"`
	Timestamp       int64         `json:"timestamp" doc:"Unix seconds; for a daily value, the start of its day"`
	UpdatedAt       string        `json:"updatedAt" format:"date-time" doc:"The same as a time"`
	TimeUntilUpdate int64         `json:"timeUntilUpdate" doc:"Seconds until the next value, from the start of the current minute"`
	Source          string        `json:"source" doc:"Source of the value; computed if the source's value is older than 26 hours or missing"`
	Attribution     string        `json:"attribution,omitempty" doc:"Attribution to show with the value"`
	History         []Point       `json:"history" doc:"The source's last 30 days, oldest first"`
	Computed        *OwnFearGreed `json:"computed,omitempty" doc:"Computed index of the last minute"`
}

// Point is a value of a series.
type Point struct {
	Timestamp string  `json:"timestamp" format:"date-time" doc:"Start of the day that the value is of"`
	Value     float64 `json:"value" explain:"fear-greed/days/{timestamp}" doc:"0 to 100"`
}

// OwnFearGreed is our own index and what it is the mean of.
type OwnFearGreed struct {
	Value          uint32             `json:"value" explain:"fear-greed/computed" doc:"0 to 100"`
	Classification string             `json:"classification" doc:"The value in words, from Extreme Fear to Extreme Greed"`
	Components     map[string]float64 `json:"components" explain:"fear-greed/computed/{key}" doc:"Each from 0 to 100"`
	Timestamp      int64              `json:"timestamp" doc:"Unix seconds"`
}

func (u *Unit) fearGreed() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/fear-greed", ID: "getFearGreed", Tool: "fear_greed_index", Tag: tag,
		Summary:     "Fear and greed index",
		Description: "The value of alternative.me, and an index computed by this service, which replaces it if it is older than 26 hours; see source.",
		Params:      []query.Param{asOfParam},
		Body:        FearGreedBody{}, ToolBody: FearGreed{}, NotFound: true, Hot: true, Handle: u.getFearGreed,
	}
}

func (u *Unit) getFearGreed(ctx context.Context, r *query.Request) (query.Answer, error) {
	body := func(now current) (any, error) {
		body := fearGreedOf(now)
		switch {
		case body == nil:
			return nil, query.Starting("there is no fear and greed value yet")
		case r.View == query.Tool:
			return body, nil
		}
		return FearGreedBody{*body}, nil
	}
	if _, past := r.Time("asOf"); past {
		return u.answerAt(ctx, r, key{}, partFearGreed, body)
	}
	return u.answerOf(u.catalog.Snapshot(), r, key{operation: "fearGreed"}, body)
}

// fearGreedOf is nil where neither the source nor the fold has published anything.
func fearGreedOf(now current) *FearGreed {
	days := joinDays(now.past, now.FearGreed)
	f := &FearGreed{History: []Point{}}
	for _, day := range days[max(0, len(days)-fearGreedDays):] {
		f.History = append(f.History, Point{query.FormatTime(day.EventTime), float64(day.Value)})
	}
	if own := now.Summary.GetFearGreed(); own != nil {
		f.Computed = &OwnFearGreed{Value: own.Value, Classification: schemas.FearGreedClass(own.Value), Components: map[string]float64{},
			Timestamp: seconds(now.Summary.Time)}
		for _, c := range own.Components {
			f.Computed.Components[c.Name] = c.Value
		}
	}
	var at, next int64
	switch newest := last(days); {
	case newest != nil && (f.Computed == nil || now.minute.UnixNano()-newest.EventTime <= int64(fearGreedFor)):
		f.Value, f.Classification = newest.Value, cmp.Or(newest.Classification, schemas.FearGreedClass(newest.Value))
		f.Source, f.Attribution = newest.Source, now.Notices[newest.Source].GetAttribution()
		at, next = newest.EventTime, cmp.Or(newest.NextUpdate, newest.EventTime+int64(24*time.Hour))
	case f.Computed != nil:
		f.Value, f.Classification, f.Source = f.Computed.Value, f.Computed.Classification, sourceComputed
		at, next = now.Summary.Time, now.Summary.Time+int64(time.Minute)
	default:
		return nil
	}
	f.Timestamp, f.UpdatedAt = seconds(at), query.FormatTime(at)
	f.TimeUntilUpdate = max(0, seconds(next)-now.minute.Unix())
	return f
}

func last(days []*eventsv1.FearGreed) *eventsv1.FearGreed {
	if len(days) == 0 {
		return nil
	}
	return days[len(days)-1]
}

// joinDays puts what history holds before what was published lately; of a day that both have, the latter counts.
func joinDays(past, lately []*eventsv1.FearGreed) []*eventsv1.FearGreed {
	byDay := make(map[int64]*eventsv1.FearGreed, len(past)+len(lately))
	for _, days := range [][]*eventsv1.FearGreed{past, lately} {
		for _, day := range days {
			byDay[day.EventTime] = day
		}
	}
	joined := make([]*eventsv1.FearGreed, 0, len(byDay))
	for _, day := range byDay {
		joined = append(joined, day)
	}
	slices.SortFunc(joined, func(a, b *eventsv1.FearGreed) int { return cmp.Compare(a.EventTime, b.EventTime) })
	return joined
}
