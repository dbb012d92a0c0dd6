-- +goose Up
CREATE TABLE IF NOT EXISTS protocols
(
    source        LowCardinality(String),
    slug          String,
    ingest_time   DateTime64(9, 'UTC'),
    coin_id       String,
    name          String,
    symbol        String,
    category      LowCardinality(String),
    tvl           Nullable(Float64),
    chains Nested
    (
        chain         LowCardinality(String),
        amount        Float64
    ),
    change_1d     Nullable(Float64),
    change_7d     Nullable(Float64),
    market_cap    Nullable(Float64),
    event_time    DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(ingest_time)
ORDER BY (source, slug, ingest_time);

-- +goose Down
DROP TABLE protocols;
