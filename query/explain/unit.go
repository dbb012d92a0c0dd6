// Package explain answers why a number is what it is. An explanation is a tree whose nodes are numbers: each names the method that made
// it, whether computing it again from records of the log gives the same to the last digit, and its inputs; its leaves are records of
// the log. Nothing is recorded for it: the inputs of a derived record are found again by the times of the log, by which the folds
// themselves take them together.
package explain

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// tag groups the operation in the OpenAPI document.
	tag = "explanations"
	// explaining is how many explanations are made at once: one may read an hour of a partition.
	explaining = 2
	// mostReads bounds the stretches of the log that are read for an answer. From expandedReads on no input is expanded any more.
	mostReads, expandedReads = 140, 110
	// mostRecords bounds the records of one stretch.
	mostRecords = 400_000
	// maxNumber bounds the name of a number in bytes: as long as that of a symbol with all hints, of which each byte is escaped.
	maxNumber = 2_700
	// retryAfter is in seconds, where the log was too slow.
	retryAfter = 5
	maxDepth   = 4
)

// Log is where records are found.
type Log interface {
	// Scan hands the records of a span to visit until it returns false, and returns the offset of the first one. It fails with
	// views.ErrSpanTooLong where there are more than the span allows.
	Scan(ctx context.Context, span views.LogSpan, visit func(*kgo.Record) bool) (first int64, err error)
	// Range hands the records of a partition from one offset to another, both included, to visit, until it fails.
	Range(ctx context.Context, topic string, partition int32, first, last int64, visit func(*kgo.Record) error) error
	// Begins returns the first offset that is kept of each partition.
	Begins(ctx context.Context, topic string) (map[int32]int64, error)
	// Ends returns the offset that each partition goes on with.
	Ends(ctx context.Context, topic string) (map[int32]int64, error)
}

