-- Where venues were left out of a price, and why
--
-- Columns: symbol; provider; reason; prices, how many left it out in five minutes; deviation_bps, how far it was from the price on average.
-- Right because: reasons are those that the price itself recorded, by input; nothing is judged again. A venue has one vote: its
-- other markets (other_market) are not left out.
SELECT symbol, input.provider AS provider, input.reason AS reason, count() AS prices, avg(10000 * (input.price_usd / price - 1)) AS deviation_bps
FROM v_prices
ARRAY JOIN inputs AS input
WHERE time > now() - 300 AND price > 0 AND NOT input.accepted AND input.reason != 'other_market' AND input.price_usd > 0
GROUP BY symbol, provider, reason
ORDER BY prices DESC, symbol, provider, reason
LIMIT 20
