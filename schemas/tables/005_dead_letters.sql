-- +goose Up
CREATE TABLE IF NOT EXISTS dead_letters
(
    topic           LowCardinality(String),
    log_offset      Int64,
    event_id        String,
    source          LowCardinality(String),
    reason          LowCardinality(String),
    detail          String,
    adapter_version UInt32,
    ingest_time     DateTime64(9, 'UTC'),
    payload         String,
    truncated       Bool,
    origin_topic    LowCardinality(String),
    origin_partition Int32,
    origin_offset   Int64,
    version         UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(ingest_time)
ORDER BY (topic, log_offset, ingest_time);

-- +goose Down
DROP TABLE dead_letters;
