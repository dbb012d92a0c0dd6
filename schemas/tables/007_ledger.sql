-- +goose Up
CREATE TABLE IF NOT EXISTS ledger
(
    sink          LowCardinality(String),
    generation    UInt32,
    log_partition Int32,
    first_offset  Int64,
    next_offset   Int64,
    log_time      DateTime64(9, 'UTC'),
    mark_partitions Array(Int32),
    mark_offsets  Array(Int64),
    mark_indexes  Array(UInt32)
)
ENGINE = ReplacingMergeTree(next_offset)
ORDER BY (sink, generation, log_partition);

-- +goose Down
DROP TABLE ledger;
