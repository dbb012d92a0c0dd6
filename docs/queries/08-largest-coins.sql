-- The largest coins and their changes
--
-- Columns: rank; symbol; price and market_cap in USD; change_1h, change_24h and change_7d in percent, empty where the past is not known.
-- Right because: rank 0 means that no market cap is known; those coins come after all others, not before them.
SELECT rank, symbol, price, market_cap, change_1h, change_24h, change_7d
FROM v_markets
WHERE rank > 0
ORDER BY rank
LIMIT 50
