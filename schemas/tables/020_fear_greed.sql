-- +goose Up
CREATE TABLE IF NOT EXISTS fear_greed
(
    source         LowCardinality(String),
    day            Date,
    value          UInt8,
    classification LowCardinality(String),
    event_time     DateTime64(9, 'UTC'),
    next_update    DateTime64(9, 'UTC'),
    ingest_time    DateTime64(9, 'UTC'),
    log_partition  Int32,
    log_offset     Int64,
    version        UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (source, day);

-- +goose Down
DROP TABLE fear_greed;
