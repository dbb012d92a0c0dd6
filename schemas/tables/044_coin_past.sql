-- +goose Up
-- What sources told afterwards of coins' markets; never what they are now.
CREATE TABLE IF NOT EXISTS coin_past
(
    source        LowCardinality(String),
    source_id     String,
    time          DateTime64(9, 'UTC'),
    coin_id       String,
    market_cap    Nullable(Float64),
    volume_24h    Nullable(Float64),
    ingest_time   DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(time)
ORDER BY (source, source_id, time);

-- +goose Down
DROP TABLE coin_past;
