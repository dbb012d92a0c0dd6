-- +goose Up
CREATE TABLE IF NOT EXISTS venue_candles_1m
(
    venue         LowCardinality(String),
    symbol        LowCardinality(String),
    start         DateTime('UTC'),
    coin_id       LowCardinality(String),
    quote_id      LowCardinality(String),
    open          Decimal(38, 18),
    high          Decimal(38, 18),
    low           Decimal(38, 18),
    close         Decimal(38, 18),
    volume        Decimal(76, 18),
    trades        UInt64,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(start)
ORDER BY (venue, symbol, start);

-- +goose Down
DROP TABLE venue_candles_1m;
