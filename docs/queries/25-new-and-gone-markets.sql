-- Which markets venues have listed and taken off this week
--
-- Columns: venue; listed, back, halted, gone and changed, how many markets were; symbols of those that are gone, at most five.
-- Right because: a market counts as listed when its list was first read, so the first day of an instance is left out: on it all markets are new.
SELECT venue, countIf(change = 'listed') AS listed, countIf(change = 'back') AS back, countIf(change = 'halted') AS halted, countIf(change = 'gone') AS gone, countIf(change = 'changed') AS changed,
    groupArrayIf(5)(symbol, change = 'gone') AS symbols
FROM v_listings
WHERE time > now() - 7 * 86400 AND time > (SELECT min(time) FROM v_listings) + INTERVAL 1 DAY
GROUP BY venue
ORDER BY gone DESC, listed DESC, venue
