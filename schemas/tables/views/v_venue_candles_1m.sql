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
    volume Decimal(76, 18) COMMENT 'Base traded, exact',
    trades UInt64 COMMENT 'Number of trades'
)
AS SELECT venue, symbol, start, coin_id, quote_id, open, high, low, close, volume, trades FROM {database}.venue_candles_1m FINAL
COMMENT 'Closed minutes of each venue''s own trades, in the quote of the market, kept for at least 90 days'
