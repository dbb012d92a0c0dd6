-- +goose Up
CREATE TABLE IF NOT EXISTS summaries
(
    time                  DateTime('UTC'),
    total_market_cap      Float64,
    total_volume_24h      Float64,
    btc_dominance         Float64,
    eth_dominance         Float64,
    dominance Nested
    (
        coin_id               LowCardinality(String),
        symbol                LowCardinality(String),
        percent               Float64
    ),
    market_cap_change_24h Nullable(Float64),
    volume_change_24h     Nullable(Float64),
    active_coins          UInt32,
    active_markets        UInt32,
    stablecoin_market_cap Float64,
    stablecoin_dominance  Float64,
    fear_greed            Nullable(UInt8),
    components Nested
    (
        name                  LowCardinality(String),
        value                 Float64
    ),
    simulated             Bool,
    log_partition         Int32,
    log_offset            Int64,
    version               UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(time)
ORDER BY time;

-- +goose Down
DROP TABLE summaries;
