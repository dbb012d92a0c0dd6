-- +goose Up
-- What each rate did in an hour, and in a day, by the answers that were read in it.
CREATE TABLE IF NOT EXISTS rates_1h
(
    coin_id        String,
    category       LowCardinality(String),
    source         LowCardinality(String),
    pool           String,
    start          DateTime('UTC'),
    provider       LowCardinality(String),
    symbol         LowCardinality(String),
    provider_symbol String,
    chain          LowCardinality(String),
    open           Float64,
    high           Float64,
    low            Float64,
    close          Float64,
    mean           Float64,
    n              UInt32,
    tvl_usd        Nullable(Float64),
    simulated      Bool,
    shadowed       LowCardinality(String),
    log_partition  Int32,
    log_offset     Int64,
    version        UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(start)
ORDER BY (coin_id, category, source, pool, start);

CREATE TABLE IF NOT EXISTS rates_1d
(
    coin_id        String,
    category       LowCardinality(String),
    source         LowCardinality(String),
    pool           String,
    start          DateTime('UTC'),
    provider       LowCardinality(String),
    symbol         LowCardinality(String),
    provider_symbol String,
    chain          LowCardinality(String),
    open           Float64,
    high           Float64,
    low            Float64,
    close          Float64,
    mean           Float64,
    n              UInt32,
    tvl_usd        Nullable(Float64),
    simulated      Bool,
    shadowed       LowCardinality(String),
    log_partition  Int32,
    log_offset     Int64,
    version        UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(start)
ORDER BY (coin_id, category, source, pool, start);

-- +goose Down
DROP TABLE rates_1d;
DROP TABLE rates_1h;
