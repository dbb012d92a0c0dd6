package rates

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
)

const (
	// defaultDays and maxDays are how far back histories go; a plan may allow less.
	defaultDays = "7"
	maxDays     = 1825
	// rawDays are reported by single answers, hourlyDays by the hour, what is older by the day.
	rawDays    = 30
	hourlyDays = 90
	// maxHistory bounds one history.
	maxHistory = 5000

	// pricesSettled is how long before a moment prices were published that its history of prices has: by then the tables have them.
	pricesSettled = 5 * time.Second

	day = 24 * time.Hour
)

// Granularities of histories.
const (
	granularityRaw    = "raw"
	granularityHourly = "hourly"
	granularityDaily  = "daily"
)

// History is what rates need of the past.
type History interface {
	views.RateSeriesHistory
	// RateHistory returns single rates, or what they did in hours and days, the newest first.
	RateHistory(ctx context.Context, q views.RateQuery) ([]views.RatePoint, error)
	// RatesSince returns when the oldest of a query's rates is of, whatever its From and To; zero for none.
	RatesSince(ctx context.Context, q views.RateQuery) (time.Time, error)
	// PriceHistory and PricesSince do so for the prices that exchanges sent of the one coin of a query.
	PriceHistory(ctx context.Context, q views.RateQuery) ([]views.RatePoint, error)
	PricesSince(ctx context.Context, q views.RateQuery) (time.Time, error)
}

// PastBody answers GET /api/v1/rates/{symbol}/history.
type PastBody struct {
	Data Past     `json:"data"`
	Meta PastMeta `json:"meta"`
}

// Past is the history of a coin's rates.
type Past struct {
	Symbol       string              `json:"symbol"`
	CoinID       string              `json:"coinId"`
	History      []PastEntry         `json:"history" doc:"Oldest first"`
	Count        int                 `json:"count"`
	Ambiguous    bool                `json:"ambiguous,omitempty" doc:"The name is ambiguous: other coins match it too"`
	Alternatives []views.Alternative `json:"alternatives,omitempty"`
}

// PastEntry is a rate as it was reported, or what it did in an hour or a day.
type PastEntry struct {
	ID             string        `json:"id" doc:"As in the current yields"`
	Provider       string        `json:"provider" example:"aave-v3"`
	Symbol         string        `json:"symbol" example:"ETH"`
	Category       string        `json:"category" enum:"lending,staking,borrowing,price" doc:"lending and staking earn the rate, borrowing costs it; price: the price at an exchange"`
	Rate           float64       `json:"rate" explain:"rate-history/rate/{timestamp}/{createdAt}/{provider}/{category}/{id}" doc:"Percent per year, for a price USD; the last one of the hour or day"`
	CoinID         string        `json:"coinId" example:"ethereum"`
	ProviderSymbol string        `json:"providerSymbol,omitempty" doc:"The symbol used by the provider"`
	Metadata       *PastMetadata `json:"metadata,omitempty" doc:"What else was reported, and for hours and days the values within them"`
	UnitType       string        `json:"unitType" enum:"percentage,absolute" doc:"percentage for yields and borrowing costs, absolute for prices"`
	UnitSymbol     string        `json:"unitSymbol" enum:"%,USD" doc:"Unit of rate: percent per year, or USD for a price"`
	Timestamp      string        `json:"timestamp" format:"date-time" doc:"When it was reported; start of the hour or day"`
	CreatedAt      string        `json:"createdAt" format:"date-time" doc:"Equal to timestamp; end of the hour or day"`
	LastUpdated    string        `json:"lastUpdated" format:"date-time" doc:"Equal to timestamp"`
}

// PastMetadata is what else is known of it. What is not known is left out.
type PastMetadata struct {
	Source    string   `json:"source,omitempty" doc:"The source that reported it; for a price, the exchange"`
	Pool      string   `json:"pool,omitempty" doc:"The id used by the source"`
	Chain     string   `json:"chain,omitempty" doc:"Blockchain, as the source names it; absent off chain"`
	APR       *float64 `json:"apr,omitempty" explain:"rate-history/apr/{timestamp}/{createdAt}/{provider}/{category}/{id}" doc:"Percent per year, not compounded (APR)"`
	TVLUSD    *float64 `json:"tvlUsd,omitempty" explain:"rate-history/tvlUsd/{timestamp}/{createdAt}/{provider}/{category}/{id}" doc:"Amount supplied or staked, USD; for borrowing, the debt; of an hour or day, as last reported"`
	Open      *float64 `json:"open,omitempty" explain:"rate-history/open/{timestamp}/{createdAt}/{provider}/{category}/{id}" doc:"Only for hours and days, like the fields that follow"`
	High      *float64 `json:"high,omitempty" explain:"rate-history/high/{timestamp}/{createdAt}/{provider}/{category}/{id}"`
	Low       *float64 `json:"low,omitempty" explain:"rate-history/low/{timestamp}/{createdAt}/{provider}/{category}/{id}"`
	Close     *float64 `json:"close,omitempty" explain:"rate-history/close/{timestamp}/{createdAt}/{provider}/{category}/{id}"`
	Mean      *float64 `json:"mean,omitempty" explain:"rate-history/mean/{timestamp}/{createdAt}/{provider}/{category}/{id}" doc:"Mean of the reports of the hour or day"`
	N         uint32   `json:"n,omitempty" doc:"Number of reports"`
	Origin    string   `json:"origin,omitempty" enum:"live,backfill" doc:"backfill: history read from the source"`
	Simulated bool     `json:"simulated,omitempty"`
}

