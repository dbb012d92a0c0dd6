CREATE OR REPLACE VIEW {database}.backfill_quotes_{interval}
(
    coin_id LowCardinality(String),
    start DateTime('UTC'),
    ohlc Tuple(Float64, Float64, Float64, Float64)
)
AS SELECT coin_id, start, argMax(ohlc, weight) AS ohlc FROM (
    SELECT coin_id, start, (open, high, low, close) AS ohlc, if({whole}, 2, 0) AS weight FROM {database}.{live} WHERE coin_id IN {direct} OR coin_id IN {cross}
    UNION ALL
    SELECT coin_id, start, {median}, 1 FROM (
        SELECT coin_id, start, venue, argMin((toFloat64(open) * rate.1, toFloat64(high) * rate.2, toFloat64(low) * rate.3, toFloat64(close) * rate.4), preference) AS ohlc
        FROM (
            SELECT b.coin_id AS coin_id, b.start AS start, b.venue AS venue, b.open AS open, b.high AS high, b.low AS low, b.close AS close,
                b.preference AS preference, if(b.fiat > 0, (b.fiat, b.fiat, b.fiat, b.fiat), r.ohlc) AS rate
            FROM {database}.backfill_fiat AS b
            -- A stablecoin is not converted by another: the two would hang on each other.
            LEFT JOIN {database}.backfill_direct_{interval} AS r ON r.coin_id = b.quote_id AND r.start = b.start AND b.coin_id IN {cross}
            WHERE b.seconds = {seconds} AND (b.coin_id IN {direct} OR b.coin_id IN {cross})
        ) WHERE rate.1 > 0 GROUP BY coin_id, start, venue
    ) GROUP BY coin_id, start
) GROUP BY coin_id, start
COMMENT 'USD candles that convert what is quoted in a coin: those of stablecoins, and those of coins from markets in currencies and stablecoins'
