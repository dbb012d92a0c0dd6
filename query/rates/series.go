package rates

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

// maxSeries bounds the series of one answer.
const maxSeries = 20

// products are what categories are called as goods.
var products = map[string]string{"lending-rates": schemas.RateLending, "loan-rates": schemas.RateBorrowing, "staking-rewards": schemas.RateStaking}

// spans are the timeframes of series in days. Rates change slowly: all have a point for each day.
var spans = map[string]int{"30d": 30, "90d": 90, "1y": 365, "all": maxDays}

// SeriesBody answers GET /api/v1/rates/history.
type SeriesBody struct {
	Data SeriesList `json:"data"`
	Meta SeriesMeta `json:"meta"`
}

// SeriesList holds what providers paid or asked over time.
type SeriesList struct {
	Coin        string     `json:"coin,omitempty" doc:"Coin id, if requested by coin"`
	Platform    string     `json:"platform,omitempty" doc:"Provider, if requested by platform"`
	Country     string     `json:"country" example:"DE" doc:"Country that was asked for, as a two-letter ISO 3166 code"`
	Product     string     `json:"product" enum:"lending-rates,loan-rates,staking-rewards" doc:"Category of the rates, as asked for: lending, borrowing or staking"`
	Timeframe   string     `json:"timeframe" enum:"30d,90d,1y,all"`
	Granularity string     `json:"granularity" enum:"daily"`
	Series      []Series   `json:"series" doc:"Sorted by TVL, then latest rate, descending"`
	Excluded    []Excluded `json:"excluded" doc:"Excluded providers"`
	Count       int        `json:"count"`
	Timestamp   string     `json:"timestamp" format:"date-time" doc:"Log time up to which the view is complete"`
}

// Series is what a provider paid or asked for a coin over time: the mean of its rates by their TVL.
type Series struct {
	Key          string       `json:"key" doc:"The provider, in the series of a coin; the coin, in the series of a platform"`
	Provider     string       `json:"provider"`
	ProviderName string       `json:"providerName"`
	CoinID       string       `json:"coinId"`
	Symbol       string       `json:"symbol"`
	Category     string       `json:"category" enum:"lending,staking,borrowing" doc:"lending and staking earn the rate, borrowing costs it"`
	Points       [][2]float64 `json:"points" explain:"rate-series/{provider}/{coinId}/{category}/1d/{0}/close" doc:"Oldest first: start of the day in milliseconds, last rate of the day in percent per year; the last point is today's"`
	Stats        SeriesStats  `json:"stats" doc:"Over all points of the series"`
	TVLUSD       *float64     `json:"tvlUsd,omitempty" explain:"rate-series-stats/{provider}/{coinId}/{category}/1d/{stats.from}/{stats.until}/tvlUsd" doc:"As last reported"`
	Simulated    bool         `json:"simulated,omitempty"`
}

// SeriesStats are over all points of a series.
type SeriesStats struct {
	MinRate    float64  `json:"minRate" explain:"rate-series-stats/{provider}/{coinId}/{category}/1d/{from}/{until}/minRate" doc:"Lowest within a day"`
	MaxRate    float64  `json:"maxRate" explain:"rate-series-stats/{provider}/{coinId}/{category}/1d/{from}/{until}/maxRate" doc:"Highest within a day"`
	AvgRate    float64  `json:"avgRate" explain:"rate-series-stats/{provider}/{coinId}/{category}/1d/{from}/{until}/avgRate" doc:"Mean of the points"`
	LatestRate float64  `json:"latestRate" explain:"rate-series-stats/{provider}/{coinId}/{category}/1d/{from}/{until}/latestRate" doc:"Rate of the last point, percent per year"`
	ChangePct  *float64 `json:"changePct,omitempty" explain:"rate-series-stats/{provider}/{coinId}/{category}/1d/{from}/{until}/changePct" doc:"Change from the first open to the latest rate, percent"`
	From       string   `json:"from" format:"date-time" doc:"Start of the first day"`
	Until      string   `json:"until" format:"date-time" doc:"The minute up to which rates are in today's point; the start of today if there are none of it yet"`
}

// Excluded is a provider that was left out.
type Excluded struct {
	Provider string `json:"provider"`
	Reason   string `json:"reason" enum:"country" doc:"country: it does not serve the country that was asked for"`
}

