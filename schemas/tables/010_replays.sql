-- +goose Up
-- The journal of replays: a row for each (log_partition -1) and one for each partition it has begun.
CREATE TABLE IF NOT EXISTS replays
(
    generation    UInt32,
    log_partition Int32,
    revision      UInt64,
    state         LowCardinality(String),
    record        String,
    written       DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(revision)
ORDER BY (generation, log_partition);

-- +goose Down
DROP TABLE replays;
