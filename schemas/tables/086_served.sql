-- +goose Up
-- How far each process that answers had read each partition of prices.v1, from an instant on: the newest record, named by the one of
-- ticks.v1, in the partition of the same number, that caused it.
CREATE TABLE IF NOT EXISTS served_prices
(
    partition     Int32,
    time          DateTime64(9, 'UTC'),
    replica       LowCardinality(String),
    ticks_offset  Int64,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(time)
ORDER BY (partition, time, replica);

-- Which minute of the whole market each process served, by its end, from an instant on.
CREATE TABLE IF NOT EXISTS served_minutes
(
    time          DateTime64(9, 'UTC'),
    replica       LowCardinality(String),
    minute        DateTime('UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (time, replica);

-- +goose Down
DROP TABLE served_prices;
DROP TABLE served_minutes;
