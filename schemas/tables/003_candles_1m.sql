-- +goose Up
CREATE TABLE IF NOT EXISTS candles_1m
(
    coin_id       LowCardinality(String),
    start         DateTime('UTC'),
    open          Float64,
    high          Float64,
    low           Float64,
    close         Float64,
    volume        Decimal(76, 18),
    volume_usd    Float64,
    trades        UInt64,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(start)
ORDER BY (coin_id, start);

-- +goose Down
DROP TABLE candles_1m;
