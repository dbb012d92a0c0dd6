-- +goose Up
CREATE TABLE IF NOT EXISTS ticks
(
    coin_id       LowCardinality(String),
    venue         LowCardinality(String),
    symbol        LowCardinality(String),
    kind          Enum8('trade' = 1, 'quote' = 2, 'ticker' = 3),
    day           Date,
    event_time    DateTime64(9, 'UTC'),
    event_id      FixedString(16),
    ingest_time   DateTime64(9, 'UTC'),
    base          LowCardinality(String),
    quote         LowCardinality(String),
    quote_id      LowCardinality(String),
    price         Nullable(Decimal(38, 18)),
    size          Nullable(Decimal(38, 18)),
    side          Enum8('' = 0, 'buy' = 1, 'sell' = 2),
    trade_id      String,
    bid           Nullable(Decimal(38, 18)),
    ask           Nullable(Decimal(38, 18)),
    last          Nullable(Decimal(38, 18)),
    volume_base   Nullable(Decimal(38, 18)),
    volume_quote  Nullable(Decimal(38, 18)),
    rate          Float64,
    rate_time     DateTime64(9, 'UTC'),
    rate_offset   Int64,
    flags         UInt32,
    snapshot      Bool,
    simulated     Bool,
    raw_partition Int32,
    raw_offset    Int64,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY (day, toStartOfHour(ingest_time))
ORDER BY (coin_id, venue, symbol, kind, day, event_time, event_id);

-- +goose Down
DROP TABLE ticks;
