CREATE OR REPLACE VIEW {database}.fixings_usd
(
    currency LowCardinality(String),
    day Date,
    usd Float64,
    source LowCardinality(String),
    read_time DateTime64(9, 'UTC')
)
-- The row of the dollar gives the euro.
AS SELECT if(f.quote = 'USD', 'EUR', f.quote) AS currency, f.day AS day,
    toFloat64(dollar.rate) / if(f.quote = 'USD', 1, toFloat64(f.rate)) AS usd, f.source AS source, greatest(f.ingest_time, dollar.ingest_time) AS read_time
FROM {database}.fixings AS f FINAL
INNER JOIN (SELECT day, rate, ingest_time FROM {database}.fixings FINAL WHERE base = 'EUR' AND quote = 'USD' AND rate > 0) AS dollar ON dollar.day = f.day
WHERE f.base = 'EUR' AND f.rate > 0
COMMENT 'What one unit of a currency cost in USD by the fixings of a day'
