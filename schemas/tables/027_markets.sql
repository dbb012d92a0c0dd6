-- +goose Up
-- The newest row of each coin. The minute that was folded stands for the offset in its version.
CREATE TABLE IF NOT EXISTS markets
(
    coin_id       String,
    symbol        String,
    name          String,
    time          DateTime('UTC'),
    price         Float64,
    price_source  LowCardinality(String),
    price_time    DateTime64(9, 'UTC'),
    market_cap    Nullable(Float64),
    rank          UInt32,
    fully_diluted_valuation Nullable(Float64),
    volume_24h    Nullable(Float64),
    high_24h      Nullable(Float64),
    low_24h       Nullable(Float64),
    price_change_24h Nullable(Float64),
    change_1h     Nullable(Float64),
    change_24h    Nullable(Float64),
    change_7d     Nullable(Float64),
    change_14d    Nullable(Float64),
    change_30d    Nullable(Float64),
    change_60d    Nullable(Float64),
    change_200d   Nullable(Float64),
    change_1y     Nullable(Float64),
    own_changes   Array(LowCardinality(String)),
    market_cap_change_24h     Nullable(Float64),
    market_cap_change_pct_24h Nullable(Float64),
    ath           Nullable(Float64),
    ath_time      DateTime64(9, 'UTC'),
    atl           Nullable(Float64),
    atl_time      DateTime64(9, 'UTC'),
    circulating_supply Nullable(Float64),
    total_supply  Nullable(Float64),
    max_supply    Nullable(Float64),
    supply_source LowCardinality(String),
    supply_time   DateTime64(9, 'UTC'),
    simulated     Bool,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY coin_id;

-- +goose Down
DROP TABLE markets;