// SeriesMeta describes the answer.
type SeriesMeta struct {
	query.Meta
	RegionSource map[string]string `json:"regionSource" doc:"Per provider, where its countries are stated: a page (with the source that quotes it, if it was not read directly), its rates, or unknown (treated as worldwide)"`
	Truncated    bool              `json:"truncated,omitempty" doc:"There are more than the limit"`
	Reason       string            `json:"reason,omitempty" doc:"Why the list is empty"`
}

const reasonCountry = "country"

func (u *Unit) series() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/rates/history", ID: "listRateSeries", Tag: tag,
		Summary:     "Yield history as chart series: of a coin by provider, or of a provider by coin",
		Description: "Exactly one of coin and platform is required. Providers that do not serve the country are excluded, and listed.",
		Params: []query.Param{
			query.CoinParam("coin", query.Query, "ethereum"),
			{Name: "platform", Kind: query.Text, MaxLength: 64, Doc: "Provider, by slug."},
			{Name: "country", Kind: query.Text, Required: true, Example: "DE", Check: query.CheckCountry, Pattern: "^[A-Za-z]{2}$", Doc: "Two-letter country code."},
			{Name: "product", Kind: query.Text, Required: true, Allowed: []string{"lending-rates", "loan-rates", "staking-rewards"}, Example: "lending-rates",
				Doc: "Category of the yields: lending, borrowing or staking."},
			{Name: "timeframe", Kind: query.Text, Default: "30d", Allowed: []string{"30d", "90d", "1y", "all"}, Doc: "Period; all is 5 years. The plan may allow less: the series is then shortened and meta.clamped has its length in days."},
			{Name: "limit", Kind: query.Integer, Default: "6", Min: 1, Max: maxSeries, Doc: "Maximum number of series."},
			asOfParam},
		Body: SeriesBody{}, NotFound: true, Handle: u.getSeries,
	}
}

