-- +goose Up
-- coin_id and quote_id are what base and quote are by the coin table; empty if it has neither. A market has
-- one candle of an interval, whoever told it last: two would count its volume twice.
-- By year: a back-fill of ten years at once would touch more months than an insert may.
CREATE TABLE IF NOT EXISTS backfill
(
    coin_id       LowCardinality(String),
    quote_id      LowCardinality(String),
    producer      LowCardinality(String),
    venue         LowCardinality(String),
    symbol        LowCardinality(String),
    seconds       UInt32,
    start         DateTime('UTC'),
    base          LowCardinality(String),
    quote         LowCardinality(String),
    open          Decimal(38, 18),
    high          Decimal(38, 18),
    low           Decimal(38, 18),
    close         Decimal(38, 18),
    volume        Decimal(76, 18),
    ingest_time   DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(start)
ORDER BY (coin_id, seconds, start, venue, symbol);

-- +goose Down
DROP TABLE backfill;
