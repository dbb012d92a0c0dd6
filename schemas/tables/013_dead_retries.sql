-- +goose Up
CREATE TABLE IF NOT EXISTS dead_retries
(
    topic           LowCardinality(String),
    letter_offset   Int64,
    retried_at      DateTime64(9, 'UTC'),
    ticks           UInt32,
    adapter_version UInt32,
    version         UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (topic, letter_offset);

-- +goose Down
DROP TABLE dead_retries;
