-- How much was received of each venue today, and why the rest was not
--
-- Columns: venue; markets; expected, minutes of all its markets; traded, those with a trade; not_running, halted, not_listed, disconnected, gap and no_trades, minutes without one by why.
-- Right because: a market that traded at all counts with all hours of its day, also those without a trade. A minute without one is silence, not necessarily a loss.
SELECT venue, uniqExact(symbol) AS markets, sum(expected_minutes) AS expected, sum(traded_minutes) AS traded,
    sumIf(expected_minutes - traded_minutes, silent_because = 'not_running') AS not_running, sumIf(expected_minutes - traded_minutes, silent_because = 'halted') AS halted,
    sumIf(expected_minutes - traded_minutes, silent_because = 'not_listed') AS not_listed, sumIf(expected_minutes - traded_minutes, silent_because = 'disconnected') AS disconnected,
    sumIf(expected_minutes - traded_minutes, silent_because = 'gap') AS gap,
    sumIf(expected_minutes - traded_minutes, silent_because = 'no_trades') AS no_trades
FROM v_coverage
WHERE day = toDate(now())
GROUP BY venue
ORDER BY venue
