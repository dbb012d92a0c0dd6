package globalstats

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// DefiHistory is what the past of DeFi is read from.
type DefiHistory interface {
	// DefiSeries returns of each step in (from, to] the last known value of a metric, oldest first.
	DefiSeries(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]views.FigurePoint, error)
	// DefiOHLC returns what a metric did in the minutes that ended in (from, to], by steps, oldest first, as far as there are any; from is the beginning of one.
	DefiOHLC(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]views.SummaryOHLC, error)
	// DefiPast returns what a source reported afterwards of all of DeFi in (from, to], oldest first, before anything was measured.
	DefiPast(ctx context.Context, from, to time.Time) ([]views.DefiPast, error)
	PastHistory
}

// Defi answers the endpoints about DeFi. What is current is the newest summary of its fold.
type Defi struct {
	catalog *views.Catalog
	current *views.DefiStore
	past    *views.PastDefi
	// coins are those of past instants.
	coins *views.PastCoins
	// held are answers that are made of a summary alone, overviews those that are made of coins too.
	held, overviews query.ResponseCache[defiVersion, string]
	series          *series
}

// defiVersion is what current answers are made from; coins is the version of the catalog's where they are.
type defiVersion struct {
	summary *eventsv1.DefiSummary
	age     query.Age
	coins   uint64
}

// NewDefi makes the unit.
func NewDefi(catalog *views.Catalog, current *views.DefiStore, past *views.PastDefi, coins *views.PastCoins, history DefiHistory) *Defi {
	return &Defi{catalog: catalog, current: current, past: past, coins: coins, series: newDefiSeries(history)}
}

// Endpoints declares what the unit answers.
func (d *Defi) Endpoints() []query.Endpoint {
	return []query.Endpoint{d.overview(), d.lending(), d.staking(), d.borrowing(), d.history(), d.ohlc()}
}

// defiStaleAfter is three times the interval in which the protocols are read.
const defiStaleAfter = 3 * schemas.DefiReadEvery

// defiAge is the age of the oldest input of a summary, however new the minute is that it was made in.
func defiAge(s *eventsv1.DefiSummary, now time.Time) query.Age {
	oldest := s.GetOldest()
	if oldest == 0 {
		oldest = s.GetRead()
	}
	return query.AgeOf(min(s.GetTime(), oldest), now, defiStaleAfter)
}

var defiAsOfParam = query.AsOfParam("Point in time. The answer that was given then, with its age as it was. Default: now.")

// answer gives what encode makes of the newest summary, which is kept until that or its age changes, or of the one that was served at the instant that
// the request asks for.
func (d *Defi) answer(ctx context.Context, r *query.Request, name string, encode func(s *eventsv1.DefiSummary, age query.Age) (any, error)) (query.Answer, error) {
	if at, past := r.Time("asOf"); past {
		s, err := d.past.At(ctx, at)
		if err != nil {
			return query.Answer{}, query.FaultOfPast(err, at)
		}
		return encodeDefi(s, defiAge(s, at), encode)
	}
	s := d.current.Newest()
	if s == nil {
		return query.Answer{}, errNoDefi
	}
	age := defiAge(s, r.Now)
	return d.held.Get(defiVersion{summary: s, age: age}, name, func() (query.Answer, error) { return encodeDefi(s, age, encode) })
}

func encodeDefi(s *eventsv1.DefiSummary, age query.Age, encode func(s *eventsv1.DefiSummary, age query.Age) (any, error)) (query.Answer, error) {
	body, err := encode(s, age)
	if err != nil {
		return query.Answer{}, err
	}
	answer, err := query.Encode(body)
	answer.Simulated = s.Simulated
	return answer, err
}

var errNoDefi = query.Starting("there is no DeFi data yet")

// DefiBody answers GET /api/v1/global-stats/defi.
type DefiBody struct {
	Data DefiOverview  `json:"data"`
	Meta query.AgeMeta `json:"meta"`
}

