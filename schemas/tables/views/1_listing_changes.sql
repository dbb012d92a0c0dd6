CREATE OR REPLACE VIEW {database}.listing_changes
(
    venue LowCardinality(String),
    symbol String,
    time DateTime64(9, 'UTC'),
    base LowCardinality(String),
    quote LowCardinality(String),
    coin_id LowCardinality(String),
    quote_id LowCardinality(String),
    gone Bool,
    status LowCardinality(String),
    first_seen DateTime64(9, 'UTC'),
    simulated Bool,
    first Bool,
    was_gone Bool,
    next DateTime64(9, 'UTC')
)
AS SELECT venue, symbol, time, base, quote, coin_id, quote_id, gone, status, first_seen, simulated, first, was_gone,
    leadInFrame(time, 1, toDateTime64('2200-01-01 00:00:00', 9, 'UTC')) OVER (PARTITION BY venue, symbol ORDER BY time ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next
FROM (
    SELECT venue, symbol, ingest_time AS time, base, quote, coin_id, quote_id, gone, status, first_seen, simulated, (base, quote, coin_id, quote_id, gone, status) AS state,
        row_number() OVER earlier = 1 AS first, lagInFrame(state) OVER earlier AS before, before.5 AS was_gone
    FROM {database}.listings FINAL
    WINDOW earlier AS (PARTITION BY venue, symbol ORDER BY ingest_time ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
WHERE first OR state != before
COMMENT 'Listings that differ from what was recorded of the market before'
