-- +goose Up
CREATE TABLE IF NOT EXISTS defi
(
    time                        DateTime('UTC'),
    read_time                   DateTime64(9, 'UTC'),
    total_tvl                   Float64,
    total_tvl_with_double_count Float64,
    lending_tvl                 Float64,
    staking_tvl                 Float64,
    borrowing_tvl               Float64,
    cefi_tvl                    Float64,
    defi_market_cap             Nullable(Float64),
    defi_market_dominance       Nullable(Float64),
    defi_to_cefi_ratio          Nullable(Float64),
    protocols                   UInt32,
    lending_apy                 Nullable(Float64),
    lending_apy_average         Nullable(Float64),
    lending_apy_median          Nullable(Float64),
    lending_rates               UInt32,
    staking_apy                 Nullable(Float64),
    staking_apy_average         Nullable(Float64),
    staking_apy_median          Nullable(Float64),
    staking_rates               UInt32,
    borrow_apy                  Nullable(Float64),
    borrow_apy_average          Nullable(Float64),
    borrow_apy_median           Nullable(Float64),
    borrowing_rates             UInt32,
    lending_borrowed            Float64,
    lending_utilization         Nullable(Float64),
    lending_protocols           UInt32,
    staked                      Float64,
    liquid_staking_dominance    Nullable(Float64),
    staking_protocols           UInt32,
    collateral                  Float64,
    collateralization_ratio     Nullable(Float64),
    borrowing_utilization       Nullable(Float64),
    borrowing_protocols         UInt32,
    simulated                   Bool,
    log_partition               Int32,
    log_offset                  Int64,
    version                     UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(time)
ORDER BY time;

-- +goose Down
DROP TABLE defi;
