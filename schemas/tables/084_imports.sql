-- +goose Up
-- Which file a candle of the past is of: file is its SHA-256 in hexadecimal, empty for what was read from the venue. A candle that
-- is withdrawn is none: a later file of the same name no longer has it.
ALTER TABLE backfill
    ADD COLUMN IF NOT EXISTS file LowCardinality(String) DEFAULT '' AFTER ingest_time,
    ADD COLUMN IF NOT EXISTS line UInt64 DEFAULT 0 AFTER file,
    ADD COLUMN IF NOT EXISTS withdrawn Bool DEFAULT false AFTER line;

-- Whether all of the markets' candles that it is made of are of files.
ALTER TABLE past_candles ADD COLUMN IF NOT EXISTS imported Bool DEFAULT false AFTER priced;

-- The markets of imported files, each written behind the last of its candles. A file is whole if it has as many rows as markets says.
CREATE TABLE IF NOT EXISTS imports
(
    file          String,
    name          String,
    size          UInt64,
    format        LowCardinality(String),
    venue         LowCardinality(String),
    symbol        LowCardinality(String),
    base          LowCardinality(String),
    quote         LowCardinality(String),
    coin_id       LowCardinality(String),
    seconds       UInt32,
    rows          UInt64,
    first_start   DateTime('UTC'),
    last_start    DateTime('UTC'),
    markets       UInt32,
    bad_rows      UInt64,
    replaces      String,
    withdrawn     UInt64,
    import_time   DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (file, venue, symbol, seconds);

-- +goose Down
DROP TABLE imports;
ALTER TABLE past_candles DROP COLUMN imported;
ALTER TABLE backfill
    DROP COLUMN file,
    DROP COLUMN line,
    DROP COLUMN withdrawn;
