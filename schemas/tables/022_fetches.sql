-- +goose Up
CREATE TABLE IF NOT EXISTS fetches
(
    source        LowCardinality(String),
    started       DateTime64(9, 'UTC'),
    feed          LowCardinality(String),
    url           String,
    status        Int32,
    error         String,
    duration_ns   Int64,
    readings      Int64,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(started)
ORDER BY (source, started, feed, url);

-- +goose Down
DROP TABLE fetches;
