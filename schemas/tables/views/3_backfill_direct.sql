CREATE OR REPLACE VIEW {database}.backfill_direct_{interval}
(
    coin_id LowCardinality(String),
    start DateTime('UTC'),
    ohlc Tuple(Float64, Float64, Float64, Float64)
)
AS SELECT coin_id, start, argMax(ohlc, weight) AS ohlc FROM (
    SELECT coin_id, start, (open, high, low, close) AS ohlc, if({whole}, 2, 0) AS weight FROM {database}.{live} WHERE coin_id IN {direct}
    UNION ALL
    SELECT coin_id, start, {median}, 1 FROM (
        SELECT coin_id, start, venue, argMin((toFloat64(open) * fiat, toFloat64(high) * fiat, toFloat64(low) * fiat, toFloat64(close) * fiat), preference) AS ohlc
        FROM {database}.backfill_fiat WHERE seconds = {seconds} AND fiat > 0 AND coin_id IN {direct} GROUP BY coin_id, start, venue
    ) GROUP BY coin_id, start
) GROUP BY coin_id, start
COMMENT 'USD candles that convert what is quoted in a stablecoin: live and whole, else of back-filled markets in currencies, else live'