// History is what explanations need of the past.
type History interface {
	views.PublishedPrices
	// Intervals returns the candles of a coin that start in [from, to), oldest first, in intervals of a minute, an hour or a day.
	Intervals(ctx context.Context, coinID string, interval time.Duration, from, to time.Time) ([]schemas.Candle, error)
	// RefoldPast folds the back-filled candle of a coin of a length once more, of the candles of venues; false where there is none; RefoldAllPast all that
	// start in [from, to), oldest first. PastDue counts what is to be folded again, since something came that it is made of.
	RefoldPast(ctx context.Context, coinID string, length time.Duration, start time.Time) (views.Refolded, bool, error)
	RefoldAllPast(ctx context.Context, coinID string, length time.Duration, from, to time.Time) ([]schemas.Candle, error)
	PastDue(ctx context.Context) (int, error)
	// CandleTail returns the candles of published prices of the seconds in [from, to), in intervals of a step, oldest first.
	CandleTail(ctx context.Context, coinID string, step time.Duration, from, to time.Time) ([]schemas.Candle, error)
	// AllIntervals returns what Intervals does of all coins, by coin id.
	AllIntervals(ctx context.Context, interval time.Duration, from, to time.Time) (map[string][]schemas.Candle, error)
	// Candles returns the closed live minutes of a coin that start in [from, to), oldest first.
	Candles(ctx context.Context, coinID string, from, to time.Time) ([]*eventsv1.Candle, error)
	// ClosedUntil returns the time up to which the candles of live minutes are there.
	ClosedUntil(ctx context.Context) (time.Time, error)
	// EarnVariantsAt returns the variants of an earn product as of a time.
	EarnVariantsAt(ctx context.Context, productID string, at time.Time) ([]*eventsv1.EarnVariant, error)
	// EarnVariants returns the current variants, those that are not offered any more only if they ended since.
	EarnVariants(ctx context.Context, since time.Time) ([]*eventsv1.EarnVariant, error)
	// EarnFixingsOf returns the fixings of the earn benchmark of a day with the quotes of providers, by segment and revision.
	EarnFixingsOf(ctx context.Context, date time.Time) ([]*eventsv1.EarnFixing, error)
	// PegSeries returns how far a stablecoin of the coin table lay from its peg in (from, to], one sample a step, oldest first.
	PegSeries(ctx context.Context, coinID string, from, to time.Time, step time.Duration) ([]views.PegSample, error)
	// PegSeriesAsOf is PegSeries when no more of the candles, and of the rates of the currency, counts than what is named.
	PegSeriesAsOf(ctx context.Context, coinID string, from, to time.Time, step time.Duration, of views.CandlesAsOf) ([]views.PegSample, error)
	// Fixings returns what the cost of a currency on a day is made of, by the records before an offset; none where no central bank states a rate of it.
	Fixings(ctx context.Context, currency string, of time.Time, before int64) ([]views.StatedFixing, error)
	// Summaries returns of each step in (from, to] the last summary of the whole market, oldest first.
	Summaries(ctx context.Context, from, to time.Time, step time.Duration) ([]*eventsv1.Summary, error)
	// FearGreedHistory returns what sources published of the days that begin in [from, to), by day.
	FearGreedHistory(ctx context.Context, from, to time.Time) ([]*eventsv1.FearGreed, error)
	// RateSeries returns series of rates by provider, coin and category, in steps of minutes, of an hour or a day.
	RateSeries(ctx context.Context, q views.RateQuery) ([]views.RateSeries, error)
	// RateHistory returns single rates, or what they did in hours and days, the newest first.
	RateHistory(ctx context.Context, q views.RateQuery) ([]views.RatePoint, error)
	// SummaryOHLC returns what a metric did in the steps that begin in [from, to), oldest first, as far as there are any.
	SummaryOHLC(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]views.SummaryOHLC, error)
	// GlobalPast returns the full hours in (from, to], oldest first, that a source reported afterwards of the whole market, and DefiPast what one reported of all of DeFi.
	GlobalPast(ctx context.Context, from, to time.Time) ([]views.GlobalPast, error)
	DefiPast(ctx context.Context, from, to time.Time) ([]views.DefiPast, error)
	// ReportedParts returns what these are made of, with its records, NewestParts the newest that a source reported of each coin, or of DeFi, and NewestTotal the
	// newest total that was measured, with the end of its minute, which is zero where there is none.
	ReportedParts(ctx context.Context, ofDefi bool, from, to time.Time) ([]views.ReportedPart, error)
	NewestParts(ctx context.Context, ofDefi bool, source string) ([]views.ReportedPart, error)
	NewestTotal(ctx context.Context, ofDefi bool) (time.Time, float64, error)
	// ReportedSince returns when sources last reported of the past after an instant, zero if they did not, and the times in (from, to] of which anything was ever
	// reported; ReportedWritten up to which log time all is kept that they reported, the zero time where nothing was ever written.
	ReportedSince(ctx context.Context, ofDefi bool, from, to, after time.Time) (last time.Time, times []time.Time, err error)
	ReportedWritten(ctx context.Context) (time.Time, error)
	// ReportedRates returns what a source reported afterwards of a pool in a category in [from, to), oldest first.
	ReportedRates(ctx context.Context, source, pool, category string, from, to time.Time) ([]views.ReportedRate, error)
	// DefiSeries returns of each step in (from, to] the last known value of a metric of DeFi, oldest first.
	DefiSeries(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]views.FigurePoint, error)
	// DefiOHLC returns what a metric of DeFi did in the steps that begin in [from, to), oldest first, as far as there are any.
	DefiOHLC(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]views.SummaryOHLC, error)
}

// Deps is what explanations are made from.
type Deps struct {
	Prices  *views.PriceCache
	Catalog *views.Catalog
	Yields  *views.YieldStore
	History History
	Log     Log
	// Pegs are the statistics that stablecoins are scored by.
	Pegs *views.PegStatistics
	// Currencies are what was known of them at past instants.
	Currencies *views.PastCurrencies
	// Coins are those that were served at past instants.
	Coins *views.PastCoins
	// Defi are the summaries of DeFi that were served at past instants.
	Defi *views.PastDefi
	// Candles are what charts are drawn of, RateCharts what those of yields are.
	Candles    *views.Candles
	RateCharts *views.RateCharts
	// Providers are venues by their slugs, for the countries that they serve.
	Providers map[string]views.Provider
	// Symbols decide which coin a symbol means.
	Symbols Symbols
}

