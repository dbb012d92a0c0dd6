package rates

import (
	"context"
	"net/http"

	"github.com/marketlog/marketlog/query"
)

// maxRates bounds one list.
const maxRates = 1000

// maxOffset is beyond all rows.
const maxOffset = 1_000_000

// ListBody answers GET /api/v1/rates.
type ListBody struct {
	Data List     `json:"data"`
	Meta ListMeta `json:"meta"`
}

// List holds rates.
type List struct {
	Rates     []Entry `json:"rates" doc:"Sorted by category, coin rank, rate (descending), provider"`
	Count     int     `json:"count"`
	Timestamp string  `json:"timestamp" format:"date-time" doc:"Log time up to which the view is complete"`
}

// listKey names an answer of several coins; limit is 0 for a summary.
type listKey struct {
	coin, category, provider string
	limit, offset            int64
}

func (u *Unit) list() query.Endpoint {
	return query.Endpoint{
		Method: http.MethodGet, Path: "/api/v1/rates", ID: "listRates", Tool: "get_rates", Tag: tag,
		Summary:     "Current yields of lending and staking, borrowing rates, and prices",
		Description: "A provider with several pools of a coin has an entry for each. Prices come last: those accepted into the coin's price. Entries that the source has not reported for three polling intervals are left out.",
		Params: []query.Param{coinFilter, categoryParam, providerParam,
			{Name: "limit", Kind: query.Integer, Default: "100", ToolDefault: "25", Min: 1, Max: maxRates, Doc: "Maximum number of rows."},
			{Name: "offset", Kind: query.Integer, Default: "0", Min: 0, Max: maxOffset, Doc: "Rows to skip."}, asOfParam},
		Body: ListBody{}, NotFound: true, Hot: true, Handle: u.getList,
	}
}

func (u *Unit) getList(ctx context.Context, r *query.Request) (query.Answer, error) {
	if asOf, past := r.Time("asOf"); past {
		return u.listAsOf(ctx, r, asOf, func(ix *index, f *filter, age query.Age, prices *shownPrices) (query.Answer, error) {
			limit, offset := int(r.Integer("limit")), int(r.Integer("offset"))
			if !reachesPrices(ix, f, offset+limit) {
				prices = nil
			}
			return u.encodeList(ix, f, age, prices, offset, limit, r)
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
	limit, offset := int(r.Integer("limit")), int(r.Integer("offset"))
	v := u.version(ix, r, reachesPrices(ix, &f, offset+limit))
	encode := func() (query.Answer, error) {
		return u.encodeList(ix, &f, v.age, u.pricesNow(v.prices > 0, r.Now), offset, limit, r)
	}
	if r.Clamped() != nil {
		return encode() // it reports what was asked for
	}
	k := listKey{category: f.category, provider: f.provider, limit: int64(limit), offset: int64(offset)}
	if f.coin != nil {
		k.coin = f.coin.id
	}
	return u.cacheFor(v).Get(v, k, encode)
}

// reachesPrices reports whether an answer of so many rows may have prices. They come last: where the others more than fill it, they change nothing in it.
func reachesPrices(ix *index, f *filter, rows int) bool {
	candidates, whole := ix.narrowest(f)
	return f.prices() && (!whole || len(candidates) <= rows)
}

func (u *Unit) encodeList(ix *index, f *filter, age query.Age, prices *shownPrices, offset, limit int, r *query.Request) (query.Answer, error) {
	body := ListBody{Data: List{Rates: []Entry{}}}
	simulated, newest := false, ix.current.Time
	total := 0
	candidates, _ := ix.narrowest(f)
	for _, e := range candidates {
		if !f.matches(e) {
			continue
		}
		if total++; total > offset && total <= offset+limit {
			body.Data.Rates = append(body.Data.Rates, e.response(u, ix))
			simulated = simulated || e.Simulated
		}
	}
	if prices != nil {
		newest = max(newest, prices.newest)
		u.eachPrice(ix, f, prices, func(row Entry) {
			if total++; total > offset && total <= offset+limit {
				body.Data.Rates = append(body.Data.Rates, row)
				simulated = simulated || row.Metadata.Simulated
			}
		})
	}
	body.Data.Count, body.Data.Timestamp = len(body.Data.Rates), query.FormatTime(newest)
	body.Meta = ListMeta{ix.meta(r, age, body.Data.Count), offset, total > offset+limit}
	body.Meta.LastUpdated = body.Data.Timestamp
	answer, err := query.Encode(body)
	answer.Simulated = simulated
	return answer, err
}

// cacheFor is where answers of a version are held.
func (u *Unit) cacheFor(v version) *query.ResponseCache[version, listKey] {
	if v.prices > 0 {
		return &u.pricedAnswers
	}
	return &u.held
}

// eachPrice hands over the prices that a filter takes, by rank of the coin.
func (u *Unit) eachPrice(ix *index, f *filter, prices *shownPrices, visit func(Entry)) {
	coins := ix.ranked
	if f.coin != nil {
		coins = []*coinRates{f.coin}
	}
	for _, coin := range coins {
		if e := prices.fresh(coin); e != nil {
			for _, row := range u.pricesOf(coin, e, f.provider) {
				visit(row)
			}
		}
	}
}