// PastMeta describes a history.
type PastMeta struct {
	query.Meta
	Granularity   string `json:"granularity" enum:"raw,hourly,daily" doc:"raw for up to 30 days, hourly for up to 90, daily beyond"`
	From          string `json:"from" format:"date-time" doc:"Start of the requested range"`
	To            string `json:"to" format:"date-time" doc:"End of the requested range"`
	AvailableFrom string `json:"availableFrom,omitempty" format:"date-time" doc:"Time of the oldest known entry in this granularity"`
	Truncated     bool   `json:"truncated,omitempty" doc:"There are more than the limit; these are the newest"`
	Reason        string `json:"reason,omitempty" doc:"Why the list is empty"`
}

func (u *Unit) past() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/rates/{symbol}/history", ID: "getRateHistory", Tool: "get_rate_history", Tag: tag,
		Summary:     "Yield history of a coin",
		Description: "Single reports for up to 30 days, hourly up to 90 days, daily beyond. Where nothing was recorded live, history read from the source (metadata.origin is backfill). The plan limits the range: it is then shortened and meta.clamped is set. Without a category: lending, staking and borrowing.",
		Params: []query.Param{symbolParam,
			{Name: "days", Kind: query.Integer, Default: defaultDays, Min: 1, Max: maxDays, Doc: "Days back."},
			categoryParam, providerParam,
			{Name: "from", Kind: query.Time, Example: "2026-01-31T00:00:00Z", Doc: "Start of the range, instead of days."},
			{Name: "to", Kind: query.Time, Example: "2026-02-28T00:00:00Z", Doc: "End of the range, instead of now."},
			{Name: "limit", Kind: query.Integer, Default: "100", ToolDefault: "30", Min: 1, Max: maxHistory, Doc: "Maximum number of entries; the newest are returned."},
			asOfParam},
		Body: PastBody{}, NotFound: true, Handle: u.getPast,
	}
}

// window is what a request asks for of the past.
type window struct {
	from, to    time.Time
	step        time.Duration
	granularity string
}

// lookBack reads the window of a request that is made, or as of, a moment, as far as its plan allows.
func lookBack(r *query.Request, m moment) (w window, err error) {
	var given bool
	if w.to, given = r.Time("to"); !given {
		w.to = m.at
	}
	if w.from, given = r.Time("from"); !given {
		w.from = w.to.Add(-time.Duration(r.Integer("days")) * day)
	}
	w.from, w.to = w.from.UTC(), w.to.UTC()
	if w.from.After(w.to) {
		return w, query.Invalid("from", "must not be after to")
	}
	if m.past {
		w.from = r.HistoryFromAsOf(w.from, "days", m.at)
	} else {
		w.from = r.HistoryFrom(w.from, "days")
	}
	if w.to.Before(w.from) {
		w.to = w.from
	}
	switch back := m.at.Sub(w.from); {
	case back <= rawDays*day:
		w.granularity = granularityRaw
	case back <= hourlyDays*day:
		w.granularity, w.step = granularityHourly, time.Hour
	default:
		w.granularity, w.step = granularityDaily, day
	}
	return w, nil
}

