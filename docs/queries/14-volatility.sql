-- Which coins move most: volatility over a day
--
-- Columns: symbol; returns, of minutes that follow one another; volatility, the standard deviation of their logarithms, as percent a year.
-- Right because: a return spans one minute exactly. Over a gap it would span more, and count as one move.
SELECT symbol, count() AS returns, stddevSamp(move) * sqrt(365 * 1440) * 100 AS volatility
FROM (
    SELECT symbol, start, log(close / lagInFrame(close) OVER earlier) AS move, dateDiff('second', lagInFrame(start) OVER earlier, start) AS span
    FROM v_candles_1m
    WHERE start > now() - 86400 AND coin_id IN ('bitcoin', 'ethereum', 'solana', 'ripple', 'dogecoin', 'cardano', 'chainlink', 'litecoin')
    WINDOW earlier AS (PARTITION BY coin_id ORDER BY start ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
)
WHERE span = 60
GROUP BY symbol
HAVING returns > 2
ORDER BY volatility DESC
