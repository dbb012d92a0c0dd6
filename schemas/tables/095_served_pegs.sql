-- +goose Up
-- The statistics of 30 days by which each process scored stablecoins, from an instant on. They are kept as they were served: the minutes that
-- they are made of may be replaced later.
CREATE TABLE IF NOT EXISTS served_pegs
(
    time          DateTime64(9, 'UTC'),
    replica       LowCardinality(String),
    coins Nested (id LowCardinality(String), mean_bps Float64, p95_bps Float64, samples UInt32),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(time)
ORDER BY (time, replica);

-- +goose Down
DROP TABLE served_pegs;
