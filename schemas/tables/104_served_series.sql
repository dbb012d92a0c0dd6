-- +goose Up
-- What of the tables of yields each process answered series of yields from, from an instant on: minutes of rates.v1 up to one, by its end, the epoch
-- where it was not known, and what sources told of the past up to a record of rates.raw.v1, by its offset, -1 for nothing.
CREATE TABLE IF NOT EXISTS served_series
(
    time          DateTime64(9, 'UTC'),
    replica       LowCardinality(String),
    written       DateTime('UTC'),
    past          Int64,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (time, replica);

-- +goose Down
DROP TABLE served_series;
