-- Newest prices, with how many venues make them
--
-- Columns: symbol; newest, USD; used and left_out, the providers of the newest price that count and that do not; volume of 24 h, USD; at, the second
-- of that price.
-- Right because: argMax takes price and counts from the same row, the newest with a price; a row without one is an answer too, and says why in reason.
SELECT symbol, argMax(price, time) AS newest, argMax(accepted, time) AS used, argMax(rejected, time) AS left_out, argMax(volume_24h, time) AS volume, max(time) AS at
FROM v_prices
WHERE time > now() - 300 AND reason = ''
GROUP BY symbol
ORDER BY volume DESC, symbol
LIMIT 20