// Unit answers the endpoint.
type Unit struct {
	Deps
	fiat      *views.Rates
	converter *views.Converter
	turns     chan struct{}
}

// New makes the unit.
func New(deps Deps) *Unit {
	return &Unit{Deps: deps, fiat: views.NewFiatRates(deps.Prices.Coins(), deps.Catalog), converter: views.NewConverter(deps.Prices, deps.Catalog, deps.Currencies),
		turns: make(chan struct{}, explaining)}
}

// Body answers GET /api/v1/explain/{number}.
type Body struct {
	Data *Node `json:"data"`
	Meta Meta  `json:"meta"`
}

// Meta describes an explanation.
type Meta struct {
	Depth   int64            `json:"depth" doc:"How many levels of inputs are shown"`
	Clamped map[string]int64 `json:"clamped,omitempty" doc:"Parameters lowered to their maximum, with the value used"`
	Nodes   int              `json:"nodes" doc:"Numbers in the tree"`
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{{
		Method: http.MethodGet, Path: "/api/v1/explain/{number}", ID: "explainNumber", Tag: tag,
		Summary: "Why a number is what it is",
		Description: "A tree of numbers with the method, the inputs and, where it was computed again from records of the log, whether that gave the same " +
			"number; its leaves name records of the log. Fields of other answers name their number in `x-explain`. Slashes in the number may be " +
			"written as %2F. It is counted as a chart. Forms: " + formList() + ".",
		Params: []query.Param{
			{Name: "number", In: query.Path, Kind: query.Text, Required: true, Rest: true, MaxLength: maxNumber, Example: "price/bitcoin", Doc: "Name of the number."},
			query.AsOfParam("Point in time: the number that was served then. Of minutes it is the one that was served, or the last one that had certainly been. Default: the current one."),
			{Name: "depth", Kind: query.Integer, Default: "1", Min: 1, Max: maxDepth, Example: "2", Doc: "Levels of inputs."},
		},
		Body: Body{}, NotFound: true, Class: limits.Charts, Handle: u.answer,
	}}
}

// work is one explanation in the making.
type work struct {
	*Unit
	now      time.Time
	snapshot *views.Snapshot
	// then are the coins as they were served at asOf, nil until they are needed.
	then *views.Snapshot
	// asOf is when the number was served; past means that it was asked for.
	asOf time.Time
	past bool
	// reads are how many stretches of the log were read, until when inputs are expanded, by the machine's clock.
	reads     int
	until     time.Time
	simulated bool
	// What was read is not read again: what sources state of currencies, whole markets by minute, the coins of a minute with the places of their rows, refolded rows, and
	// where topics begin and end.
	minutes  map[int64]*minuteRows
	held     *wholeMarket
	stated   *sourced
	refolded map[string]*refolded
	pegs     map[string]*keptPeg
	begins   map[string]map[int32]int64
	ends     map[string]map[int32]int64
	// rates are those of the end of a minute, logged the market of one, protocols what DeFi was made of.
	rates     []loggedRate
	ratesOf   int64
	logged    *loggedMarket
	protocols *wholeDefi
	// reportedRecords are those of what a source reported afterwards, by their places.
	reportedRecords map[Place]*eventsv1.ReferenceRecord
	// fixings are those of the earn benchmark by day, quoted what its providers pay by the minute and the instant that it is of.
	fixings map[time.Time][]*eventsv1.EarnFixing
	quoted  map[quotedAt]*quoted
	// served are the rows that are served as the log has them, dayAgo the closes of a day before a time, by coin id, and categories the
	// coins of each.
	served     map[string]loggedRow
	dayAgo     map[time.Time]map[string]float64
	categories map[string][]*views.CatalogCoin
	// figured are the figures of candles that each replica served coins with at asOf, by coin id.
	figured map[string]map[string]recordedFigure
	// mapped are the mappings of symbols that held at asOf.
	mapped []schemas.SymbolMapping
}

// errTooManyReads means that an answer would need more of the log than is read for one.
var errTooManyReads = errors.New("more stretches of the log than are read for one answer")