// DefiOverview is all of DeFi at a glance.
type DefiOverview struct {
	TotalTVL                float64  `json:"totalTvl" explain:"defi/totalTvl" doc:"USD locked in protocols, without exchanges and without the double count of liquid staking"`
	TotalTVLWithDoubleCount float64  `json:"totalTvlWithDoubleCount" explain:"defi/totalTvlWithDoubleCount" doc:"The same, including the double count of liquid staking"`
	LendingTVL              float64  `json:"lendingTvl" explain:"defi/lendingTvl" doc:"USD locked in lending protocols, without borrowed amounts"`
	StakingTVL              float64  `json:"stakingTvl" explain:"defi/stakingTvl" doc:"USD in liquid staking"`
	BorrowingTVL            float64  `json:"borrowingTvl" explain:"defi/borrowingTvl" doc:"USD borrowed from all protocols"`
	CefiTVL                 float64  `json:"cefiTvl" explain:"defi/cefiTvl" doc:"USD held by exchanges"`
	DefiMarketCap           *float64 `json:"defiMarketCap,omitempty" explain:"defi/defiMarketCap" doc:"USD; sum over the coins in the DeFi category"`
	DefiMarketDominance     *float64 `json:"defiMarketDominance,omitempty" explain:"defi/defiMarketDominance" doc:"Percent of the market cap of all coins"`
	CategorizedMarketCap    *float64 `json:"categorizedMarketCap,omitempty" explain:"defi/categorizedMarketCap" doc:"Share of the total market cap, percent, of coins whose categories are known. Sources report categories coin by coin, so after a first start this grows, and defiMarketCap and defiMarketDominance grow with it. With asOf, absent where the coins of then are not kept"`
	DefiToCefiRatio         *float64 `json:"defiToCefiRatio,omitempty" explain:"defi/defiToCefiRatio" doc:"totalTvl / cefiTvl"`
	LendingAPY              *float64 `json:"lendingApy,omitempty" explain:"defi/lendingApy" doc:"Percent, weighted by the amount supplied"`
	StakingAPY              *float64 `json:"stakingApy,omitempty" explain:"defi/stakingApy" doc:"Percent, weighted by the amount staked"`
	BorrowAPY               *float64 `json:"borrowApy,omitempty" explain:"defi/borrowApy" doc:"Percent, weighted by the debt"`
	ProtocolCount           uint32   `json:"protocolCount" explain:"defi/protocolCount" doc:"Number of protocols with locked value, without exchanges"`
	Timestamp               int64    `json:"timestamp" doc:"Unix seconds"`
}

func (d *Defi) overview() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/defi", ID: "getDefiOverview", Tag: tag,
		Summary:     "Overview of DeFi, current or as of a past time",
		Description: "Fails with " + query.CodeStale + " if the data is older than two hours, or before there is any.",
		Params:      []query.Param{defiAsOfParam},
		Body:        DefiBody{}, NotFound: true, Hot: true, Handle: d.getOverview,
	}
}

// staleRetry is the interval of the fold, in seconds.
const staleRetry = 60

func (d *Defi) getOverview(ctx context.Context, r *query.Request) (query.Answer, error) {
	if _, past := r.Time("asOf"); past {
		return d.answer(ctx, r, "overview", func(s *eventsv1.DefiSummary, age query.Age) (any, error) { return d.overviewAsOf(ctx, r, s, age) })
	}
	s := d.current.Newest()
	if s == nil {
		return query.Answer{}, errStaleDefi
	}
	age, coins := defiAge(s, r.Now), d.catalog.Snapshot()
	return d.overviews.Get(defiVersion{s, age, coins.CoinsVersion}, "overview", func() (query.Answer, error) {
		return encodeDefi(s, age, func(s *eventsv1.DefiSummary, age query.Age) (any, error) {
			if age.Critical {
				return nil, errStaleDefi
			}
			return overviewOf(s, age, views.CategorizedShare(coins.Coins)), nil
		})
	})
}

// overviewAsOf is the overview of the summary that was served at the instant that a request asks for.
func (d *Defi) overviewAsOf(ctx context.Context, r *query.Request, s *eventsv1.DefiSummary, age query.Age) (any, error) {
	at, _ := r.Time("asOf")
	if age.Critical {
		return nil, query.NotFound("the DeFi data of %s was older than two hours, which was an error then", query.FormatTime(at.UnixNano()))
	}
	categorized, err := d.coins.CategorizedShare(ctx, at)
	if aged := (*views.AgedOutError)(nil); errors.As(err, &aged) { // the summary reaches further back
		err = nil
	}
	return overviewOf(s, age, categorized), query.FaultOfPast(err, at)
}

