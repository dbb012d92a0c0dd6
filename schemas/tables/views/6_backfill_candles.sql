CREATE OR REPLACE VIEW {database}.backfill_candles_{interval}
(
    coin_id LowCardinality(String),
    start DateTime('UTC'),
    open Float64,
    high Float64,
    low Float64,
    close Float64,
    volume Decimal(76, 18),
    volume_usd Float64,
    venues UInt16
)
AS SELECT coin_id, start, m.1 AS open, m.2 AS high, m.3 AS low, m.4 AS close, traded AS volume, toFloat64(traded) * (m.1 + m.2 + m.3 + m.4) / 4 AS volume_usd, n AS venues
FROM (
    SELECT coin_id, start, {median} AS m, sum(sold) AS traded, toUInt16(count()) AS n FROM (
        SELECT coin_id, start, venue, sum(volume) AS sold,
            argMinIf((toFloat64(open) * rate.1, toFloat64(high) * rate.2, toFloat64(low) * rate.3, toFloat64(close) * rate.4), preference, rate.1 > 0) AS ohlc
        FROM {database}.backfill_usd_{interval} WHERE coin_id != '' GROUP BY coin_id, start, venue HAVING countIf(rate.1 > 0) > 0
    ) GROUP BY coin_id, start
)
COMMENT 'Back-filled candles of coins in USD: by field the median over the venues, each with its best market'