// faultOf turns what the log lacks, or has too much of, into what the caller can do about it. Other faults are ours.
func faultOf(err error) error {
	gap := (*views.OffsetGapError)(nil)
	switch {
	case errors.As(err, &gap):
		return query.AgedOut(time.Time{}, "%s", gap)
	case errors.Is(err, errTooManyReads):
		return query.Invalid("depth", "the answer would need %s: ask for fewer levels, or for one of its inputs", errTooManyReads)
	case errors.Is(err, context.DeadlineExceeded):
		return &query.Error{Status: http.StatusServiceUnavailable, Code: query.CodeOverloaded, RetryAfter: retryAfter,
			Message: "reading the log took too long: ask for fewer levels, or try again"}
	case errors.Is(err, views.ErrSpanTooLong):
		return query.Invalid("number", "%s", views.ErrSpanTooLong)
	}
	return err
}

// lacks reports why a number cannot be computed again, where that is for what the log has; empty for a fault.
func lacks(err error) string {
	gap := (*views.OffsetGapError)(nil)
	for _, known := range []error{errNoState, errNoPrice, errTooManyReads, views.ErrSpanTooLong} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if errors.As(err, &gap) {
		return gap.Error()
	}
	return ""
}

// expands reports whether inputs may still be expanded: not at the bound of levels, nor when most of what may be read was, or half of the
// time is over.
func (w *work) expands(depth int) bool {
	return depth > 0 && w.reads < expandedReads && (w.until.IsZero() || time.Now().Before(w.until))
}

