CREATE OR REPLACE VIEW {database}.charted_minutes
(
    coin_id LowCardinality(String),
    start DateTime('UTC'),
    open Float64,
    high Float64,
    low Float64,
    close Float64,
    volume Decimal(76, 18),
    volume_usd Float64,
    trades UInt64,
    live UInt8,
    imported UInt8,
    published DateTime64(9, 'UTC')
)
AS SELECT coin_id, start, open, high, low, close, volume, volume_usd, trades, live, imported, published FROM (
    -- This part comes first: so how far the live minutes are closed is read before they are.
    SELECT coin_id, start, open, high, low, close, volume, volume_usd, toUInt64(0) AS trades, toUInt8(0) AS live, toUInt8(imported) AS imported,
        fromUnixTimestamp64Nano(toInt64(since), 'UTC') AS published FROM {database}.past_candles FINAL
    WHERE seconds = 60 AND priced AND start < (SELECT until FROM {database}.live_closed)
    UNION ALL
    SELECT coin_id, start, open, high, low, close, volume, volume_usd, trades, toUInt8(1), toUInt8(0), toDateTime64(start + toIntervalMinute(2), 9, 'UTC') FROM {database}.candles_1m FINAL
)
-- A window, since an aggregate of each column takes the engine several times as long; conditions on its key reach the tables.
QUALIFY row_number() OVER (PARTITION BY coin_id, start ORDER BY live DESC) = 1
COMMENT 'Minutes of coins: live ones, and back-filled ones where there is none and none can come'