func (u *Unit) getSeries(ctx context.Context, r *query.Request) (query.Answer, error) {
	if r.Has("coin") == r.Has("platform") {
		const one = "exactly one of coin and platform is required"
		return query.Answer{}, &query.Error{Status: http.StatusBadRequest, Code: query.CodeValidation, Message: "the request has invalid parameters",
			Fields: map[string][]string{"coin": {one}, "platform": {one}}}
	}
	m, err := u.moment(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	ix, country := m.index, query.Country(r.Text("country"))
	body := SeriesBody{Data: SeriesList{Country: country, Product: r.Text("product"), Timeframe: r.Text("timeframe"), Granularity: granularityDaily,
		Series: []Series{}, Excluded: []Excluded{}, Timestamp: query.FormatTime(ix.current.Time)}, Meta: SeriesMeta{RegionSource: map[string]string{}}}
	chart := views.RateChart{Category: products[body.Data.Product], Step: day}
	if r.Has("coin") {
		coin, _, err := u.find(ix, r.Text("coin"))
		if err != nil {
			return query.Answer{}, err
		}
		body.Data.Coin, chart.CoinID = coin.id, coin.id
	} else {
		slug, ok := ix.slugs[strings.ToLower(r.Text("platform"))]
		if !ok {
			return query.Answer{}, query.NotFound("no provider has the slug %q", strings.ToValidUTF8(r.Text("platform"), "�"))
		}
		body.Data.Platform, chart.Provider = slug, slug
	}
	read, err := u.readSeries(ctx, r, m, chart, spans[body.Data.Timeframe])
	if err != nil {
		return query.Answer{}, fmt.Errorf("reading series of rates: %w", err)
	}
	simulated := u.fill(&body, ix, chart, read, country, int(r.Integer("limit")))
	body.Meta.Meta = query.Meta{Count: body.Data.Count, LastUpdated: body.Data.Timestamp, Clamped: r.Clamped()}
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}

// readSeries reads a chart of so many days, as far as the plan allows.
func (u *Unit) readSeries(ctx context.Context, r *query.Request, m moment, chart views.RateChart, days int) (views.RateReading, error) {
	if !m.past {
		chart.Intervals = r.HistoryIntervals(days, chart.Step, "timeframe")
		return u.charts.Read(ctx, chart, m.index.current.RateSnapshot, m.at)
	}
	chart.Intervals = r.HistoryIntervalsAsOf(days, chart.Step, "timeframe", m.at)
	read, err := u.charts.AsOf(ctx, chart, m.index.current.RateSnapshot, m.tables, m.at)
	return read, query.FaultOfPast(err, m.at)
}

// fill adds the series of the providers that serve the country.
func (u *Unit) fill(body *SeriesBody, ix *index, chart views.RateChart, read views.RateReading, country string, limit int) (simulated bool) {
	all := []Series{}
	for _, series := range read.Series {
		if len(series.Points) == 0 {
			continue
		}
		available, source := u.available(ix, series.Provider, chart.Category, country)
		body.Meta.RegionSource[series.Provider] = source
		if available {
			all = append(all, u.toSeries(ix, chart, series, read.Until))
			continue
		}
		if out := (Excluded{series.Provider, reasonCountry}); !slices.Contains(body.Data.Excluded, out) {
			body.Data.Excluded = append(body.Data.Excluded, out)
		}
	}
	slices.SortFunc(all, func(a, b Series) int {
		return cmp.Or(cmp.Compare(locked(b), locked(a)), cmp.Compare(b.Stats.LatestRate, a.Stats.LatestRate), strings.Compare(a.Key, b.Key))
	})
	body.Meta.Truncated = len(all) > limit
	body.Data.Series = all[:min(limit, len(all))]
	body.Data.Count = len(body.Data.Series)
	if body.Data.Count == 0 {
		body.Meta.Reason = noRates
		if len(body.Data.Excluded) > 0 {
			body.Meta.Reason = reasonCountry
		}
	}
	return slices.ContainsFunc(body.Data.Series, func(s Series) bool { return s.Simulated })
}

// locked is what orders series, unknown after none.
func locked(s Series) float64 {
	if s.TVLUSD == nil {
		return math.Inf(-1)
	}
	return *s.TVLUSD
}

func (u *Unit) toSeries(ix *index, chart views.RateChart, read views.RateSeries, until time.Time) Series {
	s := Series{Key: read.Provider, Provider: read.Provider, ProviderName: u.nameOf(ix, read.Provider), CoinID: read.CoinID, Symbol: read.Symbol,
		Category: chart.Category, Simulated: read.Simulated, Points: make([][2]float64, len(read.Points))}
	if chart.Provider != "" {
		s.Key = read.CoinID
	}
	if coin := ix.coins[read.CoinID]; coin != nil {
		s.Symbol = coin.symbol
	}
	for i, p := range read.Points {
		s.Points[i] = [2]float64{float64(p.Start.UnixMilli()), p.Close}
	}
	first, last := read.Points[0], read.Points[len(read.Points)-1]
	s.TVLUSD = last.TVL
	stats, _ := views.StatsOf(views.RateCandles(read.Points))
	s.Stats = SeriesStats{MinRate: stats.Min, MaxRate: stats.Max, AvgRate: stats.Mean, LatestRate: last.Close, ChangePct: stats.ChangePct,
		From: query.FormatTime(first.Start.UnixNano()), Until: query.FormatTime(until.UnixNano())}
	return s
}

// nameOf is what a provider is called; its slug where nobody says.
func (u *Unit) nameOf(ix *index, slug string) string {
	named := ""
	if rates := ix.providers[slug]; len(rates) > 0 {
		named = rates[0].ProviderName
	}
	return cmp.Or(named, u.venues[slug].Name, ix.current.Projects[slug].GetName(), slug)
}

// available reports whether a provider serves a country, and where that was read: as an exchange, or with any of its rates of
// the category.
func (u *Unit) available(ix *index, provider, category, country string) (available bool, source string) {
	if venue, ok := u.venues[provider]; ok && len(venue.Serves)+len(venue.Refuses) > 0 {
		if !venue.Available(country) {
			return false, venue.RegionSource()
		}
		source = venue.RegionSource()
	}
	stated, serves := false, false
	for _, e := range ix.providers[provider] {
		if e.Category != category {
			continue
		}
		stated = stated || len(e.Said.GetServed())+len(e.Said.GetRefused()) > 0
		serves = serves || views.Provider{Serves: e.Said.GetServed(), Refuses: e.Said.GetRefused()}.Available(country)
	}
	if !stated {
		return true, cmp.Or(source, views.RegionUnknown)
	}
	return serves, "rates"
}
