package globalstats

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// History is what the past of the whole market is read from.
type History interface {
	// Summaries returns of each step in (from, to] the last summary, oldest first.
	Summaries(ctx context.Context, from, to time.Time, step time.Duration) ([]*eventsv1.Summary, error)
	// SummaryAt returns the newest summary of a minute that ended by an instant, with its sentiment; nil where there is none.
	SummaryAt(ctx context.Context, at time.Time) (*eventsv1.Summary, error)
	// SummariesWritten returns the end of the last minute up to which all are kept; the zero time where none was ever written.
	SummariesWritten(ctx context.Context) (time.Time, error)
	// SummaryOHLC returns what a metric did in the minutes that ended in (from, to], by steps, oldest first, as far as there are any; from is the beginning of one.
	SummaryOHLC(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]views.SummaryOHLC, error)
	// GlobalPast returns the full hours in (from, to], oldest first, that a source reported afterwards.
	GlobalPast(ctx context.Context, from, to time.Time) ([]views.GlobalPast, error)
	PastHistory
	// FearGreedHistory returns what sources published of the days that begin in [from, to), by day.
	FearGreedHistory(ctx context.Context, from, to time.Time) ([]*eventsv1.FearGreed, error)
}

// PastHistory tells what has changed since in what a series was made of.
type PastHistory interface {
	// ReportedSince returns when sources last reported of the past after an instant, zero if they did not, and the times in (from, to] of which anything was ever reported.
	ReportedSince(ctx context.Context, ofDefi bool, from, to, after time.Time) (last time.Time, times []time.Time, err error)
	// ReportedWritten returns up to which log time all is kept that sources reported; the zero time where nothing was ever written.
	ReportedWritten(ctx context.Context) (time.Time, error)
	// Restated returns when a replay last changed, after an instant, rows of tables of some coins, nil for any, and a time in [from, to); zero if none did.
	Restated(ctx context.Context, tables, coins []string, from, to, after time.Time) (time.Time, error)
}

// period is a span that a series looks back over, with the steps of its points and of its candles.
type period struct {
	name                 string
	span, point, candle  time.Duration
	granularity, candles string
}

const day = 24 * time.Hour

var periods = []period{
	{"24h", day, 5 * time.Minute, time.Hour, "5m", "hourly"},
	{"7d", 7 * day, time.Hour, time.Hour, "1h", "hourly"},
	{"30d", 30 * day, 4 * time.Hour, day, "4h", "daily"},
}

const (
	// cachedSeries bounds the encoded series in memory: of three periods, two forms and up to seven metrics there are 42 a
	// minute.
	cachedSeries = 256
	// seriesFor is how long one may be kept; a new minute makes a new one.
	seriesFor = 2 * time.Minute
	// seriesPatience bounds one reading of history, which all who ask at that time wait for.
	seriesPatience = 10 * time.Second
	// minuteLook is how often history is asked for a minute that it does not have yet, minuteLooks times at most.
	minuteLook  = 200 * time.Millisecond
	minuteLooks = 10
)

// series are metrics whose past is reported.
type series struct {
	metrics []string
	ofDefi  bool
	history PastHistory
	// points reads of each step in (from, to] the last value of a metric that was measured, oldest first.
	points func(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]MetricPoint, error)
	// candles reads what a metric did in the minutes that ended in (from, to], by steps, oldest first, as far as there are any.
	candles func(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]MetricCandle, error)
	// past reads what a source reported afterwards of a metric in (from, to], oldest first.
	past func(ctx context.Context, metric string, from, to time.Time) ([]pastValue, error)
	// has means that history has the last minute.
	has  func(ctx context.Context, minute time.Time) (bool, error)
	held *otter.Cache[seriesKey, query.Answer]
}

// seriesKey names a series up to a minute.
type seriesKey struct {
	candles        bool
	metric, period string
	newest         newest
}

// newest is the last minute up to which there is something to serve, Unix nanoseconds.
type newest struct {
	minute    int64
	age       query.Age
	simulated bool
}

