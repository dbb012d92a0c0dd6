-- +goose Up
CREATE TABLE IF NOT EXISTS stablecoins
(
    source        LowCardinality(String),
    source_id     String,
    ingest_time   DateTime64(9, 'UTC'),
    coin_id       String,
    symbol        String,
    name          String,
    peg_type      LowCardinality(String),
    peg_mechanism LowCardinality(String),
    price         Nullable(Float64),
    circulating   Nullable(Float64),
    chains Nested
    (
        chain         LowCardinality(String),
        amount        Float64
    ),
    dead          Bool,
    event_time    DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(ingest_time)
ORDER BY (source, source_id, ingest_time);

-- +goose Down
DROP TABLE stablecoins;
