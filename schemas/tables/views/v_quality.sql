CREATE OR REPLACE VIEW default.v_quality
(
    day Date COMMENT 'Day, UTC. A condition on it is fast',
    venue LowCardinality(String) COMMENT 'Venue',
    symbol LowCardinality(String) COMMENT 'Symbol of the market as on the wire',
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    prices UInt64 COMMENT 'Seconds in which the published price of the coin changed, or was lost, with this market among what it was made from',
    accepted UInt64 COMMENT 'Of them, seconds in which the market counted',
    silent UInt64 COMMENT 'Seconds in which it did not, since nothing was received from it for longer than its own pace allows: it was stale',
    outlier UInt64 COMMENT 'Seconds in which it did not, since it was more than half away from the first median',
    wide UInt64 COMMENT 'Seconds in which it did not, since its spread was too wide, or one-sided, and its last price too old',
    crossed UInt64 COMMENT 'Seconds in which it did not, since its bid was above its ask, and its last price too old',
    no_rate UInt64 COMMENT 'Seconds in which it did not, since its quote could not be converted to USD',
    other_market UInt64 COMMENT 'Seconds in which it did not, since another market of the venue had its vote: no fault of this one',
    rejected_percent Float64 COMMENT 'Seconds in which it did not count for a fault, percent of those in which it had a vote to lose: all but other_market; 0 if there are none',
    deviation_bps Nullable(Float64) COMMENT 'Median distance of its price from the first median, where it counted, basis points; NULL if it never did',
    bias_bps Nullable(Float64) COMMENT 'Mean of the same with its sign: positive is above the others; NULL if it never counted',
    trades UInt64 COMMENT 'Trades that were received',
    traded_minutes UInt64 COMMENT 'Minutes of the day with one',
    gap_seconds Float64 COMMENT 'Seconds of the day in which messages of the venue or market are known to be missing, gaps added up',
    simulated Bool COMMENT 'Made from simulated ticks',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: a minute after the end of the day by log time. While the day goes on the row changes, and this lies ahead'
)
AS WITH missing AS (
    SELECT venue, symbol, at, sum(greatest(0, dateDiff('millisecond', greatest(g.from_time, toDateTime64(at, 9, 'UTC')), least(g.to_time, toDateTime64(at + 1, 9, 'UTC'))))) / 1000 AS seconds
    FROM (
        SELECT venue, symbol, from_time, to_time, arrayJoin(arrayMap(i -> toDate(from_time) + i, range(least(1000, 1 + dateDiff('day', from_time, to_time))))) AS at
        FROM {database}.gaps FINAL
    ) AS g GROUP BY venue, symbol, at
)
SELECT p.day AS day, p.venue AS venue, p.symbol AS symbol, p.coin_id AS coin_id, p.prices AS prices, p.accepted AS accepted,
    p.silent AS silent, p.outlier AS outlier, p.wide AS wide, p.crossed AS crossed, p.no_rate AS no_rate, p.other_market AS other_market,
    if(prices = other_market, 0, 100 * (prices - other_market - accepted) / (prices - other_market)) AS rejected_percent,
    if(p.accepted = 0, NULL, p.deviation) AS deviation_bps, if(p.accepted = 0, NULL, p.bias) AS bias_bps,
    t.trades AS trades, t.minutes AS traded_minutes, w.seconds + n.seconds AS gap_seconds, p.simulated AS simulated, toDateTime64(toDateTime(p.day + 1, 'UTC') + 60, 9, 'UTC') AS published
FROM (
    SELECT toDate(time) AS day, coin_id, venue, symbol, count() AS prices, countIf(counted) AS accepted,
        countIf(reason = 'silent') AS silent, countIf(reason = 'outlier') AS outlier, countIf(reason = 'wide') AS wide, countIf(reason = 'crossed') AS crossed,
        countIf(reason = 'no_rate') AS no_rate, countIf(reason = 'other_market') AS other_market,
        -- Of whole hundredths of a basis point, so that the same rows give the same bytes in whatever order they are read.
        quantileExactWeightedIf(0.5)(toUInt32(round(abs(deviation_pct) * 10000)), 1, counted) / 100 AS deviation,
        sumIf(toInt64(round(deviation_pct * 10000)), counted) / countIf(counted) / 100 AS bias, max(simulated) AS simulated
    FROM (
        SELECT coin_id, time, simulated, inputs.provider AS venues, inputs.symbol AS symbols, inputs.accepted AS all_counted, inputs.reason AS reasons, inputs.deviation_pct AS deviations
        FROM {database}.prices FINAL
    ) ARRAY JOIN venues AS venue, symbols AS symbol, all_counted AS counted, reasons AS reason, deviations AS deviation_pct
    GROUP BY day, coin_id, venue, symbol
) AS p
LEFT JOIN (SELECT venue, symbol, toDate(start) AS day, sum(trades) AS trades, count() AS minutes FROM {database}.venue_candles_1m FINAL GROUP BY venue, symbol, day) AS t
    ON t.venue = p.venue AND t.symbol = p.symbol AND t.day = p.day
LEFT JOIN missing AS w ON w.venue = p.venue AND w.symbol = '' AND w.at = p.day
LEFT JOIN missing AS n ON n.venue = p.venue AND n.symbol = p.symbol AND n.at = p.day AND n.symbol != ''
COMMENT 'How good each market was as an input of the price of its coin, one row a market and day, kept as long as v_prices: for 7 days, or 1 in the embedded engine, or for as long as the disk budget has room for them'