func newSeriesCache() *otter.Cache[seriesKey, query.Answer] {
	return otter.Must(&otter.Options[seriesKey, query.Answer]{
		MaximumSize: cachedSeries, ExpiryCalculator: otter.ExpiryWriting[seriesKey, query.Answer](seriesFor),
	})
}

// HistoryBody answers GET /api/v1/global-stats/metrics/history/{metricType}, and the same of DeFi.
type HistoryBody struct {
	Data MetricHistory `json:"data"`
	Meta SeriesMeta    `json:"meta"`
}

// SeriesMeta describes a series.
type SeriesMeta struct {
	Meta
	Backfilled int `json:"backfilled,omitempty" doc:"Number of backfilled rows: steps without measured values, filled from a source's history"`
}

// MetricHistory is what a metric was.
type MetricHistory struct {
	MetricType  string        `json:"metricType" example:"total_market_cap" doc:"The metric that was asked for"`
	Period      string        `json:"period" enum:"24h,7d,30d" doc:"The period that was asked for, up to the newest minute"`
	Granularity string        `json:"granularity" enum:"5m,1h,4h"`
	History     []MetricPoint `json:"history" doc:"Oldest first: the last value of each step; steps without a value are left out"`
}

// MetricPoint is the value of a metric at the end of a minute.
type MetricPoint struct {
	Timestamp int64   `json:"timestamp" doc:"Unix seconds"`
	Value     float64 `json:"value" explain:"metric/{metricType}/{timestamp}" doc:"USD, or percent"`
	Provenance
}

// Provenance marks what was not measured here.
type Provenance struct {
	Origin   string   `json:"origin,omitempty" enum:"backfill" doc:"backfill: nothing was measured in this step and the value was read from a source's history (market metrics: its largest coins only; DeFi: the source's own selection of protocols). Absent for measured values"`
	Coverage *float64 `json:"coverage,omitempty" explain:"metric-coverage/{metricType}/{granularity}/{timestamp}" doc:"For backfilled values, percent: the share of today's total market cap held by the coins in the source's history; for DeFi, the source's newest total as a share of ours. Where it is below 100, totals are too low and dominances too high"`
}

// OHLCBody answers GET /api/v1/global-stats/metrics/ohlc/{metricType}, and the same of DeFi.
type OHLCBody struct {
	Data MetricOHLC `json:"data"`
	Meta SeriesMeta `json:"meta"`
}

// MetricOHLC is what a metric did.
type MetricOHLC struct {
	MetricType  string         `json:"metricType" example:"total_market_cap" doc:"The metric that was asked for"`
	Period      string         `json:"period" enum:"24h,7d,30d" doc:"The period that was asked for, up to the newest minute"`
	Granularity string         `json:"granularity" enum:"hourly,daily"`
	OHLC        []MetricCandle `json:"ohlc" doc:"Oldest first, up to the current step; steps without a value are left out"`
}

// MetricCandle is what a metric did in an hour or a day.
type MetricCandle struct {
	Timestamp int64   `json:"timestamp" doc:"Start of the step, Unix seconds"`
	Open      float64 `json:"open" explain:"metric/{metricType}/{granularity}/{timestamp}/open"`
	High      float64 `json:"high" explain:"metric/{metricType}/{granularity}/{timestamp}/high"`
	Low       float64 `json:"low" explain:"metric/{metricType}/{granularity}/{timestamp}/low"`
	Close     float64 `json:"close" explain:"metric/{metricType}/{granularity}/{timestamp}/close"`
	Avg       float64 `json:"avg" explain:"metric/{metricType}/{granularity}/{timestamp}/avg" doc:"Mean of the samples"`
	Samples   int     `json:"samples" explain:"metric/{metricType}/{granularity}/{timestamp}/samples" doc:"Number of values: market metrics, one per minute; DeFi, one per change and at least one per five minutes; backfilled, one per full hour"`
	Provenance
}

