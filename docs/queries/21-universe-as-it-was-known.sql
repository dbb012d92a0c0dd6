-- The twenty largest coins as they were known a day ago
--
-- Columns: rank; coin_id; symbol; market_cap in USD; status, with those that are gone or were renamed since; day that the row is of.
-- Right because: a day is known when it has ended, by published, so the choice does not look ahead; and coins that are gone since are in it, so it is not one of
-- survivors. What it was chosen from was complete only from the day on which the instance began.
SELECT rank, coin_id, symbol, market_cap, status, day
FROM (
    SELECT * FROM v_universe WHERE published <= now() - 86400 ORDER BY day DESC LIMIT 1 BY coin_id
)
WHERE status != 'gone' AND rank > 0
ORDER BY rank
LIMIT 20
