-- +goose Up
-- The newest row of each rate.
CREATE TABLE IF NOT EXISTS rates_now
(
    coin_id        String,
    category       LowCardinality(String),
    source         LowCardinality(String),
    pool           String,
    time           DateTime('UTC'),
    provider       LowCardinality(String),
    provider_name  LowCardinality(String),
    symbol         LowCardinality(String),
    provider_symbol String,
    chain          LowCardinality(String),
    name           String,
    apr            Float64,
    apy            Float64,
    reward_apy     Nullable(Float64),
    tvl_usd        Nullable(Float64),
    raw            String,
    raw_unit       LowCardinality(String),
    compounding    LowCardinality(String),
    term           LowCardinality(String),
    min_amount     Nullable(Float64),
    max_amount     Nullable(Float64),
    lockup_days    Nullable(Float64),
    notice_days    Nullable(Float64),
    tiers Nested
    (
        from           String,
        to             String,
        raw            String
    ),
    served         Array(LowCardinality(String)),
    refused        Array(LowCardinality(String)),
    promo          Bool,
    payout         LowCardinality(String),
    collateral_usd Nullable(Float64),
    max_ltv        Nullable(Float64),
    tokens         Array(String),
    heard          DateTime64(9, 'UTC'),
    event_time     DateTime64(9, 'UTC'),
    interval_ns    Int64,
    ended          Bool,
    unattached     LowCardinality(String),
    shadowed       LowCardinality(String),
    simulated      Bool,
    raw_offset     Int64,
    log_partition  Int32,
    log_offset     Int64,
    version        UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (source, category, pool);

-- +goose Down
DROP TABLE rates_now;
