CREATE OR REPLACE VIEW default.v_candles_1m
(
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    start DateTime('UTC') COMMENT 'Start of the minute, UTC',
    open Float64 COMMENT 'First published price of the minute, USD',
    high Float64 COMMENT 'Greatest, USD',
    low Float64 COMMENT 'Least, USD',
    close Float64 COMMENT 'Last, USD',
    volume Decimal(76, 18) COMMENT 'Base traded at the accepted venues, exact',
    volume_usd Float64 COMMENT 'The same in USD at the rates of the trades',
    trades UInt64 COMMENT 'Number of those trades'
)
AS SELECT coin_id, start, open, high, low, close, volume, volume_usd, trades FROM {database}.candles_1m FINAL
COMMENT 'Closed minutes of the published price of each coin, one row a coin and minute in which it had a price'
