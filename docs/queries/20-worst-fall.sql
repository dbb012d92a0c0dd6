-- The worst fall of each large coin within a day
--
-- Columns: symbol; fall, percent from the highest close before it; at, the minute in which it was deepest; minutes that were looked at.
-- Right because: the highest close is of the minutes before, never of later ones; a fall cannot begin after it ended.
SELECT symbol, min(fell) AS fall, argMin(start, (fell, start)) AS at, count() AS minutes
FROM (
    SELECT symbol, start, 100 * (close / max(close) OVER (PARTITION BY coin_id ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - 1) AS fell
    FROM v_candles_1m
    WHERE start > now() - 86400 AND coin_id IN (SELECT coin_id FROM v_markets WHERE rank BETWEEN 1 AND 20)
)
GROUP BY symbol
ORDER BY fall, symbol
