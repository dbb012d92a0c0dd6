-- What bitcoin was traded at, by minute and over all venues
--
-- Columns: start of the minute; trades; coins traded; vwap, their mean price in USD, weighted by size.
-- Right because: each trade is converted at the exchange rate that was recorded with it; trades of history that a venue sends on subscribing are in other
-- minutes, and left out here.
SELECT toStartOfMinute(event_time) AS start, count() AS trades, sum(toFloat64(size)) AS coins, sum(toFloat64(price) * rate * toFloat64(size)) / coins AS vwap
FROM v_ticks
WHERE coin_id = 'bitcoin' AND kind = 'trade' AND event_time BETWEEN now() - 600 AND now() AND rate > 0 AND NOT snapshot
GROUP BY start
ORDER BY start
