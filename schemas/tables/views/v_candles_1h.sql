CREATE OR REPLACE VIEW default.v_candles_1h
(
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    start DateTime('UTC') COMMENT 'Start of the hour, UTC',
    open Float64 COMMENT 'First price of the hour, USD',
    high Float64 COMMENT 'Greatest, USD',
    low Float64 COMMENT 'Least, USD',
    close Float64 COMMENT 'Last, USD',
    volume Float64 COMMENT 'Base traded at the accepted venues, rounded to about 16 digits; of what is back-filled at all of its venues',
    volume_usd Float64 COMMENT 'The same in USD at the rates of the trades; of what is back-filled at the mean of open, high, low and close',
    trades UInt64 COMMENT 'Number of those trades; venues do not tell it of what is back-filled',
    minutes UInt16 COMMENT 'Closed minutes with a price, which this is folded from; all of them where it is the venues'' own candle',
    complete Bool COMMENT 'Whether those are all 60 minutes; the hour under way is never complete',
    origin Enum8('live' = 1, 'backfill' = 2, 'mixed' = 3, 'import' = 4) COMMENT 'live: folded from published prices; backfill: from the venues'' own candles; mixed: from live and back-filled minutes; import: as backfill, and all of it of imported files',
    volume_exact String COMMENT 'The volume with all its digits, as text: no type that common clients read holds them',
    symbol LowCardinality(String) COMMENT 'Symbol of the coin, upper case',
    time DateTime('UTC') COMMENT 'The same as start: start of the hour, UTC',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: a minute after the end of the hour by log time, and when back-filled or imported candles in it were folded last, by the clock of the store. While the hour goes on the row changes each minute, and this lies ahead'
)
AS SELECT coin_id, start, open, high, low, close, toFloat64(c.volume) AS volume, volume_usd, trades, minutes, toBool(minutes = 60) AS complete,
    multiIf(live = minutes, 'live', live > 0, 'mixed', c.imported = minutes, 'import', 'backfill') AS origin,
    toString(c.volume) AS volume_exact, transform(coin_id, {coin_ids}, {coin_symbols}, '') AS symbol, start AS time, published AS published
FROM {database}.charted_1h AS c
COMMENT 'Hours of the price of each coin, one row a coin and hour in which it had a price: folded from its live minutes, where these are not all also from back-filled ones, and if they are not all even then, the venues'' own candles'
