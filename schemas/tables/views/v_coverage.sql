CREATE OR REPLACE VIEW default.v_coverage
(
    day Date COMMENT 'Day, UTC. A condition on it is fast',
    hour DateTime('UTC') COMMENT 'Start of the hour, UTC. A condition on it is fast too',
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
AS WITH
-- Without FINAL, which merges all parts and took a third of the whole: a minute whose row is there twice, since it was inserted again, counts once, with the greater number of
-- trades. Only hours that have such a minute ask for that: inserted has the minute in the upper six bits and its trades in the others, for little memory.
own AS (
    SELECT venue, symbol, toStartOfHour(start, 'UTC') AS hour, toDate(hour) AS day, groupBitOr(bitShiftLeft(toUInt64(1), toMinute(start))) AS heard, bitCount(heard) AS traded,
        CAST(bitPositionsToArray(heard), 'Array(UInt8)') AS minutes, minutes[1] AS first, minutes[-1] AS last, arrayMax(arrayDifference(minutes)) AS within,
        arrayReverseSort(groupArray(toUInt32(bitOr(bitShiftLeft(toUInt32(toMinute(start)), 26), least(m.trades, 67108863))))) AS inserted,
        if(count() = traded, sum(m.trades), arraySum(x -> bitAnd(x, 67108863), arrayFilter((x, i) -> i = 1 OR bitShiftRight(bitXor(x, inserted[i - 1]), 26) != 0, inserted, arrayEnumerate(inserted)))) AS trades
    FROM {database}.venue_candles_1m AS m GROUP BY venue, symbol, hour
),
-- A market that traded on a day has all hours of it. They are read apart: a condition on hour must not leave out the trades of the day before it. The rows are
-- sorted by market, so the first of each is found without a table of all.
days AS (SELECT venue, symbol, toDate(start) AS day, coin_id FROM {database}.venue_candles_1m LIMIT 1 BY venue, symbol, day),
-- An hour counts as far as its newest closed minute of any market.
hours AS (
    SELECT toStartOfHour(start, 'UTC') AS hour, toDate(hour) AS day, bitCount(groupBitOr(bitShiftLeft(toUInt64(1), toMinute(start)))) AS running,
        toUInt8(if(hour = toStartOfHour((SELECT max(start) FROM {database}.venue_candles_1m)), toMinute(max(start)) + 1, 60)) AS expected
    FROM {database}.venue_candles_1m GROUP BY hour
),
missing AS (
    SELECT venue, at, sumIf(g.missed, g.symbol = '') AS of_venue, sumIf(g.missed, g.symbol = '' AND g.reason IN ('disconnect', 'silence')) AS away,
        groupArrayIf((g.symbol, g.missed), g.symbol != '') AS of_markets
    FROM (
        SELECT venue, symbol, reason, arrayJoin(arrayMap(i -> toStartOfHour(from_time, 'UTC') + 3600 * i,
                range(least(10000, 1 + dateDiff('hour', toStartOfHour(from_time, 'UTC'), to_time))))) AS at,
            greatest(0, dateDiff('millisecond', greatest(from_time, toDateTime64(at, 9, 'UTC')), least(to_time, toDateTime64(at + 3600, 9, 'UTC')))) AS missed
        FROM {database}.gaps FINAL
    ) AS g GROUP BY venue, at
)
SELECT c.day AS day, c.hour AS hour, c.venue AS venue, c.symbol AS symbol, c.coin_id AS coin_id, c.expected AS expected_minutes, c.running AS running_minutes,
    o.traded AS traded_minutes, o.trades AS trades,
    toUInt8(if(traded_minutes = 0, c.expected, greatest(o.first, c.expected - o.last - 1, o.within - 1))) AS longest_silence_minutes,
    w.of_venue / 1000 + arraySum(x -> if(x.1 = c.symbol, x.2, 0), w.of_markets) / 1000 AS gap_seconds,
    multiIf(traded_minutes >= c.expected, '', 2 * (c.expected - c.running) >= c.expected - traded_minutes AND c.running < c.expected, 'not_running',
        (arrayLast(x -> x.1 <= hour, c.states) AS listing).2 AND listing.3 != '', 'halted', listing.2, 'not_listed', w.away > 0 AND 2 * w.away / 1000 >= gap_seconds, 'disconnected', gap_seconds > 0, 'gap', 'no_trades') AS silent_because,
    toDateTime64(hour + 3660, 9, 'UTC') AS published
FROM (
    SELECT d.venue AS venue, d.symbol AS symbol, d.coin_id AS coin_id, l.states AS states, t.day AS day, t.hour AS hour, t.expected AS expected, t.running AS running
    FROM days AS d INNER JOIN hours AS t ON t.day = d.day
    LEFT JOIN (SELECT venue, symbol, arraySort(groupArray((time, gone, status))) AS states FROM {database}.listing_changes GROUP BY venue, symbol HAVING max(gone)) AS l ON l.venue = d.venue AND l.symbol = d.symbol
) AS c
-- The day too, which the hour implies: a condition on either reaches the table by it.
LEFT JOIN own AS o ON o.venue = c.venue AND o.symbol = c.symbol AND o.day = c.day AND o.hour = c.hour
LEFT JOIN missing AS w ON w.venue = c.venue AND w.at = c.hour
COMMENT 'How much of each market was received, by hours of the days in which it traded at all: minutes with trades, the longest silence, and why it was silent. From live candles and gaps, kept for at least 90 days'
