-- +goose Up
-- Since when, by the server's clock in Unix nanoseconds, a back-filled candle is what it is: a later fold that gives the same values leaves it.
ALTER TABLE past_candles ADD COLUMN IF NOT EXISTS since UInt64 DEFAULT toUInt64(bitShiftRight(version, 64)) AFTER rates;
-- When the rows of the fold had been inserted, by the same clock.
ALTER TABLE past_folds ADD COLUMN IF NOT EXISTS inserted UInt64 DEFAULT toUInt64(bitShiftRight(version, 64)) AFTER waits;

-- What back-filled candles were from since until before until, before a fold gave others. Of coin_id '*' it states that before until it is not
-- known what they were: from the migration to this version on, and wherever rows were lost.
CREATE TABLE IF NOT EXISTS past_candles_before
(
    coin_id    LowCardinality(String),
    seconds    UInt32,
    start      DateTime('UTC'),
    open       Float64,
    high       Float64,
    low        Float64,
    close      Float64,
    volume     Decimal(76, 18),
    volume_usd Float64,
    priced     Bool,
    imported   Bool,
    since      UInt64,
    until      UInt64
)
ENGINE = ReplacingMergeTree(until)
ORDER BY (coin_id, seconds, start, since);

INSERT INTO past_candles_before (coin_id, until) SELECT '*', toUInt64(toUnixTimestamp64Nano(now64(9)));

-- Up to when each process saw live minutes closed in each partition of candles.v1, and back-filled candles folded, by the store's clock, from an
-- instant on. Where there never was a live minute closed is empty.
CREATE TABLE IF NOT EXISTS served_candles
(
    time          DateTime64(9, 'UTC'),
    replica       LowCardinality(String),
    closed        Array(DateTime('UTC')),
    folded        Int64,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(time)
ORDER BY (time, replica);

-- +goose Down
DROP TABLE served_candles;
DROP TABLE past_candles_before;
ALTER TABLE past_folds DROP COLUMN inserted;
ALTER TABLE past_candles DROP COLUMN since;
