CREATE OR REPLACE VIEW {database}.backfill_fiat
(
    producer LowCardinality(String),
    venue LowCardinality(String),
    symbol LowCardinality(String),
    seconds UInt32,
    start DateTime('UTC'),
    base LowCardinality(String),
    quote LowCardinality(String),
    coin_id LowCardinality(String),
    quote_id LowCardinality(String),
    open Decimal(38, 18),
    high Decimal(38, 18),
    low Decimal(38, 18),
    close Decimal(38, 18),
    volume Decimal(76, 18),
    ingest_time DateTime64(9, 'UTC'),
    fiat Float64,
    preference Tuple(UInt8, String, String, String)
)
AS SELECT b.producer, b.venue, b.symbol, b.seconds, b.start, b.base, b.quote, b.coin_id, b.quote_id, b.open, b.high, b.low, b.close, b.volume, b.ingest_time,
    multiIf(b.quote_id = 'USD', 1, b.quote_id = '', 0, toDate(b.start) - f.day <= 6, f.usd, 0) AS fiat,
    (if(indexOf({quotes}, b.quote_id) = 0, 255, indexOf({quotes}, b.quote_id)), lower(b.quote_id), b.quote_id, b.symbol) AS preference
FROM {database}.backfill AS b FINAL
ASOF LEFT JOIN {database}.fixings_usd AS f ON f.currency = b.quote_id AND toDate(b.start) >= f.day
COMMENT 'Back-filled candles with the USD rate of a currency they are quoted in, 0 if there is none, and their place among the markets of a venue'
