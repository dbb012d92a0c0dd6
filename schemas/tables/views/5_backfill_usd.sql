CREATE OR REPLACE VIEW {database}.backfill_usd_{interval}
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
    preference Tuple(UInt8, String, String, String),
    rate Tuple(Float64, Float64, Float64, Float64)
)
AS SELECT b.producer, b.venue, b.symbol, b.seconds, b.start, b.base, b.quote, b.coin_id, b.quote_id, b.open, b.high, b.low, b.close, b.volume, b.ingest_time,
    b.preference, if(b.fiat > 0, (b.fiat, b.fiat, b.fiat, b.fiat), r.ohlc) AS rate
FROM {database}.backfill_fiat AS b
LEFT JOIN {database}.backfill_quotes_{interval} AS r ON r.coin_id = b.quote_id AND r.start = b.start
WHERE b.seconds = {seconds}
COMMENT 'Back-filled candles with what their quote was worth in USD at open, high, low and close; 0 if that is not known'
