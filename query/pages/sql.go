package pages

import (
	"net/http"

	"github.com/gofiber/fiber/v2"
)

// sqlView is the page of SQL. It runs nothing by itself: a link may carry a statement, and whoever wrote it is not who looks at it.
type sqlView struct {
	Served    bool     `json:"served"`
	Statement string   `json:"statement"`
	Samples   []sample `json:"samples"`
}

// sample is a statement to begin with. The test of the pages in a browser runs all of them.
type sample struct {
	Name      string `json:"name"`
	Statement string `json:"statement"`
}

var samples = []sample{
	{"Newest prices, with how many venues make them", `SELECT symbol, argMax(price, time) AS newest, argMax(accepted, time) AS used, argMax(rejected, time) AS left_out, max(volume_24h) AS volume, max(time) AS at
FROM v_prices
WHERE time > now() - 300
GROUP BY symbol
ORDER BY volume DESC
LIMIT 20`},
	{"Bitcoin by the second, the last ten minutes", `SELECT time, price, min, max
FROM v_prices
WHERE coin_id = 'bitcoin' AND time > now() - 600
ORDER BY time`},
	{"Bitcoin by the hour, a week", `SELECT start, open, high, low, close, volume_usd, trades
FROM v_candles_1h
WHERE coin_id = 'bitcoin' AND start > now() - 7 * 86400
ORDER BY start`},
	{"Which venues send most", `SELECT venue, count() AS ticks, uniq(coin_id) AS coins, max(ingest_time) AS last
FROM v_ticks
WHERE ingest_time > now() - 60
GROUP BY venue
ORDER BY ticks DESC`},
	{"Where venues were left out of a price", `SELECT symbol, avg(rejected) AS left_out, avg(accepted) AS used
FROM v_prices
WHERE time > now() - 300
GROUP BY symbol
ORDER BY left_out DESC
LIMIT 20`},
	{"The best lending rates of USD coins", `SELECT symbol, provider_name, chain, apy, raw, raw_unit, tvl_usd, source
FROM v_rates
WHERE category = 'lending' AND symbol IN ('USDC', 'USDT', 'DAI') AND NOT ended
ORDER BY apy DESC
LIMIT 25`},
	{"Stablecoins off their pegs", `SELECT coin_id, peg, start, trough_bps, recovery, minutes
FROM v_peg_episodes
ORDER BY start DESC
LIMIT 20`},
	{"The largest coins and their changes", `SELECT rank, symbol, price, market_cap, change_1h, change_24h, change_7d
FROM v_markets
WHERE rank > 0
ORDER BY rank
LIMIT 50`},
	{"What could not be processed, by reason", `SELECT source, reason, count() AS records, max(ingest_time) AS last
FROM v_dead_letters
GROUP BY source, reason
ORDER BY records DESC`},
	{"How far the tables are behind the log", `SELECT sink, max(behind_seconds) AS behind, max(log_time) AS at
FROM v_lag
GROUP BY sink
ORDER BY behind DESC`},
}

// maxLinked bounds a statement that an address carries.
const maxLinked = 4 << 10

// sendSQL answers /sql.
func (u *Unit) sendSQL(c *fiber.Ctx) error {
	r, ok, err := u.route(c, "SQL")
	if !ok {
		return err
	}
	v := &sqlView{Served: u.deps.SQL != nil && u.deps.SQL(), Samples: samples, Statement: samples[0].Statement}
	if linked := c.Query("query"); linked != "" && len(linked) <= maxLinked {
		v.Statement = linked
	}
	if !wantsPage(r.ctx) {
		return u.sendSQLText(r.ctx)
	}
	// A form of a page without a referrer names no origin, and a session counts only from our own.
	r.ctx.Response.Header.Set(fiber.HeaderReferrerPolicy, "same-origin")
	return u.show(r.ctx, http.StatusOK, view{Page: pageSQL, Title: "SQL", About: "Ask the views of the log in SQL.", Data: v, SQL: v})
}
