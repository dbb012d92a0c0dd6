CREATE OR REPLACE VIEW default.v_coverage
(
    day Date COMMENT 'Day, UTC. A condition on it is fast, one on hour alone reads all days',
    hour DateTime('UTC') COMMENT 'Start of the hour, UTC',
    venue LowCardinality(String) COMMENT 'Venue',
    symbol LowCardinality(String) COMMENT 'Symbol of the market as on the wire',
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin',
    expected_minutes UInt8 COMMENT 'Minutes of the hour that have closed for any market: 60, or as many as there were so far',
    running_minutes UInt8 COMMENT 'Of them, those in which a trade of any venue was received: the instance ran',
    traded_minutes UInt8 COMMENT 'Minutes in which a trade of this market was received',
    trades UInt64 COMMENT 'Those trades',
    longest_silence_minutes UInt8 COMMENT 'The longest run of minutes without a trade, within the hour',
    gap_seconds Float64 COMMENT 'Seconds of the hour in which messages of the venue or market are known to be missing, gaps added up',
    silent_because LowCardinality(String) COMMENT 'Why minutes have no trade: not_running, half of them or more are minutes in which nothing of any venue was received; halted, the venue''s list said that the market does not trade when the hour began; not_listed, the list had it no more; disconnected, messages are missing in the hour since the venue was not reached or silent, for half of gap_seconds or more; gap, messages are missing for another reason, see v_gaps; no_trades, nothing else is known than that nobody traded; empty if there are none',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: a minute after the end of the hour by log time. While the hour goes on the row changes, and this lies ahead'
)
AS WITH markets AS (
    SELECT venue, symbol, toDate(begins) AS day, any(o.coin_id) AS coin_id, groupArray((toUInt8(toHour(begins)), o.traded, o.trades, o.first, o.last, o.within)) AS own
    FROM (
        SELECT venue, symbol, toStartOfHour(m.start, 'UTC') AS begins, any(m.coin_id) AS coin_id, toUInt8(count()) AS traded, sum(m.trades) AS trades,
            arraySort(groupArray(toUInt8(toMinute(m.start)))) AS minutes, minutes[1] AS first, minutes[-1] AS last, arrayMax(arrayDifference(minutes)) AS within
        FROM {database}.venue_candles_1m AS m FINAL GROUP BY venue, symbol, begins
    ) AS o GROUP BY venue, symbol, day
),
-- An hour counts as far as its newest closed minute of any market.
hours AS (
    SELECT toDate(start) AS day, toUInt8(toHour(start)) AS h, toUInt8(uniqExact(toMinute(start))) AS running,
        toUInt8(if(toStartOfHour(max(start)) = toStartOfHour((SELECT max(start) FROM {database}.venue_candles_1m)), toMinute(max(start)) + 1, 60)) AS expected
    FROM {database}.venue_candles_1m GROUP BY day, h
),
missing AS (
    SELECT venue, symbol, at, sum(greatest(0, dateDiff('millisecond', greatest(g.from_time, toDateTime64(at, 9, 'UTC')), least(g.to_time, toDateTime64(at + 3600, 9, 'UTC'))))) / 1000 AS seconds,
        sumIf(greatest(0, dateDiff('millisecond', greatest(g.from_time, toDateTime64(at, 9, 'UTC')), least(g.to_time, toDateTime64(at + 3600, 9, 'UTC')))), g.reason IN ('disconnect', 'silence')) / 1000 AS away
    FROM (
        SELECT venue, symbol, reason, from_time, to_time, arrayJoin(arrayMap(i -> toStartOfHour(from_time, 'UTC') + 3600 * i,
            range(least(10000, 1 + dateDiff('hour', toStartOfHour(from_time, 'UTC'), to_time))))) AS at
        FROM {database}.gaps FINAL
    ) AS g GROUP BY venue, symbol, at
)
SELECT c.day AS day, toDateTime(c.day, 'UTC') + 3600 * c.h AS hour, c.venue AS venue, c.symbol AS symbol, c.coin_id AS coin_id, c.expected AS expected_minutes, c.running AS running_minutes,
    c.at.2 AS traded_minutes, c.at.3 AS trades,
    toUInt8(if(traded_minutes = 0, c.expected, greatest(c.at.4, c.expected - c.at.5 - 1, c.at.6 - 1))) AS longest_silence_minutes,
    w.seconds + n.seconds AS gap_seconds,
    multiIf(traded_minutes >= c.expected, '', 2 * (c.expected - c.running) >= c.expected - traded_minutes AND c.running < c.expected, 'not_running',
        (arrayLast(x -> x.1 <= hour, l.states) AS listing).2 AND listing.3 != '', 'halted', listing.2, 'not_listed', w.away > 0 AND 2 * w.away >= gap_seconds, 'disconnected', gap_seconds > 0, 'gap', 'no_trades') AS silent_because,
    toDateTime64(hour + 3660, 9, 'UTC') AS published
FROM (
    SELECT m.venue AS venue, m.symbol AS symbol, m.day AS day, m.coin_id AS coin_id, t.h AS h, t.expected AS expected, t.running AS running,
        arrayFirst(x -> x.1 = t.h, m.own) AS at
    FROM markets AS m INNER JOIN hours AS t ON t.day = m.day
) AS c
LEFT JOIN missing AS w ON w.venue = c.venue AND w.symbol = '' AND w.at = hour
LEFT JOIN missing AS n ON n.venue = c.venue AND n.symbol = c.symbol AND n.at = hour AND n.symbol != ''
LEFT JOIN (SELECT venue, symbol, arraySort(groupArray((time, gone, status))) AS states FROM {database}.listing_changes GROUP BY venue, symbol HAVING max(gone)) AS l ON l.venue = c.venue AND l.symbol = c.symbol
COMMENT 'How much of each market was received, by hours of the days in which it traded at all: minutes with trades, the longest silence, and why it was silent. From live candles and gaps, kept for at least 90 days'
