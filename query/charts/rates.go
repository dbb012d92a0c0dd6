package charts

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// RateChartBody answers GET /api/v1/charts/{coinId}/rates/{category}.
type RateChartBody struct {
	Data RateChart     `json:"data"`
	Meta RateChartMeta `json:"meta"`
}

// RateChart is what providers paid or asked for a coin over time: the median over the providers of the mean of each one's
// rates by their TVL.
type RateChart struct {
	CoinID     string       `json:"coinId" example:"ethereum"`
	Category   string       `json:"category" enum:"lending,staking,borrowing" doc:"Category of the yields"`
	Provider   string       `json:"provider" required:"false" example:"all" doc:"The provider that was asked for; all without one"`
	Timeframe  string       `json:"timeframe" example:"24h"`
	Resolution string       `json:"resolution" enum:"5m,1h,1d" doc:"Length of an interval"`
	DataPoints []RatePoint  `json:"dataPoints,omitzero" required:"false" doc:"For format ohlc, oldest first"`
	Rates      [][2]float64 `json:"rates,omitzero" required:"false" explain:"rate-chart/{coinId}/{category}/{provider}/{resolution}/{0}/close" doc:"For format simple, oldest first: start of the interval in milliseconds, last yield"`
	Stats      RateStats    `json:"stats" doc:"Over all intervals, also where points were merged or left out"`
}

// RatePoint is what the rate did in an interval, or in several where there were too many.
type RatePoint struct {
	Timestamp int64   `json:"timestamp" doc:"Start of the interval in milliseconds"`
	Rate      float64 `json:"rate" explain:"rate-points/{coinId}/{category}/{provider}/{resolution}/{timestamp}/{intervals|1}/close" doc:"Percent per year, compounded (APY); equal to close"`
	Open      float64 `json:"open" explain:"rate-points/{coinId}/{category}/{provider}/{resolution}/{timestamp}/{intervals|1}/open"`
	High      float64 `json:"high" explain:"rate-points/{coinId}/{category}/{provider}/{resolution}/{timestamp}/{intervals|1}/high"`
	Low       float64 `json:"low" explain:"rate-points/{coinId}/{category}/{provider}/{resolution}/{timestamp}/{intervals|1}/low"`
	Close     float64 `json:"close" explain:"rate-points/{coinId}/{category}/{provider}/{resolution}/{timestamp}/{intervals|1}/close"`
	Providers int     `json:"providers" explain:"rate-points/{coinId}/{category}/{provider}/{resolution}/{timestamp}/{intervals|1}/providers" doc:"Number of providers that the median is of"`
	Intervals int     `json:"intervals,omitempty" doc:"Number of intervals that were merged into the point, where there were too many; absent for one"`
	Complete  bool    `json:"complete" doc:"False for the current interval"`
}

// RateStats are over all intervals, also where fewer points are answered. Without a rate only the number of points is reported.
type RateStats struct {
	MinRate     *float64 `json:"minRate,omitempty" explain:"rate-chart-stats/{coinId}/{category}/{provider}/{resolution}/{from}/{until}/minRate" doc:"Lowest low"`
	MaxRate     *float64 `json:"maxRate,omitempty" explain:"rate-chart-stats/{coinId}/{category}/{provider}/{resolution}/{from}/{until}/maxRate" doc:"Highest high"`
	AvgRate     *float64 `json:"avgRate,omitempty" explain:"rate-chart-stats/{coinId}/{category}/{provider}/{resolution}/{from}/{until}/avgRate" doc:"Mean of the closes"`
	ChangePct   *float64 `json:"changePct,omitempty" explain:"rate-chart-stats/{coinId}/{category}/{provider}/{resolution}/{from}/{until}/changePct" doc:"Change from the first open to the last close, percent"`
	From        string   `json:"from,omitempty" format:"date-time" doc:"Start of the first interval"`
	Until       string   `json:"until,omitempty" format:"date-time" doc:"The minute up to which rates are in the last interval; its start if there are none of it yet"`
	TotalPoints int      `json:"totalPoints" doc:"Number of points returned"`
}

// RateChartMeta describes a chart of rates.
type RateChartMeta struct {
	query.Meta
	Reason string `json:"reason,omitempty" doc:"Why the chart is empty"`
}

func (u *Unit) rates() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/charts/{coinId}/rates/{category}", ID: "getRateChart", Tag: "charts",
		Summary:     "Yield history of a coin as a chart",
		Description: "The median over providers of each provider's TVL-weighted mean yield, up to the current interval. A yield is valid for three polling intervals of its source; intervals without any are left out. At most 1,000 points, as in price charts. The plan limits the range: it is then shortened and meta.clamped has its length in days.",
		Params: []query.Param{coinParam,
			{Name: "category", In: query.Path, Kind: query.Text, Required: true, Allowed: schemas.RateCategories, Example: schemas.RateLending, Doc: "Category of the yields."},
			timeframeParam, formatParam,
			{Name: "provider", Kind: query.Text, MaxLength: 64, Example: "aave-v3", Doc: "Only this provider, by slug."},
			ratesAsOfParam},
		Body: RateChartBody{}, NotFound: true, Class: limits.Charts, Handle: u.getRates,
	}
}

