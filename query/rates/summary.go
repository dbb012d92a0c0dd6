package rates

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// SummaryBody answers GET /api/v1/rates/summary.
type SummaryBody struct {
	Data Summary `json:"data"`
	Meta Meta    `json:"meta"`
}

// Summary sums up rates.
type Summary struct {
	Summary   []SummaryEntry `json:"summary" doc:"Sorted by category and coin rank"`
	Count     int            `json:"count"`
	Timestamp string         `json:"timestamp" format:"date-time" doc:"Log time up to which the view is complete"`
}

// SummaryEntry sums up what providers report of a coin in a category.
type SummaryEntry struct {
	Symbol        string  `json:"symbol"`
	CoinID        string  `json:"coinId"`
	Category      string  `json:"category" enum:"lending,staking,borrowing,price" doc:"Category of the entries"`
	MinRate       float64 `json:"minRate" explain:"rate-statistics/{coinId}/{category}/minRate" doc:"Percent per year; for prices, USD"`
	MaxRate       float64 `json:"maxRate" explain:"rate-statistics/{coinId}/{category}/maxRate" doc:"Percent per year; for prices, USD"`
	AverageRate   float64 `json:"averageRate" explain:"rate-statistics/{coinId}/{category}/averageRate" doc:"Mean of the entries"`
	MedianRate    float64 `json:"medianRate" explain:"rate-statistics/{coinId}/{category}/medianRate" doc:"Median of the entries"`
	ProviderCount int     `json:"providerCount" explain:"rate-statistics/{coinId}/{category}/providerCount" doc:"Number of providers with an entry"`
	RateCount     int     `json:"rateCount" explain:"rate-statistics/{coinId}/{category}/rateCount" doc:"Number of entries; a provider may have several"`
	LatestUpdate  string  `json:"latestUpdate" format:"date-time" doc:"When an entry was last reported"`
}

func (u *Unit) summary() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/rates/summary", ID: "summarizeRates", Tag: tag,
		Summary:     "Lowest, highest and mean yield of each coin by category",
		Description: "Every current entry counts once, whatever its TVL; those that the source has not reported for three polling intervals are left out. Prices come last: one per exchange, as accepted into the coin's price.",
		Params:      []query.Param{coinFilter, categoryParam, asOfParam},
		Body:        SummaryBody{}, NotFound: true, Hot: true, Handle: u.getSummary,
	}
}

func (u *Unit) getSummary(ctx context.Context, r *query.Request) (query.Answer, error) {
	if asOf, past := r.Time("asOf"); past {
		return u.listAsOf(ctx, r, asOf, func(ix *index, f *filter, age query.Age, prices *shownPrices) (query.Answer, error) {
			return u.encodeSummary(ix, f, age, prices, r)
		})
	}
	ix, err := u.index(r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	f, err := u.narrowed(ix, r)
	if err != nil {
		return query.Answer{}, err
	}
	v, k := u.version(ix, r, f.prices()), listKey{category: f.category}
	if f.coin != nil {
		k.coin = f.coin.id
	}
	return u.cacheFor(v).Get(v, k, func() (query.Answer, error) {
		return u.encodeSummary(ix, &f, v.age, u.pricesNow(v.prices > 0, r.Now), r)
	})
}

// encodeSummary joins rows that were encoded before: those of prices change each second, one coin at a time.
func (u *Unit) encodeSummary(ix *index, f *filter, age query.Age, prices *shownPrices, r *query.Request) (answer query.Answer, err error) {
	count, newest := 0, ix.current.Time
	var rows []byte
	if f.category != categoryPrice {
		kept := ix.sums()
		if f.coin == nil && f.category == "" {
			rows, err = ix.sumsEncoded()
		} else {
			kept = slices.DeleteFunc(slices.Clone(kept), func(s SummaryEntry) bool {
				return f.coin != nil && s.CoinID != f.coin.id || f.category != "" && s.Category != f.category
			})
			rows, err = encodeRows(kept)
		}
		if err != nil {
			return answer, err
		}
		count = len(kept)
		candidates, _ := ix.narrowest(f)
		answer.Simulated = slices.ContainsFunc(candidates, func(e *rate) bool { return e.Simulated && f.matches(e) })
	}
	rows = slices.Clip(rows)
	if prices != nil {
		newest = max(newest, prices.newest)
		coins := ix.ranked
		if f.coin != nil {
			coins = []*coinRates{f.coin}
		}
		for _, coin := range coins {
			e := prices.fresh(coin)
			if e == nil {
				continue
			}
			row, err := prices.row(coin, e)
			if err != nil {
				return answer, err
			}
			if len(row) == 0 {
				continue
			}
			if count++; len(rows) > 0 {
				rows = append(rows, ',')
			}
			rows = append(rows, row...)
			answer.Simulated = answer.Simulated || e.Latest.Simulated
		}
	}
	at := query.FormatTime(newest)
	meta := ix.meta(r, age, count)
	meta.LastUpdated = at
	tail, err := json.Marshal(meta)
	if err != nil {
		return answer, fmt.Errorf("encoding meta: %w", err)
	}
	var body bytes.Buffer
	body.WriteString(`{"data":{"summary":[`)
	body.Write(rows)
	body.WriteString(`],"count":` + strconv.Itoa(count) + `,"timestamp":"` + at + `"},"meta":`)
	body.Write(tail)
	body.WriteByte('}')
	answer.Body = query.RawBody(body.Bytes())
	return answer, nil
}

// encodePrice is the row of a coin's prices; empty where no exchange counts.
func (u *Unit) encodePrice(coin *coinRates, e *views.Entry) ([]byte, error) {
	var values []float64
	var newest int64
	for _, in := range e.Latest.Inputs {
		if in.Accepted {
			values = append(values, in.PriceUsd)
			newest = max(newest, received(in))
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	// An exchange has one price that counts.
	return json.Marshal(sum(coin, categoryPrice, values, len(values), newest))
}

// summarize makes the rows of all rates but prices.
func (ix *index) summarize() []SummaryEntry {
	rows := []SummaryEntry{}
	for from := 0; from < len(ix.all); {
		coin, category := ix.all[from].coin, ix.all[from].Category
		var values []float64
		providers := map[string]bool{}
		var newest int64
		to := from
		for ; to < len(ix.all) && ix.all[to].coin == coin && ix.all[to].Category == category; to++ {
			e := ix.all[to]
			values = append(values, e.Apy)
			providers[e.Provider] = true
			newest = max(newest, e.Heard)
		}
		rows = append(rows, sum(coin, category, values, len(providers), newest))
		from = to
	}
	return rows
}

// sum makes a row of values, of which there is at least one.
func sum(coin *coinRates, category string, values []float64, providers int, newest int64) SummaryEntry {
	s := views.SumRates(values)
	return SummaryEntry{
		Symbol: coin.symbol, CoinID: coin.id, Category: category, MinRate: s.Min, MaxRate: s.Max, AverageRate: s.Mean, MedianRate: s.Median,
		ProviderCount: providers, RateCount: len(values), LatestUpdate: query.FormatTime(newest),
	}
}

// encodeRows encodes rows, separated by commas.
func encodeRows(rows []SummaryEntry) ([]byte, error) {
	encoded, err := json.Marshal(rows)
	if err != nil {
		return nil, fmt.Errorf("encoding a summary: %w", err)
	}
	return encoded[1 : len(encoded)-1], nil
}
