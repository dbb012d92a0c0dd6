-- What could not be processed, by reason
--
-- Columns: source; reason; records; retried, those that could be read later after all; last, when one was received.
-- Right because: a message that was read later is counted apart; its ticks are in v_ticks.
SELECT source, reason, count() AS records, countIf(retried_at IS NOT NULL) AS retried, max(ingest_time) AS last
FROM v_dead_letters
GROUP BY source, reason
ORDER BY records DESC, source, reason
