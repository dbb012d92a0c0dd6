CREATE OR REPLACE VIEW default.v_imports
(
    file String COMMENT 'SHA-256 of the file, in hexadecimal',
    name String COMMENT 'Name of the file, without its folder',
    size UInt64 COMMENT 'Length of the file in bytes',
    format LowCardinality(String) COMMENT 'Format that it was read as: binance-klines or candles',
    venue LowCardinality(String) COMMENT 'Venue',
    symbol LowCardinality(String) COMMENT 'Symbol of the market as on the wire',
    base LowCardinality(String) COMMENT 'Base asset as the venue names it',
    quote LowCardinality(String) COMMENT 'Quote asset as the venue names it',
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    seconds UInt32 COMMENT 'Length of the candles in seconds: 60, 3600 or 86400',
    rows UInt64 COMMENT 'Candles of this market in the file',
    first_start DateTime('UTC') COMMENT 'Start of the first of them, UTC',
    last_start DateTime('UTC') COMMENT 'Start of the last, UTC',
    bad_rows UInt64 COMMENT 'Lines of the whole file that could not be read; they are in v_dead_letters with source import',
    whole Bool COMMENT 'Whether all markets of the file were imported; until then the same command goes on with it',
    replaces String COMMENT 'SHA-256 of the file of the same name whose candles these replace; empty if there was none',
    withdrawn UInt64 COMMENT 'Candles of that file within this time which this one no longer has',
    import_time DateTime64(9, 'UTC') COMMENT 'When it was imported',
    log_partition Int32 COMMENT 'Where its record lies in backfill.raw.v1',
    log_offset Int64 COMMENT 'Offset there',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read, as import_time'
)
AS SELECT file, name, size, format, venue, symbol, base, quote, coin_id, seconds, rows, first_start, last_start, bad_rows,
    toBool(count() OVER (PARTITION BY file) >= max(markets) OVER (PARTITION BY file)) AS whole, replaces, withdrawn, import_time, log_partition, log_offset, import_time AS published
FROM {database}.imports FINAL
COMMENT 'The markets of files that `marketlog import` has imported, one row a file, market and length of candles'
