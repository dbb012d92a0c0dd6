-- +goose Up
-- What flexible deposits of USD stablecoins earned at the beginning of each day, by segment. A fixing never changes: its
-- corrections, which an operator writes, lie beside it.
CREATE TABLE IF NOT EXISTS earn_fixings
(
    day           Date,
    segment       LowCardinality(String),
    revision      UInt32,
    time          DateTime('UTC'),
    median        Float64,
    tvl_weighted  Nullable(Float64),
    provider_count UInt32,
    tvl_usd       Float64,
    quotes Nested
    (
        provider      LowCardinality(String),
        segment       LowCardinality(String),
        apy           Float64,
        tvl_usd       Float64,
        variants      UInt32
    ),
    methodology_version UInt32,
    supersedes    String,
    reason        String,
    simulated     Bool,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (day, segment, revision);

-- They are no fold's, so no replay makes them anew.
CREATE TABLE IF NOT EXISTS earn_corrections
(
    day           Date,
    segment       LowCardinality(String),
    revision      UInt32,
    time          DateTime('UTC'),
    median        Float64,
    tvl_weighted  Nullable(Float64),
    provider_count UInt32,
    tvl_usd       Float64,
    quotes Nested
    (
        provider      LowCardinality(String),
        segment       LowCardinality(String),
        apy           Float64,
        tvl_usd       Float64,
        variants      UInt32
    ),
    methodology_version UInt32,
    supersedes    String,
    reason        String,
    simulated     Bool,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (day, segment, revision);

-- +goose Down
DROP TABLE earn_corrections;
DROP TABLE earn_fixings;
