CREATE OR REPLACE VIEW default.v_candles_1m
(
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    start DateTime('UTC') COMMENT 'Start of the minute, UTC',
    open Float64 COMMENT 'First published price of the minute, USD',
    high Float64 COMMENT 'Greatest, USD',
    low Float64 COMMENT 'Least, USD',
    close Float64 COMMENT 'Last, USD',
    volume Float64 COMMENT 'Base traded at the accepted venues, rounded to about 16 digits; of a back-filled minute at all of its venues',
    volume_usd Float64 COMMENT 'The same in USD at the rates of the trades; of a back-filled minute at the mean of its open, high, low and close',
    trades UInt64 COMMENT 'Number of those trades; 0 of a back-filled minute, since venues do not tell it',
    origin Enum8('live' = 1, 'backfill' = 2, 'import' = 3) COMMENT 'live: folded from published prices; backfill: by field the median over the venues'' own candles, in USD; import: the same, and all of them of imported files',
    volume_exact String COMMENT 'The volume with all its digits, as text: no type that common clients read holds them',
    symbol LowCardinality(String) COMMENT 'Symbol of the coin, upper case',
    time DateTime('UTC') COMMENT 'The same as start: start of the minute, UTC',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: a minute after its end by log time, by when it is closed; of a back-filled or imported minute when it was folded last, by the clock of the store: when it was first is not kept'
)
AS SELECT coin_id, start, open, high, low, close, toFloat64(c.volume) AS volume, volume_usd, trades, multiIf(live = 1, 'live', c.imported = 1, 'import', 'backfill') AS origin,
    toString(c.volume) AS volume_exact, transform(coin_id, {coin_ids}, {coin_symbols}, '') AS symbol, start AS time, published AS published
FROM {database}.charted_minutes AS c
COMMENT 'Closed minutes of the price of each coin, one row a coin and minute in which it had a price: live ones, and back-filled ones where there is none'
