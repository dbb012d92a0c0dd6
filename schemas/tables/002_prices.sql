-- +goose Up
CREATE TABLE IF NOT EXISTS prices
(
    coin_id       LowCardinality(String),
    time          DateTime('UTC'),
    symbol        LowCardinality(String),
    price         Float64,
    median0       Float64,
    min           Float64,
    max           Float64,
    confidence    Float64,
    score         Float64,
    accepted      UInt32,
    rejected      UInt32,
    volume_24h    Float64,
    source        LowCardinality(String),
    reason        LowCardinality(String),
    simulated     Bool,
    inputs Nested
    (
        provider      LowCardinality(String),
        symbol        LowCardinality(String),
        quote_id      LowCardinality(String),
        bid           Float64,
        ask           Float64,
        last          Float64,
        quote_heard   Int64,
        last_heard    Int64,
        event_time    Int64,
        rate          Float64,
        rate_time     Int64,
        rate_offset   Int64,
        range60       Float64,
        volume_24h    Float64,
        partition     Int32,
        offset        Int64,
        unpriced      Bool,
        value         Float64,
        price_usd     Float64,
        accepted      Bool,
        reason        LowCardinality(String),
        deviation_pct Float64,
        basis         LowCardinality(String)
    ),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toStartOfHour(time)
ORDER BY (coin_id, time);

-- +goose Down
DROP TABLE prices;
