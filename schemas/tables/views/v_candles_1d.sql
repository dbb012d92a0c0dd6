CREATE OR REPLACE VIEW default.v_candles_1d
(
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    start DateTime('UTC') COMMENT 'Start of the day, UTC',
    open Float64 COMMENT 'First published price of the day, USD',
    high Float64 COMMENT 'Greatest, USD',
    low Float64 COMMENT 'Least, USD',
    close Float64 COMMENT 'Last, USD',
    volume Decimal(76, 18) COMMENT 'Base traded at the accepted venues, exact',
    volume_usd Float64 COMMENT 'The same in USD at the rates of the trades',
    trades UInt64 COMMENT 'Number of those trades',
    minutes UInt16 COMMENT 'Closed minutes with a price, which this is folded from',
    complete Bool COMMENT 'Whether those are all 1440 minutes; the day under way is never complete'
)
AS SELECT coin_id, start, open, high, low, close, volume, volume_usd, trades, minutes, complete FROM {database}.candles_1d
COMMENT 'Days of the published price of each coin, folded from its closed minutes, one row a coin and day in which it had a price'
