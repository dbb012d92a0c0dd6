-- +goose Up
-- The newest row of each variant of an earn product. The minute that was folded stands for the offset in its version.
CREATE TABLE IF NOT EXISTS earn_products
(
    product_id     String,
    variant_id     String,
    time           DateTime('UTC'),
    provider       LowCardinality(String),
    provider_name  LowCardinality(String),
    segment        LowCardinality(String),
    coin_id        LowCardinality(String),
    symbol         LowCardinality(String),
    category       LowCardinality(String),
    source         LowCardinality(String),
    pool           String,
    provider_symbol String,
    chain          LowCardinality(String),
    name           String,
    term           LowCardinality(String),
    status         LowCardinality(String),
    apr            Float64,
    apy            Float64,
    reward_apy     Nullable(Float64),
    base_apy       Float64,
    max_apy        Float64,
    compounding    LowCardinality(String),
    tiers Nested
    (
        from           String,
        to             String,
        apr            Float64,
        apy            Float64
    ),
    tvl_usd        Nullable(Float64),
    min_amount     String,
    max_amount     String,
    lockup_days    Nullable(Float64),
    notice_days    Nullable(Float64),
    payout         LowCardinality(String),
    promo          Bool,
    served         Array(LowCardinality(String)),
    refused        Array(LowCardinality(String)),
    confidence     Float64,
    collection     LowCardinality(String),
    simulated      Bool,
    interval_ns    Int64,
    heard          DateTime64(9, 'UTC'),
    log_partition  Int32,
    log_offset     Int64,
    version        UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (product_id, variant_id);

-- +goose Down
DROP TABLE earn_products;