func (u *Unit) getRates(ctx context.Context, r *query.Request) (query.Answer, error) {
	coin, ok := u.find(r.Text("coinId"))
	if !ok {
		return query.Answer{}, u.unknown(r.Text("coinId"))
	}
	frame := named(r.Text("timeframe"))
	chart := views.RateChart{CoinID: coin.ID, Category: r.Text("category"), Provider: strings.ToLower(r.Text("provider")), Step: frame.step}
	read, yields, at, err := u.readRates(ctx, r, chart, frame)
	if err != nil {
		return query.Answer{}, fmt.Errorf("reading the rates of %s: %w", coin.ID, err)
	}
	if name := r.Text("provider"); name != "" && len(read.Series) == 0 && !knows(yields, name) {
		return query.Answer{}, query.NotFound("no provider has the slug %q", strings.ToValidUTF8(name, "�"))
	}
	body := RateChartBody{Data: drawRates(views.MedianRates(read.Series), at.UTC().Truncate(frame.step), read.Until, r.Text("format"))}
	if body.Data.Provider = strings.Clone(chart.Provider); body.Data.Provider == "" {
		body.Data.Provider = views.AllProviders
	}
	body.Data.CoinID, body.Data.Category, body.Data.Timeframe, body.Data.Resolution = coin.ID, r.Text("category"), frame.name, frame.resolution
	body.Meta.Meta = query.Meta{Count: body.Data.Stats.TotalPoints, LastUpdated: query.FormatTime(yields.Time), Clamped: r.Clamped()}
	if body.Meta.Count == 0 {
		body.Meta.Reason = "no_rates"
	}
	answer, err := query.Encode(body)
	answer.Simulated = slices.ContainsFunc(read.Series, func(s views.RateSeries) bool { return s.Simulated })
	return answer, err
}

// readRates reads a chart of a timeframe, as far as the plan allows, of the yields that are served, or were at the instant that is asked for.
func (u *Unit) readRates(ctx context.Context, r *query.Request, chart views.RateChart, frame timeframe) (read views.RateReading, yields *views.RateSnapshot, at time.Time, err error) {
	at, past := r.Time("asOf")
	if !past {
		yields, chart.Intervals = u.yieldStore.Snapshot(), r.HistoryIntervals(frame.intervals, frame.step, "timeframe")
		read, err = u.charted.Read(ctx, chart, yields, r.Now)
		return read, yields, r.Now, err
	}
	current, tables, err := u.charted.ServedAt(ctx, at)
	if err != nil {
		return read, nil, at, query.FaultOfPast(err, at)
	}
	chart.Intervals = r.HistoryIntervalsAsOf(frame.intervals, frame.step, "timeframe", at)
	read, err = u.charted.AsOf(ctx, chart, current.RateSnapshot, tables, at)
	return read, current.RateSnapshot, at, query.FaultOfPast(err, at)
}

var ratesAsOfParam = query.AsOfParam("Point in time. The chart that was given then, up to the interval that was under way; the name of the coin is that of now. Default: now.")

// knows reports whether a provider has rates, of whatever coin, or had.
func knows(yields *views.RateSnapshot, provider string) bool {
	return yields.Projects[strings.ToLower(provider)] != nil ||
		slices.ContainsFunc(yields.Entries, func(e *eventsv1.RateEntry) bool { return strings.EqualFold(e.Provider, provider) })
}

func drawRates(line []views.MedianRate, open, until time.Time, format string) (c RateChart) {
	candles := make([]schemas.Candle, len(line))
	providers := make(map[time.Time]int, len(line))
	for i, r := range line {
		candles[i], providers[r.Start] = r.Candle, r.Providers
	}
	c.Stats = rateStats(candles, until)
	if format == formatSimple {
		c.Rates = [][2]float64{}
		for _, i := range triangles(candles, maxPoints) {
			c.Rates = append(c.Rates, [2]float64{float64(candles[i].Start.UnixMilli()), candles[i].Close})
		}
		c.Stats.TotalPoints = len(c.Rates)
		return c
	}
	c.DataPoints = []RatePoint{}
	for _, m := range merged(candles, maxPoints) {
		c.DataPoints = append(c.DataPoints, RatePoint{
			Timestamp: m.Start.UnixMilli(), Rate: m.Close, Open: m.Open, High: m.High, Low: m.Low, Close: m.Close,
			Providers: providers[m.Start], Intervals: severalIntervals(m), Complete: m.Start.Before(open),
		})
	}
	c.Stats.TotalPoints = len(c.DataPoints)
	return c
}

func rateStats(candles []schemas.Candle, until time.Time) RateStats {
	s, ok := views.StatsOf(candles)
	if !ok {
		return RateStats{}
	}
	return RateStats{MinRate: &s.Min, MaxRate: &s.Max, AvgRate: &s.Mean, ChangePct: s.ChangePct, From: query.FormatTime(candles[0].Start.UnixNano()), Until: query.FormatTime(until.UnixNano())}
}
