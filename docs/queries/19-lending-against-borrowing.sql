-- What lies between lending and borrowing, by protocol
--
-- Columns: provider_name; chain; symbol; lend and borrow, APY in percent; spread between them; supplied and owed, USD.
-- Right because: both sides are of the same pool of the same source. Best rates of different pools are no spread that anyone earns.
SELECT l.provider_name AS provider_name, l.chain AS chain, l.symbol AS symbol, l.apy AS lend, b.apy AS borrow, b.apy - l.apy AS spread, l.tvl_usd AS supplied, b.tvl_usd AS owed
FROM (SELECT * FROM v_rates WHERE category = 'lending' AND NOT ended AND coin_id != '') AS l
JOIN (SELECT * FROM v_rates WHERE category = 'borrowing' AND NOT ended AND coin_id != '') AS b USING (source, pool, coin_id)
ORDER BY supplied DESC, provider_name, chain, symbol
LIMIT 25
