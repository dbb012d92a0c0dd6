-- Trades of bitcoin against the price that was known before
--
-- Columns: venue; trades of two minutes; dollars, their worth; slippage_bps, how far they were above the price, weighted by worth; age, seconds
-- since that price had been published, on average.
-- Right because: ASOF JOIN takes the last price that had been published when the trade happened. A join by time instead of published would take
-- prices that nobody knew yet, made from this very trade.
SELECT venue, count() AS trades, sum(worth) AS dollars, sum(worth * 10000 * (usd / known - 1)) / dollars AS slippage_bps, avg(age) AS age
FROM (
    SELECT t.venue AS venue, toFloat64(t.price) * t.rate AS usd, toFloat64(t.size) * usd AS worth, assumeNotNull(p.price) AS known,
        dateDiff('millisecond', p.published, t.event_time) / 1000 AS age
    FROM (
        SELECT coin_id, venue, price, size, rate, event_time FROM v_ticks
        WHERE coin_id = 'bitcoin' AND kind = 'trade' AND event_time BETWEEN now() - 120 AND now() AND rate > 0 AND NOT snapshot
    ) AS t
    ASOF JOIN (
        SELECT coin_id, published, price FROM v_prices WHERE coin_id = 'bitcoin' AND time > now() - 300 AND price > 0
    ) AS p ON t.coin_id = p.coin_id AND t.event_time >= p.published
)
GROUP BY venue
ORDER BY dollars DESC, venue
