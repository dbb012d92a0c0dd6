-- +goose Up
-- The last price of each minute with its inputs: kept as long as minute candles, so that a price of
-- long ago can still be explained.
CREATE TABLE IF NOT EXISTS prices_1m
(
    coin_id       LowCardinality(String),
    minute        DateTime('UTC'),
    record        String,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(minute)
ORDER BY (coin_id, minute);

-- +goose Down
DROP TABLE prices_1m;
