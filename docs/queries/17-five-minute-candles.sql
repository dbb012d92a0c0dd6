-- Candles of five minutes, from those of one
--
-- Columns: start; open, high, low and close in USD; volume_usd; minutes that it is made of.
-- Right because: open and close are those of the first and last minute by start, in whatever order rows are read; a candle of fewer than five
-- minutes is left out, above all the one that is not over.
SELECT toStartOfInterval(start, INTERVAL 5 MINUTE) AS start, argMin(open, c.start) AS open, max(high) AS high, min(low) AS low, argMax(close, c.start) AS close,
    sum(volume_usd) AS volume_usd, count() AS minutes
FROM v_candles_1m AS c
WHERE coin_id = 'bitcoin' AND c.start > now() - 86400
GROUP BY start
HAVING minutes = 5
ORDER BY start
