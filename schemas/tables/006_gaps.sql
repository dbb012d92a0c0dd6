-- +goose Up
CREATE TABLE IF NOT EXISTS gaps
(
    venue         LowCardinality(String),
    symbol        LowCardinality(String),
    reason        LowCardinality(String),
    from_time     DateTime64(9, 'UTC'),
    to_time       DateTime64(9, 'UTC'),
    missed        UInt64,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(to_time)
ORDER BY (venue, symbol, reason, from_time, to_time);

-- +goose Down
DROP TABLE gaps;
