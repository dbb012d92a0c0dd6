-- +goose Up
-- Every statement of a rate of a currency, also those of a day that another statement has replaced in fixings and fiat_rates: so what had been
-- stated by an instant is known later. Of the time before this version it has what those tables had.
CREATE TABLE IF NOT EXISTS fixings_told
(
    source        LowCardinality(String),
    base          LowCardinality(String),
    quote         LowCardinality(String),
    day           Date,
    event_time    DateTime64(9, 'UTC'),
    rate          Decimal(38, 18),
    ingest_time   DateTime64(9, 'UTC'),
    providers     Array(LowCardinality(String)),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (base, quote, day, source, event_time, log_offset);

INSERT INTO fixings_told (source, base, quote, day, event_time, rate, ingest_time, providers, log_partition, log_offset, version)
SELECT source, base, quote, day, event_time, rate, ingest_time, providers, log_partition, log_offset, version FROM fiat_rates FINAL;

-- The offset in reference.raw.v1 before which the tables had all rates of currencies that histories of pegs were made of; 0 where that was not recorded.
ALTER TABLE served_candles ADD COLUMN IF NOT EXISTS fixings Int64 AFTER folded;

-- +goose Down
ALTER TABLE served_candles DROP COLUMN fixings;
DROP TABLE fixings_told;
