-- +goose Up
-- What sources told afterwards of rates in the past.
CREATE TABLE IF NOT EXISTS rates_past
(
    source         LowCardinality(String),
    pool           String,
    category       LowCardinality(String),
    event_time     DateTime64(9, 'UTC'),
    coin_id        String,
    symbol         LowCardinality(String),
    provider       LowCardinality(String),
    provider_symbol String,
    chain          LowCardinality(String),
    apr            Float64,
    apy            Float64,
    reward_apy     Nullable(Float64),
    tvl_usd        Nullable(Float64),
    raw            String,
    raw_unit       LowCardinality(String),
    compounding    LowCardinality(String),
    ingest_time    DateTime64(9, 'UTC'),
    log_partition  Int32,
    log_offset     Int64,
    version        UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(event_time)
ORDER BY (source, pool, category, event_time);

-- +goose Down
DROP TABLE rates_past;
