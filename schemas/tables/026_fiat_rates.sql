-- +goose Up
-- Every rate that any source ever told: units of quote for one unit of base. In fixings the last of a day replaces
-- the others.
CREATE TABLE IF NOT EXISTS fiat_rates
(
    source        LowCardinality(String),
    base          LowCardinality(String),
    quote         LowCardinality(String),
    day           Date,
    event_time    DateTime64(9, 'UTC'),
    rate          Decimal(38, 18),
    ingest_time   DateTime64(9, 'UTC'),
    providers     Array(LowCardinality(String)),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (source, base, quote, day, event_time);

-- +goose Down
DROP TABLE fiat_rates;
