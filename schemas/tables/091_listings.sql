-- +goose Up
-- Markets of venues' own lists: a row each time that one was new, differed, was gone, or was written again unchanged. coin_id and quote_id are
-- what base and quote are by the coin table; empty if it has neither.
CREATE TABLE IF NOT EXISTS listings
(
    venue         LowCardinality(String),
    symbol        String,
    ingest_time   DateTime64(9, 'UTC'),
    base          LowCardinality(String),
    quote         LowCardinality(String),
    coin_id       LowCardinality(String),
    quote_id      LowCardinality(String),
    gone          Bool,
    first_seen    DateTime64(9, 'UTC'),
    simulated     Bool,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (venue, symbol, ingest_time);

-- +goose Down
DROP TABLE listings;
