-- What replays have proved
--
-- Columns: replay; view; from_time and to_time, empty for the whole log; rows compared; differing; outside; published, when it ended.
-- Right because: only comparisons that ended count. Rows outside are no proof of anything: their causes were not in the log any more, or out of the time.
SELECT replay, view, from_time, to_time, rows, differing, outside, published
FROM v_proofs
WHERE state = 'done' AND rows IS NOT NULL
ORDER BY replay DESC
LIMIT 20