// params are those of a path that ends with a metric's name.
func (s *series) params(units string) []query.Param {
	metric := query.Param{Name: "metricType", In: query.Path, Kind: query.Text, Required: true, Allowed: s.metrics, Example: s.metrics[0], Doc: units}
	back := query.Param{Name: "period", Kind: query.Text, Default: periods[0].name, Doc: "Period."}
	for _, p := range periods {
		back.Allowed = append(back.Allowed, p.name)
	}
	return []query.Param{metric, back, seriesAsOfParam}
}

// was answers what a metric was, as of an instant if then is not nil.
func (s *series) was(ctx context.Context, r *query.Request, to newest, then *pastInstant) (query.Answer, error) {
	return s.answer(ctx, r, to, then, false, func(ctx context.Context, metric string, p period, to time.Time) (any, int, int, error) {
		from := ceilTo(to, p.point).Add(-p.span)
		points, err := s.points(ctx, metric, from, to, p.point)
		if err != nil {
			return nil, 0, 0, err
		}
		reported, err := s.reported(ctx, metric, from, to, p.point, takenBy(points, func(m MetricPoint) int64 { return stepOf(m.Timestamp*int64(time.Second), p.point) }), then)
		points = withPastPoints(points, reported)
		data := MetricHistory{MetricType: metric, Period: p.name, Granularity: p.granularity, History: append([]MetricPoint{}, points...)}
		return data, len(points), backfilled(points, func(p MetricPoint) Provenance { return p.Provenance }), err
	})
}

// did answers what a metric did, as of an instant if then is not nil.
func (s *series) did(ctx context.Context, r *query.Request, to newest, then *pastInstant) (query.Answer, error) {
	return s.answer(ctx, r, to, then, true, func(ctx context.Context, metric string, p period, to time.Time) (any, int, int, error) {
		from := ceilTo(to, p.candle).Add(-p.span)
		candles, err := s.candles(ctx, metric, from, to, p.candle)
		if err != nil {
			return nil, 0, 0, err
		}
		reported, err := s.reported(ctx, metric, from, to, p.candle, takenBy(candles, func(c MetricCandle) int64 { return c.Timestamp * int64(time.Second) / int64(p.candle) }), then)
		candles = withPastCandles(candles, reported, p.candle)
		data := MetricOHLC{MetricType: metric, Period: p.name, Granularity: p.candles, OHLC: append([]MetricCandle{}, candles...)}
		return data, len(candles), backfilled(candles, func(c MetricCandle) Provenance { return c.Provenance }), err
	})
}

// answer reports what read reads of history up to the last minute: once a minute, or as of an instant.
func (s *series) answer(ctx context.Context, r *query.Request, to newest, then *pastInstant, candles bool,
	read func(ctx context.Context, metric string, p period, to time.Time) (data any, count, backfilled int, err error),
) (query.Answer, error) {
	metric, back := r.Text("metricType"), r.Text("period")
	p := periods[slices.IndexFunc(periods, func(p period) bool { return p.name == back })]
	metric = s.metrics[slices.Index(s.metrics, metric)] // the request's own text ends with it
	make := func(ctx context.Context) (query.Answer, error) {
		minute := time.Unix(0, to.minute).UTC()
		written, err := s.await(ctx, minute, then == nil)
		if err != nil {
			return query.Answer{}, err
		}
		data, count, backfilled, err := read(ctx, metric, p, minute)
		if err != nil {
			return query.Answer{}, err
		}
		if then != nil && !written {
			return query.Answer{}, errHistoryBehind
		}
		answer, err := query.Encode(struct {
			Data any        `json:"data"`
			Meta SeriesMeta `json:"meta"`
		}{data, SeriesMeta{Meta{query.Meta{Count: count, LastUpdated: query.FormatTime(to.minute), Clamped: r.Clamped()}, to.age.Meta()}, backfilled}})
		answer.Simulated = to.simulated
		return answer, err
	}
	if then != nil {
		answer, err := make(ctx)
		return answer, query.FaultOfPast(err, then.at)
	}
	// What is read for all who wait must not end with the first of them.
	return s.held.Get(context.WithoutCancel(ctx), seriesKey{candles, metric, p.name, to}, otter.LoaderFunc[seriesKey, query.Answer](func(ctx context.Context, _ seriesKey) (query.Answer, error) {
		ctx, cancel := context.WithTimeout(ctx, seriesPatience)
		defer cancel()
		return make(ctx)
	}))
}

