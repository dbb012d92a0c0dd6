CREATE OR REPLACE VIEW default.v_backfill
(
    producer LowCardinality(String) COMMENT 'Who reported it: the venue, its simulator, or import',
    venue LowCardinality(String) COMMENT 'Venue',
    symbol LowCardinality(String) COMMENT 'Symbol of the market as on the wire',
    seconds UInt32 COMMENT 'Length of the candle in seconds: 60, 3600 or 86400',
    start DateTime('UTC') COMMENT 'Start of the candle, UTC',
    base LowCardinality(String) COMMENT 'Base asset as the venue names it',
    quote LowCardinality(String) COMMENT 'Quote asset as the venue names it; prices are in it',
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin; empty if the base is unmapped',
    quote_id LowCardinality(String) COMMENT 'Coin id or currency code of the quote; empty if it is unmapped',
    open Decimal(38, 18) COMMENT 'Price of the first trade, in the quote',
    high Decimal(38, 18) COMMENT 'Greatest price, in the quote',
    low Decimal(38, 18) COMMENT 'Least price, in the quote',
    close Decimal(38, 18) COMMENT 'Price of the last trade, in the quote',
    volume Float64 COMMENT 'Base traded, as the venue says, rounded to about 16 digits; 0 also where it says nothing',
    rate Float64 COMMENT 'USD for one unit of the quote at the open; 0 if it is not known',
    reason LowCardinality(String) COMMENT 'Why no candle of a coin is made of it: unmapped, no_rate, waits (it was just read, or live minutes of its time may still come), or empty if it can be',
    ingest_time DateTime64(9, 'UTC') COMMENT 'When it was read from the venue, or its file imported',
    volume_exact String COMMENT 'The volume with all its digits, as text: no type that common clients read holds them',
    file LowCardinality(String) COMMENT 'SHA-256 of the imported file that it is of, see v_imports; empty if it was read from the venue',
    line UInt64 COMMENT 'Its line in that file',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read last, as ingest_time; what a later answer replaced is not kept, nor when it was read first'
)
AS SELECT b.producer, b.venue, b.symbol, b.seconds, b.start, b.base, b.quote, b.coin_id, b.quote_id, b.open, b.high, b.low, b.close, toFloat64(b.volume) AS volume,
    if(has(c.quotes, b.quote_id), c.rates[indexOf(c.quotes, b.quote_id)], 0) AS rate,
    multiIf(b.coin_id = '' OR b.quote_id = '', 'unmapped', rate > 0, '', NOT has(c.quotes, b.quote_id), 'waits', 'no_rate') AS reason, b.ingest_time AS ingest_time, toString(b.volume) AS volume_exact, b.file AS file, b.line AS line, ingest_time AS published
FROM {database}.backfill AS b FINAL
LEFT JOIN {database}.past_candles AS c FINAL ON c.coin_id = b.coin_id AND c.seconds = b.seconds AND c.start = b.start
WHERE NOT b.withdrawn
COMMENT 'The venues'' own candles of the past, as `marketlog backfill` has read and `marketlog import` imported them, kept for ever'
