-- +goose Up
-- All that sources ever said of coins: the same columns as coins, one row for each time that they said it.
CREATE TABLE IF NOT EXISTS coin_events
(
    source        LowCardinality(String),
    source_id     String,
    part          LowCardinality(String),
    coin_id       String,
    symbol        String,
    name          String,
    rank          UInt32,
    kind          LowCardinality(String),
    categories    Array(LowCardinality(String)),
    platforms Nested
    (
        name          LowCardinality(String),
        address       String
    ),
    description   String,
    image_url     String,
    links Nested
    (
        kind          LowCardinality(String),
        url           String
    ),
    developer Nested
    (
        name          LowCardinality(String),
        value         Float64
    ),
    created_at    String,
    inactive      Bool,
    event_time    DateTime64(9, 'UTC'),
    ingest_time   DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(ingest_time)
ORDER BY (source, source_id, part, ingest_time);

-- +goose Down
DROP TABLE coin_events;
