-- +goose Up
-- What sources told afterwards of all of DeFi, by their own counts; never what is locked now.
CREATE TABLE IF NOT EXISTS defi_past
(
    source        LowCardinality(String),
    time          DateTime64(9, 'UTC'),
    total_tvl     Nullable(Float64),
    ingest_time   DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(time)
ORDER BY (source, time);

-- +goose Down
DROP TABLE defi_past;
