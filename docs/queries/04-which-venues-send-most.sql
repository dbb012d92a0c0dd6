-- Which venues send most
--
-- Columns: venue; ticks and coins of the last minute; last, when one was received.
-- Right because: it goes by the time of receipt. By event time, a venue whose clock is off would seem silent.
SELECT venue, count() AS ticks, uniqExact(coin_id) AS coins, max(ingest_time) AS last
FROM v_ticks
WHERE ingest_time > now() - 60
GROUP BY venue
ORDER BY ticks DESC
