-- +goose Up
-- What each source says of a coin now, in the parts that its feeds tell. coin_id is which coin that is by our tables;
-- empty where they cannot tell.
CREATE TABLE IF NOT EXISTS coins
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
ORDER BY (source, source_id, part);

-- +goose Down
DROP TABLE coins;
