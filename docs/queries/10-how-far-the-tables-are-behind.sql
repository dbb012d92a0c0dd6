-- How far the tables are behind the log
--
-- Columns: sink; behind, seconds of its slowest partition; at, the log time of its newest record.
-- Right because: it is measured in log time. Topics without a clock are left out, where silence is no lag.
SELECT sink, max(behind_seconds) AS behind, max(log_time) AS at
FROM v_lag
WHERE behind_seconds IS NOT NULL
GROUP BY sink
ORDER BY behind DESC, sink
