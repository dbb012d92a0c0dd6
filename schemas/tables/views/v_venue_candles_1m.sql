CREATE OR REPLACE VIEW default.v_venue_candles_1m
(
    venue LowCardinality(String) COMMENT 'Venue',
    symbol LowCardinality(String) COMMENT 'Symbol of the market as on the wire',
    start DateTime('UTC') COMMENT 'Start of the minute, UTC, by event time',
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    quote_id LowCardinality(String) COMMENT 'Coin id or currency code of the quote; prices are in it',
    open Decimal(38, 18) COMMENT 'Price of the first trade, in the quote',
    high Decimal(38, 18) COMMENT 'Greatest price, in the quote',
    low Decimal(38, 18) COMMENT 'Least price, in the quote',
    close Decimal(38, 18) COMMENT 'Price of the last trade, in the quote',
    volume Float64 COMMENT 'Base traded, rounded to about 16 digits',
    trades UInt64 COMMENT 'Number of trades',
    volume_exact String COMMENT 'The volume with all its digits, as text: no type that common clients read holds them',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: a minute after its end by log time, by when it is closed'
)
AS SELECT venue, symbol, start, coin_id, quote_id, open, high, low, close, toFloat64(c.volume) AS volume, trades, toString(c.volume) AS volume_exact,
    toDateTime64(start + toIntervalMinute(1) + toIntervalMinute(1), 9, 'UTC') AS published FROM {database}.venue_candles_1m AS c FINAL
COMMENT 'Closed minutes of each venue''s own trades, in the quote of the market, kept for at least 90 days'
