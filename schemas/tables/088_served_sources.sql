-- +goose Up
-- Which records of reference.raw.v1 each process had read that answers of currencies are made of, from an instant on: the offsets of the first
-- and of the last one that counts, and the last clock of the sources.
CREATE TABLE IF NOT EXISTS served_sources
(
    time          DateTime64(9, 'UTC'),
    replica       LowCardinality(String),
    first         Int64,
    last          Int64,
    clock         DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(time)
ORDER BY (time, replica);

-- +goose Down
DROP TABLE served_sources;
