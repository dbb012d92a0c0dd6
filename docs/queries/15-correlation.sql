-- How closely coins follow bitcoin
--
-- Columns: symbol; minutes that both have; correlation of the returns of these minutes; beta, how much it moves for one of bitcoin.
-- Right because: both returns are of the same minute, and each spans one minute exactly.
SELECT b.symbol AS symbol, count() AS minutes, corr(a.move, b.move) AS correlation, covarSamp(a.move, b.move) / varSamp(a.move) AS beta
FROM (
    SELECT start, log(close / lagInFrame(close) OVER w) AS move, dateDiff('second', lagInFrame(start) OVER w, start) AS span FROM v_candles_1m
    WHERE coin_id = 'bitcoin' AND start > now() - 86400 WINDOW w AS (ORDER BY start ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS a
JOIN (
    SELECT symbol, start, log(close / lagInFrame(close) OVER w) AS move, dateDiff('second', lagInFrame(start) OVER w, start) AS span FROM v_candles_1m
    WHERE coin_id IN ('ethereum', 'solana', 'ripple', 'dogecoin') AND start > now() - 86400
    WINDOW w AS (PARTITION BY coin_id ORDER BY start ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
) AS b ON a.start = b.start
WHERE a.span = 60 AND b.span = 60
GROUP BY symbol
HAVING minutes > 2
ORDER BY correlation DESC
