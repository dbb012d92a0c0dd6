-- How long trades take from each venue to here, by the hour
--
-- Columns: venue; hour; trades; p50_ms, p95_ms and max_ms from when they happened to when they were received, in milliseconds; ahead, how many happened after they came.
-- Right because: only live trades whose venue says when they happened count, not history that is sent on connecting. Both clocks are in it: where ahead is not 0, or the median is far from
-- those of other venues and moves by itself, suspect a clock first.
SELECT venue, hour, trades, p50_ms, p95_ms, max_ms, ahead
FROM v_latency
WHERE day >= toDate(now() - 3600) AND hour >= toStartOfHour(now() - 3600)
ORDER BY hour, p95_ms DESC, venue
