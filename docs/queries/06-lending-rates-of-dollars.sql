-- The best lending rates of USD coins
--
-- Columns: symbol; provider_name; chain; apy, percent a year, compounded; raw and raw_unit as the source reports it; tvl_usd; source.
-- Right because: rates of all sources are compared compounded; what has ended, and what a nearer source reports itself, does not count twice.
SELECT symbol, provider_name, chain, apy, raw, raw_unit, tvl_usd, source
FROM v_rates
WHERE category = 'lending' AND symbol IN ('USDC', 'USDT', 'DAI') AND NOT ended AND shadowed = '' AND tvl_usd > 1000000
ORDER BY apy DESC
LIMIT 25
