package rates

import (
	"context"
	"net/http"
	"slices"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// SymbolBody answers GET /api/v1/rates/{symbol}.
type SymbolBody struct {
	Data SymbolRates `json:"data"`
	Meta SymbolMeta  `json:"meta"`
}

// SymbolMeta describes the rates of a coin.
type SymbolMeta struct {
	Meta
	Total     int  `json:"total" doc:"Number of rows without the limit"`
	Truncated bool `json:"truncated,omitempty" doc:"There are more rows than the limit: narrow by category or provider, or raise the limit"`
}

// SymbolRates are the rates of a coin.
type SymbolRates struct {
	Symbol       string              `json:"symbol"`
	CoinID       string              `json:"coinId"`
	Rates        []Entry             `json:"rates" doc:"Sorted by category, rate (descending), provider"`
	Count        int                 `json:"count"`
	Ambiguous    bool                `json:"ambiguous,omitempty" doc:"The name is ambiguous: other coins match it too"`
	Alternatives []views.Alternative `json:"alternatives,omitempty"`
	Explain      *Explanation        `json:"explain,omitempty" doc:"If requested with explain: every reported rate of the coin and its recomputation"`
}

// coinVersion is what an answer of one coin is made from.
type coinVersion struct {
	index *index
	age   query.Age
	// price is nil for an answer without prices.
	price *views.Entry
}

// coinKey names an answer of one coin.
type coinKey struct {
	category, provider string
	// others are sent only to those whose name could mean them.
	others views.OthersKey
}

func (u *Unit) bySymbol() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/rates/{symbol}", ID: "getRates", Tool: "get_rate_by_symbol", Tag: tag,
		Summary:     "Current yields of a coin, and its prices by exchange",
		Description: "Entries that the source has not reported for three polling intervals are left out; a coin without any yield has an empty list.",
		Params: []query.Param{symbolParam, categoryParam, providerParam,
			{Name: "limit", Kind: query.Integer, Default: "1000", ToolDefault: "30", Min: 1, Max: maxRates, Doc: "Maximum number of rows."},
			explainParam, asOfParam},
		Body: SymbolBody{}, NotFound: true, Hot: true, ExplainsNow: true, Handle: u.getBySymbol,
	}
}

func (u *Unit) getBySymbol(ctx context.Context, r *query.Request) (query.Answer, error) {
	if asOf, past := r.Time("asOf"); past {
		return u.getBySymbolAsOf(ctx, r, asOf)
	}
	ix, err := u.index(r.Now)
	if err != nil {
		return query.Answer{}, err
	}
	f, err := u.narrowed(ix, r)
	if err != nil {
		return query.Answer{}, err
	}
	v := coinVersion{index: ix, age: ix.age(r.Now)}
	if f.prices() {
		v.price = u.freshPrice(f.coin, r.Now)
	}
	most := len(f.coin.rates) // rows, whatever the filters leave
	if v.price != nil {
		most += len(v.price.Latest.Inputs)
	}
	// An answer that a limit may cut is not kept: there would be one for every limit.
	if r.Flag("explain") || r.Clamped() != nil || int(r.Integer("limit")) < most {
		body, simulated := u.ratesOf(&f, v, r)
		if r.Flag("explain") {
			body.Data.Explain = u.explain(&f, v, r.Now)
		}
		answer, err := query.Encode(body)
		answer.Simulated = simulated
		return answer, err
	}
	return f.coin.held.Get(v, coinKey{f.category, f.provider, f.named.OthersKey()}, func() (query.Answer, error) {
		body, simulated := u.ratesOf(&f, v, r)
		answer, err := query.Encode(body)
		answer.Simulated = simulated
		return answer, err
	})
}

func (u *Unit) ratesOf(f *filter, v coinVersion, r *query.Request) (body SymbolBody, simulated bool) {
	body.Data = SymbolRates{Symbol: f.coin.symbol, CoinID: f.coin.id, Rates: []Entry{},
		Ambiguous: len(f.named.Others) > 0, Alternatives: f.named.Alternatives()}
	for _, e := range f.coin.rates {
		if f.matches(e) {
			body.Data.Rates = append(body.Data.Rates, e.response(u, v.index))
		}
	}
	newest := v.index.current.Time
	if v.price != nil {
		body.Data.Rates = append(body.Data.Rates, u.pricesOf(f.coin, v.price, f.provider)...)
		newest = max(newest, v.price.Latest.Time)
	}
	total, limit := len(body.Data.Rates), int(r.Integer("limit"))
	body.Data.Rates = body.Data.Rates[:min(total, limit)] // from the end, where the prices are
	body.Data.Count = len(body.Data.Rates)
	body.Meta = SymbolMeta{v.index.meta(r, v.age, body.Data.Count), total, total > limit}
	body.Meta.LastUpdated = query.FormatTime(newest)
	return body, slices.ContainsFunc(body.Data.Rates, func(e Entry) bool { return e.Metadata.Simulated })
}