func (u *Unit) answer(ctx context.Context, r *query.Request) (query.Answer, error) {
	name := strings.Clone(r.Text("number"))
	parts, err := parse(name)
	if err != nil {
		return query.Answer{}, err
	}
	if at, ok := plannedTime(parts); ok {
		if err := r.WithinPlan("number", at); err != nil {
			return query.Answer{}, err
		}
	}
	w, done, err := u.begin(ctx, r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	defer done()
	w.asOf, w.past = r.Time("asOf")
	depth := r.Integer("depth")
	node, err := w.explain(ctx, name, parts, int(depth))
	if err != nil {
		return query.Answer{}, faultOf(err)
	}
	w.simulated = w.simulated || w.snapshot.Simulated
	answer, err := query.Encode(Body{node, Meta{Depth: depth, Clamped: r.Clamped(), Nodes: count(node)}})
	answer.Simulated = w.simulated
	return answer, err
}

// plannedTime is the time in the name of a number of which answers show as much of the past as the plan includes: of an interval its end, since they show the one that the plan
// begins in.
func plannedTime(parts []string) (time.Time, bool) {
	switch parts[0] {
	case rateHistoryForm:
		return instant(parts[3])
	case rateSeriesForm, rateChartForm, rateRunForm, rateChartStatsForm, rateSeriesStatsForm:
		start, ok := instant(parts[5])
		return start.Add(intervals[chartIntervals[parts[4]]]), ok
	}
	return benchmarkTime(parts)
}

// begin waits for a turn, which done gives back, and takes what is known now.
func (u *Unit) begin(ctx context.Context, now time.Time) (w *work, done func(), err error) {
	select {
	case u.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, faultOf(ctx.Err())
	}
	w = &work{Unit: u, now: now, snapshot: u.Catalog.Snapshot(), minutes: map[int64]*minuteRows{}, refolded: map[string]*refolded{}, pegs: map[string]*keptPeg{},
		begins: map[string]map[int32]int64{}, ends: map[string]map[int32]int64{}, fixings: map[time.Time][]*eventsv1.EarnFixing{}, quoted: map[quotedAt]*quoted{},
		reportedRecords: map[Place]*eventsv1.ReferenceRecord{}}
	if deadline, ok := ctx.Deadline(); ok {
		w.until = time.Now().Add(time.Until(deadline) / 2)
	}
	return w, func() { <-u.turns }, nil
}

func count(n *Node) int {
	total := 1
	for _, in := range n.Inputs {
		total += count(in)
	}
	return total
}

// explain makes the node of a number with so many levels of inputs.
func (w *work) explain(ctx context.Context, name string, parts []string, depth int) (*Node, error) {
	switch parts[0] {
	case "price":
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		return w.priceNamed(ctx, coin, name, parts, depth)
	case priceInForm:
		coin, err := w.coin(name, parts, 3)
		if err != nil {
			return nil, err
		}
		return w.priceIn(ctx, coin, name, parts, depth)
	case "market":
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		field, ok := marketFieldNamed(parts[2])
		if !ok {
			return nil, w.nearField(name, parts, 2, marketFieldNames())
		}
		return w.market(ctx, coin, field, depth)
	case "candle":
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		return w.candleNamed(ctx, coin, name, parts, depth)
	case candlesForm:
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		return w.candleRun(ctx, coin, name, parts, depth)
	case "chart-point":
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		return w.chartPoint(ctx, coin, name, parts, depth)
	case "sparkline":
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		return w.sparkline(ctx, coin, parts, depth)
	case "chart":
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		return w.chart(ctx, coin, name, parts, depth)
	case "developer":
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		return w.developer(ctx, coin, name, parts)
	case "similarity":
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		other, err := w.coin(name, parts, 2)
		if err != nil {
			return nil, err
		}
		return w.similarity(ctx, coin, other)
	case "peg":
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		return w.pegNamed(ctx, coin, name, parts, depth)
	case "peg-point":
		coin, err := w.coin(name, parts, 1)
		if err != nil {
			return nil, err
		}
		return w.pegPoint(ctx, coin, name, parts, depth)
	case "fiat":
		return w.currency(ctx, name, parts[1], depth)
	case "global":
		return w.global(ctx, name, parts, depth)
	case "category":
		return w.category(ctx, name, parts, depth)
	case "movers":
		return w.movers(ctx, name, parts, depth)
	case "metric":
		return w.metric(ctx, name, parts, depth)
	case coverageForm:
		return w.coverage(ctx, name, parts, depth)
	case "sentiment":
		return w.sentiment(ctx, name, parts, depth)
	case "fear-greed":
		return w.fearGreed(ctx, name, parts, depth)
	case "defi":
		return w.defi(ctx, name, parts, depth)
	case "vs":
		return w.conversion(ctx, parts[1], depth)
	case "symbol":
		return w.symbol(ctx, name, parts, depth)
	case "symbol-mapping":
		return w.symbolMapping(ctx, name, parts, depth)
	case "venue-price":
		return w.venueField(ctx, name, parts, depth)
	case "provider-rates":
		return w.providerRate(ctx, name, parts, depth)
	case rateSeriesForm:
		return w.seriesPoint(ctx, name, parts, depth)
	case rateChartForm:
		return w.rateChart(ctx, name, parts, depth)
	case rateRunForm:
		return w.rateRun(ctx, name, parts, depth)
	case rateChartStatsForm, rateSeriesStatsForm:
		return w.rateStat(ctx, name, parts, depth)
	case rateHistoryForm:
		return w.ratePast(ctx, name, parts, depth)
	case "rate-term":
		return w.rateTerm(ctx, name, parts)
	case "rate-statistics":
		return w.rateStatistic(ctx, name, parts, depth)
	case "earn":
		return w.earn(ctx, name, parts, depth)
	case benchmarkForm:
		return w.earnBenchmark(ctx, name, parts, depth)
	default:
		return w.rate(ctx, name, parts)
	}
}

// coin finds the coin that a part of a name means.
func (w *work) coin(name string, parts []string, at int) (*views.CatalogCoin, error) {
	if coin, ok := w.snapshot.Find(parts[at]); ok {
		return coin.CatalogCoin, nil
	}
	ids := make([]string, 0, len(w.snapshot.Coins))
	for _, coin := range w.snapshot.Coins {
		ids = append(ids, coin.ID)
	}
	return nil, w.nearField(name, parts, at, ids)
}

// nearField is what a name is answered with of which one part is unknown.
func (w *work) nearField(name string, parts []string, at int, words []string) error {
	word := nearest(parts[at], words)
	if word == "" {
		return unknown(name, "")
	}
	near := append([]string(nil), parts...)
	near[at] = word
	return unknown(name, strings.Join(near, "/"))
}
