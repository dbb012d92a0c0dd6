-- +goose Up
-- Central banks' daily reference rates: units of quote for one unit of base. What was said last of a day counts.
CREATE TABLE IF NOT EXISTS fixings
(
    base          LowCardinality(String),
    quote         LowCardinality(String),
    day           Date,
    rate          Decimal(38, 18),
    source        LowCardinality(String),
    ingest_time   DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (base, quote, day);

-- +goose Down
DROP TABLE fixings;