func (u *Unit) getPast(ctx context.Context, r *query.Request) (query.Answer, error) {
	m, err := u.moment(ctx, r)
	if err != nil {
		return query.Answer{}, err
	}
	ix := m.index
	f, err := u.narrowed(ix, r)
	if err != nil {
		return query.Answer{}, err
	}
	w, err := lookBack(r, m)
	if err != nil {
		return query.Answer{}, err
	}
	limit := int(r.Integer("limit"))
	body := PastBody{
		Data: Past{Symbol: f.coin.symbol, CoinID: f.coin.id, History: []PastEntry{}, Ambiguous: len(f.named.Others) > 0, Alternatives: f.named.Alternatives()},
		Meta: PastMeta{Granularity: w.granularity, From: query.FormatTime(w.from.UnixNano()), To: query.FormatTime(w.to.UnixNano())},
	}
	points, since, err := u.readPast(ctx, &f, m, w, limit)
	if m.past && err == nil {
		if f.category == categoryPrice {
			var dropped bool
			if dropped, err = views.PricesUnchanged(ctx, u.served.Prices, f.coin.id, w.from, m.at, r.Now); dropped {
				since = time.Time{} // it is not known any more
			}
		} else {
			since, err = u.pastUnchanged(ctx, &f, m, w, since, r.Has("from"))
		}
		err = query.FaultOfPast(err, m.at)
	}
	if err != nil {
		return query.Answer{}, fmt.Errorf("reading the history of rates of %s: %w", f.coin.id, err)
	}
	if !since.IsZero() {
		body.Meta.AvailableFrom = query.FormatTime(since.UnixNano())
	}
	if len(points) > limit {
		points, body.Meta.Truncated = points[:limit], true
	}
	slices.SortFunc(points, func(a, b views.RatePoint) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(slices.Index(categories, a.Category), slices.Index(categories, b.Category)),
			strings.Compare(a.Provider, b.Provider), strings.Compare(a.ProviderSymbol, b.ProviderSymbol), strings.Compare(a.Source, b.Source), strings.Compare(a.Pool, b.Pool))
	})
	simulated := false
	for _, p := range points {
		body.Data.History = append(body.Data.History, toPoint(f.coin, p, w.step))
		simulated = simulated || p.Simulated
	}
	body.Data.Count = len(points)
	body.Meta.Meta = query.Meta{Count: len(points), LastUpdated: query.FormatTime(ix.current.Time), Clamped: r.Clamped()}
	if len(points) == 0 {
		body.Meta.Reason = noRates
	}
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}

// readPast reads one more than the limit, the newest first, and since when there is anything.
func (u *Unit) readPast(ctx context.Context, f *filter, m moment, w window, limit int) (points []views.RatePoint, since time.Time, err error) {
	q := views.RateQuery{CoinIDs: []string{f.coin.id}, Categories: schemas.RateCategories, From: w.from, To: w.to, Step: w.step, Limit: limit + 1}
	if f.provider != "" {
		q.Providers = []string{f.provider}
	}
	if m.tables.Written != 0 {
		q.Written = time.Unix(0, m.tables.Written).UTC()
	}
	read, first := u.history.RateHistory, u.history.RatesSince
	switch f.category {
	case "":
	case categoryPrice:
		read, first = u.history.PriceHistory, u.history.PricesSince
		q.Written = m.at.Add(-pricesSettled).UTC()
	default:
		q.Categories = []string{f.category}
	}
	if since, err = first(ctx, q); err != nil {
		return nil, since, err
	}
	if !since.IsZero() && q.From.Before(q.To) {
		points, err = read(ctx, q)
	}
	return points, since, err
}

// pastUnchanged fails where what was read of a past moment was not so then, and returns since when there was anything then; the zero time where that is not
// known any more. The window begins at an instant that was asked for, or some days before the moment.
func (u *Unit) pastUnchanged(ctx context.Context, f *filter, m moment, w window, since time.Time, fixed bool) (time.Time, error) {
	if err := u.charts.Kept(ctx, w.from, w.step, func(oldest time.Time) time.Time {
		if fixed {
			return w.from.Add(rawDays*day + time.Millisecond) // from then on it is of hours, which are kept longer
		}
		return m.at.Add(oldest.Sub(w.from))
	}); err != nil {
		return since, err
	}
	// The oldest may be of any time before.
	q := views.RateQuery{CoinIDs: []string{f.coin.id}, Categories: schemas.RateCategories, From: time.Date(2009, 1, 3, 0, 0, 0, 0, time.UTC), To: m.at.UTC().Add(time.Second)}
	if err := u.charts.Unchanged(ctx, q, m.tables, m.at); err != nil {
		return since, err
	}
	return u.charts.HistorySince(ctx, since, w.step, m.tables)
}

func toPoint(coin *coinRates, p views.RatePoint, step time.Duration) PastEntry {
	at := query.FormatTime(p.Start.UnixNano())
	e := PastEntry{
		Provider: p.Provider, Symbol: coin.symbol, Category: p.Category, Rate: p.Close, CoinID: coin.id, ProviderSymbol: p.ProviderSymbol,
		UnitType: unitPercentage, UnitSymbol: "%", Timestamp: at, CreatedAt: query.FormatTime(p.Start.Add(step).UnixNano()), LastUpdated: at,
		Metadata: &PastMetadata{Source: p.Source, Pool: p.Pool, Chain: p.Chain, APR: p.APR, TVLUSD: p.TVL, Origin: string(p.Origin), Simulated: p.Simulated},
	}
	if p.Category == categoryPrice {
		e.ID, e.UnitType, e.UnitSymbol = rateID(p.Provider, categoryPrice, p.ProviderSymbol), unitAbsolute, "USD"
	} else {
		e.ID = rateID(p.Source, p.Category, p.Pool)
	}
	if p.APR != nil && *p.APR == p.Close { // what is reported as an APY has no other value
		e.Metadata.APR = nil
	}
	if step > 0 {
		m := e.Metadata
		m.Open, m.High, m.Low, m.Close, m.Mean, m.N = &p.Open, &p.High, &p.Low, &p.Close, &p.Mean, p.N
	}
	return e
}
