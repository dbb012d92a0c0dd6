CREATE OR REPLACE VIEW {database}.fixings_usd
(
    currency LowCardinality(String),
    day Date,
    usd Float64,
    source LowCardinality(String)
)
-- The row of the dollar gives the euro.
AS SELECT if(f.quote = 'USD', 'EUR', f.quote) AS currency, f.day AS day,
    toFloat64(dollar.rate) / if(f.quote = 'USD', 1, toFloat64(f.rate)) AS usd, f.source AS source
FROM {database}.fixings AS f FINAL
INNER JOIN (SELECT day, rate FROM {database}.fixings FINAL WHERE base = 'EUR' AND quote = 'USD' AND rate > 0) AS dollar ON dollar.day = f.day
WHERE f.base = 'EUR' AND f.rate > 0
COMMENT 'What one unit of a currency cost in USD by the fixings of a day'
