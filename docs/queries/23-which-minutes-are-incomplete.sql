-- Which venues' minutes are incomplete, by the venues' own candles
--
-- Columns: venue; minutes that were compared in a week; complete, missing and off, how many of them are; volume_off, percent of its traded worth, in quotes, that is missing (negative) or
-- too much.
-- Right because: only minutes are compared that both have: those between the first and last live minute of a market, of which the back-fill read the candle.
SELECT venue, count() AS minutes, countIf(verdict = 'complete') AS complete, countIf(verdict = 'missing') AS missing, countIf(verdict = 'off') AS off,
    100 * (sum(volume * venue_close) / nullIf(sum(venue_volume * venue_close), 0) - 1) AS volume_off
FROM v_completeness
WHERE start > now() - 7 * 86400
GROUP BY venue
ORDER BY venue
