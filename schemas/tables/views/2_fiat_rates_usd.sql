CREATE OR REPLACE VIEW {database}.fiat_rates_usd
(
    source LowCardinality(String),
    currency LowCardinality(String),
    day Date,
    event_time DateTime64(9, 'UTC'),
    ingest_time DateTime64(9, 'UTC'),
    per_usd Float64
)
-- The row of the dollar tells what its base costs, and converts the others of the same source and base.
AS WITH newest AS (
    SELECT source, base, quote, max((day, event_time)) AS at, toFloat64(argMax(rate, (day, event_time))) AS rate, argMax(ingest_time, (day, event_time)) AS heard
    FROM {database}.fiat_rates FINAL GROUP BY source, base, quote
)
SELECT r.source AS source, if(r.quote = 'USD', r.base, r.quote) AS currency, r.at.1 AS day, r.at.2 AS event_time, r.heard AS ingest_time,
    multiIf(r.base = 'USD', r.rate, r.quote = 'USD', 1 / r.rate, r.rate / dollar.rate) AS per_usd
FROM newest AS r
LEFT JOIN (SELECT source, base, rate FROM newest WHERE quote = 'USD') AS dollar ON dollar.source = r.source AND dollar.base = r.base
WHERE r.rate > 0 AND (r.base = 'USD' OR r.quote = 'USD' OR dollar.rate > 0)
COMMENT 'The newest rate of each currency by each source, in units for one USD'
