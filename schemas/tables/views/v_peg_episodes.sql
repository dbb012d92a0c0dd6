CREATE OR REPLACE VIEW default.v_peg_episodes
(
    coin_id String COMMENT 'Canonical id of the stablecoin',
    peg String COMMENT 'Currency that it aims at one unit of',
    start DateTime('UTC') COMMENT 'End of the first minute that closed 50 basis points or more from the peg',
    trough DateTime('UTC') COMMENT 'End of the minute that closed furthest from it, the first of equals',
    trough_bps Float64 COMMENT 'How far that was, basis points; negative below the peg',
    recovery Nullable(DateTime('UTC')) COMMENT 'End of the first minute after it that closed less than 25 basis points away; NULL while there is none',
    minutes UInt64 COMMENT 'Closed minutes with a price between start and recovery',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: a minute after its recovery, or after its newest minute, by log time; that it had begun was known a minute after start'
)
AS SELECT coin_id, any(peg) AS peg, minIf(time, lost) AS start, argMinIf(time, (-abs(deviation_bps), time), lost) AS trough,
    argMinIf(deviation_bps, (-abs(deviation_bps), time), lost) AS trough_bps, minOrNullIf(time, NOT lost) AS recovery, countIf(lost) AS minutes,
    toDateTime64(ifNull(recovery, max(time)) + toIntervalMinute(1), 9, 'UTC') AS published
FROM (
    SELECT *, sum(lost AND NOT lost_before) OVER (PARTITION BY coin_id ORDER BY time ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS episode
    FROM (
        SELECT *, lagInFrame(lost) OVER (PARTITION BY coin_id ORDER BY time ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS lost_before
        FROM (
            -- The last minute that was beyond either bound decides.
            SELECT *, ifNull(anyLast(multiIf(abs(deviation_bps) >= 50, true, abs(deviation_bps) < 25, false, NULL))
                OVER (PARTITION BY coin_id ORDER BY time ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), false) AS lost
            FROM {database}.peg_minutes(before = 9223372036854775807)
        )
    )
)
WHERE episode > 0
GROUP BY coin_id, episode
COMMENT 'Times in which a stablecoin had lost its peg, from live minutes, kept for ever'
