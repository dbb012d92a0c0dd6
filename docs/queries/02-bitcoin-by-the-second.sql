-- Bitcoin by the second, the last ten minutes
--
-- Columns: time; price, min and max in USD.
-- Right because: a second in which nothing changed has no row. A price holds until the next row, it is not missing.
SELECT time, price, min, max
FROM v_prices
WHERE coin_id = 'bitcoin' AND time > now() - 600
ORDER BY time
