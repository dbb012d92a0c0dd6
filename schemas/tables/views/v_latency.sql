CREATE OR REPLACE VIEW default.v_latency
(
    day Date COMMENT 'Day, UTC. A condition on it is fast, one on hour alone reads all days',
    hour DateTime('UTC') COMMENT 'Start of the hour in which they were received, UTC',
    venue LowCardinality(String) COMMENT 'Venue',
    trades UInt64 COMMENT 'Trades that were received in the hour and whose venue says when they happened. History that is sent on subscribing, and after a connection was lost, is left out: it is old when it comes',
    p50_ms Float64 COMMENT 'From when a trade happened, by the clock of the venue, to when it was received, by ours: the median, in milliseconds. It is appended to the log after that, and is in the price of the second that follows',
    p95_ms Float64 COMMENT 'The same: 95 % took no longer',
    p99_ms Float64 COMMENT 'The same: 99 % took no longer',
    max_ms Float64 COMMENT 'The longest',
    ahead UInt64 COMMENT 'Trades that happened after they were received, as far as clocks can be believed: that of the venue, or ours, is wrong. They count with less than 0 ms',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: a minute after the end of the hour by log time. While the hour goes on the row changes, and this lies ahead'
)
AS SELECT day, hour, venue, trades, quantiles[1] AS p50_ms, quantiles[2] AS p95_ms, quantiles[3] AS p99_ms, max_ms, ahead, toDateTime64(hour + 3660, 9, 'UTC') AS published
FROM (
    -- Without FINAL, which takes several times as long: a row that is there twice for some minutes moves no quantile.
    SELECT day, toStartOfHour(ingest_time, 'UTC') AS hour, venue, count() AS trades,
        quantilesTDigest(0.5, 0.95, 0.99)(ms) AS quantiles, max(ms) AS max_ms, countIf(ms < 0) AS ahead
    FROM (SELECT day, venue, ingest_time, dateDiff('microsecond', event_time, ingest_time) / 1000 AS ms FROM {database}.ticks WHERE kind = 'trade' AND NOT snapshot AND event_time != ingest_time)
    GROUP BY day, hour, venue
)
COMMENT 'How long trades took from the venue to us, one row a venue and hour, kept for 7 days, or for as long as the disk budget has room for them'