func overviewOf(s *eventsv1.DefiSummary, age query.Age, categorized *float64) DefiBody {
	return DefiBody{DefiOverview{
		TotalTVL: s.TotalTvl, TotalTVLWithDoubleCount: s.TotalTvlWithDoubleCount, LendingTVL: s.LendingTvl, StakingTVL: s.StakingTvl,
		BorrowingTVL: s.BorrowingTvl, CefiTVL: s.CefiTvl, DefiMarketCap: s.DefiMarketCap, DefiMarketDominance: s.DefiMarketDominance,
		CategorizedMarketCap: categorized, DefiToCefiRatio: s.DefiToCefiRatio, LendingAPY: s.LendingRates.Weighted, StakingAPY: s.StakingRates.Weighted,
		BorrowAPY: s.BorrowingRates.Weighted, ProtocolCount: s.ProtocolCount, Timestamp: seconds(s.Time),
	}, age.Meta()}
}

var errStaleDefi = &query.Error{
	Status: http.StatusServiceUnavailable, Code: query.CodeStale, RetryAfter: staleRetry,
	Message: "the DeFi data is older than two hours, or there is none yet",
}

// pastOfDefi is the metric that a source reports the past of.
const pastOfDefi = "defi_tvl"

func newDefiSeries(history DefiHistory) *series {
	return &series{
		metrics: []string{pastOfDefi, "lending_tvl", "staking_tvl", "borrowing_tvl", "lending_apy", "staking_apy", "borrow_apy"}, ofDefi: true, history: history, held: newSeriesCache(),
		points: func(ctx context.Context, metric string, from, to time.Time, step time.Duration) (points []MetricPoint, err error) {
			known, err := history.DefiSeries(ctx, metric, from, to, step)
			if err != nil {
				return nil, err
			}
			for _, p := range known {
				points = append(points, MetricPoint{Timestamp: p.Time.Unix(), Value: p.Value})
			}
			return points, nil
		},
		candles: func(ctx context.Context, metric string, from, to time.Time, step time.Duration) ([]MetricCandle, error) {
			candles, err := history.DefiOHLC(ctx, metric, from, to, step)
			return measured(candles), err
		},
		past: func(ctx context.Context, metric string, from, to time.Time) (values []pastValue, err error) {
			if metric != pastOfDefi {
				return nil, nil
			}
			days, err := history.DefiPast(ctx, from, to)
			for _, d := range days {
				values = append(values, pastValue{d.Time, d.TotalTVL, d.Told, d.Coverage})
			}
			return values, err
		},
		has: func(ctx context.Context, minute time.Time) (bool, error) {
			found, err := history.DefiSeries(ctx, pastOfDefi, minute.Add(-time.Second), minute, time.Second)
			return len(found) > 0, err
		},
	}
}

const defiBackfilledDoc = "Before the first measured minute, defi_tvl has daily values read from a source's history, marked with origin backfill. The source counts fewer protocols than this service, so the series jumps where the measured part begins; the coverage of a row states by how much."

const defiUnits = "Metric. Locked and borrowed amounts are in USD; APYs are in percent, weighted by amount."

func (d *Defi) history() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/defi/history/{metricType}", ID: "getDefiHistory", Tag: tag,
		Summary:     "History of a DeFi metric",
		Description: "One value per 5 minutes for 24h, per hour for 7d, per 4 hours for 30d. " + defiBackfilledDoc,
		Params:      d.series.params(defiUnits), Body: HistoryBody{}, NotFound: true, Handle: d.upTo(d.series.was),
	}
}

func (d *Defi) ohlc() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/global-stats/defi/ohlc/{metricType}", ID: "getDefiOHLC", Tag: tag,
		Summary:     "OHLC of a DeFi metric by hour or day",
		Description: "Hourly for 24h and 7d, daily for 30d. " + defiBackfilledDoc,
		Params:      d.series.params(defiUnits), Body: OHLCBody{}, NotFound: true, Handle: d.upTo(d.series.did),
	}
}

// upTo answers a series up to the newest summary, or the one that was served at the instant that a request asks for.
func (d *Defi) upTo(answer func(context.Context, *query.Request, newest, *pastInstant) (query.Answer, error)) func(context.Context, *query.Request) (query.Answer, error) {
	return func(ctx context.Context, r *query.Request) (query.Answer, error) {
		s, then := d.current.Newest(), (*pastInstant)(nil)
		at, past := r.Time("asOf")
		if past {
			var err error
			if s, err = d.past.At(ctx, at); err != nil {
				return query.Answer{}, query.FaultOfPast(err, at)
			}
			then = &pastInstant{at, s.GetTotalTvl(), d.catalog.Snapshot().SourcesTime}
		} else {
			at = r.Now
		}
		if s == nil {
			return query.Answer{}, errNoDefi
		}
		return answer(ctx, r, newest{s.Time, defiAge(s, at), s.Simulated}, then)
	}
}
