-- +goose Up
-- What sources told afterwards of coins' markets, by days; never what they are now.
CREATE TABLE IF NOT EXISTS coin_past
(
    source        LowCardinality(String),
    source_id     String,
    day           Date,
    coin_id       String,
    points Nested
    (
        time          DateTime64(9, 'UTC'),
        market_cap    Nullable(Float64),
        volume_24h    Nullable(Float64)
    ),
    ingest_time   DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(day)
ORDER BY (source, source_id, day);

-- +goose Down
DROP TABLE coin_past;
