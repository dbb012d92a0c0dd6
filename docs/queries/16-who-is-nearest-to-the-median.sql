-- Which venues are nearest to the price of bitcoin
--
-- Columns: provider; prices of ten minutes that it counts in; bias_bps, its mean distance, negative below; distance_bps, the mean of its absolute distance.
-- Right because: only inputs that counted are compared, each with the price that was made from it, in USD at the rate that was used.
SELECT input.provider AS provider, count() AS prices, avg(10000 * (input.price_usd / price - 1)) AS bias_bps, avg(abs(10000 * (input.price_usd / price - 1))) AS distance_bps
FROM v_prices
ARRAY JOIN inputs AS input
WHERE coin_id = 'bitcoin' AND time BETWEEN now() - 600 AND now() AND price > 0 AND input.accepted
GROUP BY provider
ORDER BY distance_bps, provider
