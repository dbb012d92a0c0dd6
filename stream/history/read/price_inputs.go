package read

import (
	"context"
	"fmt"
	"time"

	"github.com/marketlog/marketlog/stream/history"
)

// acceptedPrices are the prices of exchanges that counted in those published of a coin.
const acceptedPrices = `(SELECT provider, market, time, price_usd, simulated FROM (SELECT * FROM prices FINAL WHERE coin_id = ? AND time >= ? AND time < ? AND published <= ? AND reason = '')
	ARRAY JOIN inputs.provider AS provider, inputs.symbol AS market, inputs.price_usd AS price_usd, inputs.accepted AS accepted
	WHERE accepted AND (empty(?) OR has(?, provider)))`

// PriceHistory reads the prices of exchanges that counted in those published of the one coin of a query, as RateHistory reads
// rates: the newest first, of equal times by provider and market. It reaches as far back as prices are kept with their
// inputs.
func (r Reader) PriceHistory(ctx context.Context, q RateQuery) ([]RatePoint, error) {
	providers := q.Providers
	if providers == nil {
		providers = []string{}
	}
	var query string
	switch q.Step {
	case 0:
		query = `SELECT provider, provider, 'price', ?, '', '', market, '', toDateTime64(time, 9, 'UTC'), price_usd, price_usd, price_usd, price_usd, price_usd, toUInt32(1),
				CAST(NULL AS Nullable(Float64)), CAST(NULL AS Nullable(Float64)), simulated, 'live'
			FROM ` + acceptedPrices + ` ORDER BY time DESC, provider, market LIMIT ?`
	case rateHour, rateDay: // a mean is added up in the order of time, so that it is the same to the last digit whenever it is read
		unit := "toStartOfHour"
		if q.Step == rateDay {
			unit = "toStartOfDay"
		}
		query = `SELECT provider, provider, 'price', ?, '', '', market, '', toDateTime64(` + unit + `(time), 9, 'UTC') AS start, argMin(price_usd, time), max(price_usd), min(price_usd),
				argMax(price_usd, time), arrayAvg(arrayMap(p -> p.2, arraySort(groupArray((time, price_usd))))), toUInt32(count()), CAST(NULL AS Nullable(Float64)), CAST(NULL AS Nullable(Float64)), max(simulated), 'live'
			FROM ` + acceptedPrices + ` GROUP BY provider, market, start ORDER BY start DESC, provider, market LIMIT ?`
	default:
		return nil, fmt.Errorf("reading prices of exchanges: a step of %s is neither a price, nor an hour or a day", q.Step)
	}
	coin := q.CoinIDs[0]
	points, err := history.Select(ctx, r.store, query, []any{coin, coin, q.From, q.To, q.published(), providers, providers, q.Limit}, scanRatePoint)
	if err != nil {
		return nil, fmt.Errorf("reading prices of exchanges of %s: %w", coin, err)
	}
	return points, nil
}

// PricesSince is when the oldest price of the one coin of a query is of that is kept with its inputs, and was published in its time; zero for none.
func (r Reader) PricesSince(ctx context.Context, q RateQuery) (time.Time, error) {
	var first *time.Time
	if err := r.store.Conn().QueryRow(ctx, "SELECT minOrNull(time) FROM prices WHERE coin_id = ? AND reason = '' AND published <= ?", q.CoinIDs[0], q.published()).Scan(&first); err != nil {
		return time.Time{}, fmt.Errorf("reading since when there are prices: %w", history.Unavailable(err))
	}
	return orZero(first), nil
}
