CREATE OR REPLACE VIEW default.v_candles_1m
(
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    start DateTime('UTC') COMMENT 'Start of the minute, UTC',
    open Float64 COMMENT 'First published price of the minute, USD',
    high Float64 COMMENT 'Greatest, USD',
    low Float64 COMMENT 'Least, USD',
    close Float64 COMMENT 'Last, USD',
    volume Decimal(76, 18) COMMENT 'Base traded at the accepted venues, exact; of a back-filled minute at all of its venues',
    volume_usd Float64 COMMENT 'The same in USD at the rates of the trades; of a back-filled minute at the mean of its open, high, low and close',
    trades UInt64 COMMENT 'Number of those trades; 0 of a back-filled minute, since venues do not tell it',
    origin Enum8('live' = 1, 'backfill' = 2) COMMENT 'live: folded from published prices; backfill: by field the median over the venues'' own candles, in USD'
)
AS SELECT coin_id, start, open, high, low, close, volume, volume_usd, trades, if(live = 1, 'live', 'backfill') AS origin FROM {database}.charted_minutes
COMMENT 'Closed minutes of the price of each coin, one row a coin and minute in which it had a price: live ones, and back-filled ones where there is none'
