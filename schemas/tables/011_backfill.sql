-- +goose Up
-- By year: a back-fill of ten years at once would touch more months than an insert may.
CREATE TABLE IF NOT EXISTS backfill
(
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
ORDER BY (venue, symbol, seconds, start, producer);

-- +goose Down
DROP TABLE backfill;