// await reports whether history has a minute, and waits for it for two seconds: it gets one after readers do, and an answer without would be kept for as long as
// the minute is the last one.
func (s *series) await(ctx context.Context, minute time.Time, wait bool) (written bool, err error) {
	for looks := 1; ; looks++ {
		written, err = s.has(ctx, minute)
		if err != nil || written || !wait || looks == minuteLooks {
			return written, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(minuteLook):
		}
	}
}

// backfilled counts the rows that were reported afterwards.
func backfilled[T any](rows []T, provenance func(T) Provenance) (n int) {
	for _, row := range rows {
		if provenance(row).Origin != "" {
			n++
		}
	}
	return n
}

// measured makes candles of what was measured.
func measured(candles []views.SummaryOHLC) []MetricCandle {
	var all []MetricCandle
	for _, c := range candles {
		all = append(all, MetricCandle{Timestamp: c.Start.Unix(), Open: c.Open, High: c.High, Low: c.Low, Close: c.Close, Avg: views.Mean(c.Average, 1, c.Low, c.High), Samples: c.Samples})
	}
	return all
}

const backfilledDoc = "Steps in which nothing was measured have hourly values of the largest coins, read from a source's history and marked with origin backfill."

const marketUnits = "Metric. Market caps and volumes are in USD, dominances in percent of the total market cap."

func (u *Unit) metricHistory() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/metrics/history/{metricType}", ID: "getMetricHistory", Tag: tag,
		Summary:     "History of a market metric",
		Description: "One value per 5 minutes for 24h, per hour for 7d, per 4 hours for 30d. " + backfilledDoc,
		Params:      u.series.params(marketUnits), Body: HistoryBody{}, NotFound: true, Handle: u.upTo(u.series.was),
	}
}

func (u *Unit) metricOHLC() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/metrics/ohlc/{metricType}", ID: "getMetricOHLC", Tag: tag,
		Summary:     "OHLC of a market metric by hour or day",
		Description: "Hourly for 24h and 7d, daily for 30d. " + backfilledDoc,
		Params:      u.series.params(marketUnits), Body: OHLCBody{}, NotFound: true, Handle: u.upTo(u.series.did),
	}
}

// upTo answers a series up to the last minute of the whole market that was folded, or served at the instant that a request asks for.
func (u *Unit) upTo(answer func(context.Context, *query.Request, newest, *pastInstant) (query.Answer, error)) func(context.Context, *query.Request) (query.Answer, error) {
	return func(ctx context.Context, r *query.Request) (query.Answer, error) {
		snapshot := u.catalog.Snapshot()
		summary, then := snapshot.Summary, (*pastInstant)(nil)
		at, past := r.Time("asOf")
		if past {
			var err error
			if summary, err = u.summaryAt(ctx, at); err != nil {
				return query.Answer{}, err
			}
			then = &pastInstant{at, summary.TotalMarketCap, snapshot.SourcesTime}
		} else {
			at = r.Now
		}
		if summary.GetTotalMarketCap() <= 0 {
			return query.Answer{}, errNoMinute
		}
		return answer(ctx, r, newest{summary.Time, query.AgeOf(summary.Time, at, views.StatisticsStaleAfter), summary.Simulated || snapshot.Simulated}, then)
	}
}

// ceilTo is the first end of a step that is not before an instant.
func ceilTo(t time.Time, step time.Duration) time.Time {
	return t.Add(step - time.Nanosecond).Truncate(step)
}
