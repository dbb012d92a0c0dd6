-- Where messages of venues are missing, the last day
--
-- Columns: venue; reason; gaps; seconds in all; longest, seconds; last, when the newest ended.
-- Right because: a gap counts by the time that it lies in, not by the time at which it was noticed; one that lasts has no end yet and counts as 0 s.
SELECT venue, reason, count() AS gaps, sum(dateDiff('millisecond', from_time, to_time)) / 1000 AS seconds,
    max(dateDiff('millisecond', from_time, to_time)) / 1000 AS longest, max(to_time) AS last
FROM v_gaps
WHERE to_time > now() - 86400
GROUP BY venue, reason
ORDER BY seconds DESC, venue, reason
