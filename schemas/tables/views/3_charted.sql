CREATE OR REPLACE VIEW {database}.charted_{interval}
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
    minutes UInt16,
    live UInt16,
    imported UInt16,
    published DateTime64(9, 'UTC')
)
AS SELECT coin_id, start, open, high, low, close, volume, volume_usd, trades, minutes, live, imported, published FROM (
    -- This part comes first: so how far the live minutes are closed is read before they are.
    SELECT coin_id, start, open, high, low, close, volume, volume_usd, toUInt64(0) AS trades, toUInt16({seconds} / 60) AS minutes, toUInt16(0) AS live, toUInt16(if(imported, {seconds} / 60, 0)) AS imported, 2 AS weight,
        fromUnixTimestamp64Nano(toInt64(since), 'UTC') AS published
    FROM {database}.past_candles FINAL WHERE seconds = {seconds} AND priced AND start + {seconds} <= (SELECT until FROM {database}.live_closed)
    UNION ALL
    SELECT m.coin_id AS coin_id, {floor}(m.start, 'UTC') AS start, argMin(m.open, m.start), max(m.high), min(m.low), argMax(m.close, m.start), sum(m.volume),
        -- A sum of floats depends on its order; one of decimals does not.
        toFloat64(sum(toDecimal256(m.volume_usd, 18))), sum(m.trades), toUInt16(count()), toUInt16(sum(m.live)), toUInt16(sum(m.imported)),
        if(count() < {seconds} / 60, 0, if(sum(m.live) > 0, 3, 1)),
        greatest(max(m.published), toDateTime64({floor}(any(m.start), 'UTC') + {seconds} + 60, 9, 'UTC'))
    FROM {database}.charted_minutes AS m GROUP BY m.coin_id, {floor}(m.start, 'UTC')
)
QUALIFY row_number() OVER (PARTITION BY coin_id, start ORDER BY weight DESC) = 1
COMMENT 'Whole minutes folded if some are live, else the back-filled candle, else the minutes that there are'
