-- +goose Up
CREATE TABLE IF NOT EXISTS defi_lists
(
    list                    LowCardinality(String),
    position                UInt32,
    time                    DateTime('UTC'),
    key                     String,
    name                    String,
    symbol                  String,
    coin_id                 String,
    chains                  Array(LowCardinality(String)),
    value                   Float64,
    share                   Nullable(Float64),
    change_24h              Nullable(Float64),
    change_7d               Nullable(Float64),
    apy                     Nullable(Float64),
    borrow_apy              Nullable(Float64),
    utilization             Nullable(Float64),
    collateral              Nullable(Float64),
    collateralization_ratio Nullable(Float64),
    staking_ratio           Nullable(Float64),
    log_partition           Int32,
    log_offset              Int64,
    version                 UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (list, position);

-- +goose Down
DROP TABLE defi_lists;
